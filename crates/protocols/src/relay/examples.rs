//! Valid examples, shown to a caller that sent an invalid field.

/// A registration that succeeds as it is.
pub const REGISTRATION: &str = r#"{"agent_id":"my-agent@chorus","agent_card":{"card_version":"0.3","user_culture":"en","supported_languages":["en"]}}"#;

/// A complete message to send.
pub const MESSAGE: &str = r#"{"receiver_id":"bob@chorus","envelope":{"chorus_version":"0.4","sender_id":"alice@chorus","original_text":"Hello!","sender_culture":"en"}}"#;

/// A complete envelope, as a member of a message.
pub const ENVELOPE: &str = r#"{"envelope":{"chorus_version":"0.4","sender_id":"alice@chorus","original_text":"Hello!","sender_culture":"en"}}"#;

/// A complete card, as a member of a registration.
pub const CARD: &str =
    r#"{"agent_card":{"card_version":"0.3","user_culture":"en","supported_languages":["en"]}}"#;

/// A complete acknowledgement.
pub const ACK: &str = r#"{"up_to":42}"#;

/// A valid example for the named field.
pub fn example_for(field: &str) -> &'static str {
    match field.rsplit('/').next().unwrap_or_default() {
        "agent_id" => r#"{"agent_id":"my-agent@chorus"}"#,
        "agent_card" => CARD,
        "card_version" => r#"{"card_version":"0.3"}"#,
        "user_culture" => r#"{"user_culture":"zh-CN"}"#,
        "supported_languages" => r#"{"supported_languages":["zh-CN","en"]}"#,
        "endpoint" => r#"{"endpoint":"https://agent.example/receive"}"#,
        "envelope_format" => r#"{"envelope_format":"a2a-1.0"}"#,
        "rotate_key" => r#"{"rotate_key":true}"#,
        "receiver_id" => r#"{"receiver_id":"bob@chorus"}"#,
        "stream" => r#"{"stream":true}"#,
        "chorus_version" => r#"{"chorus_version":"0.4"}"#,
        "sender_id" => r#"{"sender_id":"alice@chorus"}"#,
        "original_text" | "original_semantic" => {
            r#"{"chorus_version":"0.4","original_text":"Hello!"}"#
        }
        "sender_culture" => r#"{"sender_culture":"zh-CN"}"#,
        "cultural_context" => {
            r#"{"cultural_context":"Among colleagues, coffee is a friendly way to talk."}"#
        }
        "conversation_id" => r#"{"conversation_id":"5f0c2a9e"}"#,
        "turn_number" => r#"{"turn_number":1}"#,
        "skill" => r#"{"skill":"summarize"}"#,
        "input" => r#"{"input":{"text":"Hello!"}}"#,
        "budget" => r#"{"budget":0.10}"#,
        "parts" => {
            r#"{"messageId":"m-1","role":"ROLE_USER","parts":[{"data":{"chorus_version":"0.4","sender_id":"alice@chorus","original_text":"Hello!","sender_culture":"en"},"mediaType":"application/vnd.chorus.envelope+json"}]}"#
        }
        "up_to" => ACK,
        "?after" => r#""?after=42""#,
        "?since" => r#""?since=2026-03-20T10:00:00Z""#,
        "?limit" => r#""?limit=100""#,
        "?culture" => r#""/agents?culture=zh-CN""#,
        "?language" => r#""/agents?language=en""#,
        "?online" => r#""/agents?online=true""#,
        "?protocol" => r#""/agents?protocol=relay""#,
        "Last-Event-ID" => r#""Last-Event-ID: 42""#,
        "?ack" => r#""/agent/inbox?ack=explicit""#,
        "Idempotency-Key" => r#""Idempotency-Key: 5f0c2a9e""#,
        _ if field.starts_with("/agent_card/supported_languages/") => r#""en""#,
        _ if field.starts_with('?') => r#""/agents?limit=100""#,
        _ => MESSAGE,
    }
}
