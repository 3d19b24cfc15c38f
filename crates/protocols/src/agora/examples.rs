//! Valid examples, shown in errors about a field. Their form is valid, but a signature can only be
//! made with the key.

/// A whole envelope: the first of the published vectors.
pub const ENVELOPE: &str = r#"{"protocol":"agora/1.0","id":"11111111-1111-1111-1111-111111111111","timestamp":"2024-01-01T00:00:00Z","type":"REQUEST","sender":{"id":"OVeM9zlu6wERflzLzbu2HUMG0so9MVWrct1SUOTyW9Y","signature":"jkGO8vJUoXiBmJyCt66-YXwFHLxJVraS9BFzoc6EMvVS6QiMIo88-99oKdbowynbqg7OmfkuZ0IEMb0Bn25nBw"},"payload":{"resource":"agora:search:v1","params":{"q":"weather tokyo","max_results":3},"budget":{"max":5},"timeout":10000}}"#;
/// The member `sender`.
const SENDER: &str = r#"{"sender":{"id":"did:key:z6MkiK6iPnt423Ycuhg83yfJ8PtX2HjH1Hqh3MywFmA2gB3s","signature":"jkGO8vJUoXiBmJyCt66-YXwFHLxJVraS9BFzoc6EMvVS6QiMIo88-99oKdbowynbqg7OmfkuZ0IEMb0Bn25nBw"}}"#;
/// The member `recipient`.
const RECIPIENT: &str =
    r#"{"recipient":{"id":"did:key:z6MkuXNzG7N3BdUfY3jPn8hkVYDrmV8scBpWfqMT7zytQyDP"}}"#;
/// The member `capabilities`.
const CAPABILITIES: &str = r#"{"capabilities":[{"resource":"agora:search:v1","price":0.5,"description":"Searches the web."}]}"#;

/// An example for the named field, to be inserted at its place.
pub fn example_for(field: &str) -> &'static str {
    match field {
        "/protocol" => r#"{"protocol":"agora/1.0"}"#,
        "/id" => r#"{"id":"11111111-1111-4111-8111-111111111111"}"#,
        "/timestamp" => r#"{"timestamp":"2024-01-01T00:00:00Z"}"#,
        "/type" => r#"{"type":"REQUEST"}"#,
        "/payload" => r#"{"payload":{"resource":"agora:search:v1","params":{"q":"weather"}}}"#,
        "/up_to" => r#"{"up_to":42}"#,
        _ if field.starts_with("/sender") => SENDER,
        _ if field.starts_with("/recipient") => RECIPIENT,
        _ => in_payload(field),
    }
}

fn in_payload(field: &str) -> &'static str {
    match field.strip_prefix("/payload/").unwrap_or_default() {
        "resource" => r#"{"resource":"agora:search:v1"}"#,
        "params" => r#"{"params":{"q":"weather tokyo"}}"#,
        "timeout" => r#"{"timeout":10000}"#,
        "request_id" => r#"{"request_id":"11111111-1111-1111-1111-111111111111"}"#,
        "offer_id" => r#"{"offer_id":"22222222-2222-2222-2222-222222222222"}"#,
        "payment_proof" => r#"{"payment_proof":"tx-1"}"#,
        "cost" => r#"{"cost":5.25}"#,
        "ttl" => r#"{"ttl":60000}"#,
        "eta" => r#"{"eta":10000}"#,
        "status" => r#"{"status":"success"}"#,
        "data" => r#"{"data":{"text":"It is 12:00."}}"#,
        "final" => r#"{"final":true}"#,
        "code" => r#"{"code":500}"#,
        "message" => r#"{"message":"the search engine is down"}"#,
        "name" => r#"{"name":"Searcher"}"#,
        "nonce" => r#"{"nonce":"5f0c2a9e"}"#,
        "endpoint" => r#"{"endpoint":"https://agent.example/agora"}"#,
        "inbox" => r#"{"inbox":true}"#,
        member if member.starts_with("budget") => r#"{"budget":{"max":5,"currency":"credits"}}"#,
        member if member.starts_with("capabilities") => CAPABILITIES,
        _ => ENVELOPE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ijson;

    #[test]
    fn every_example_shows_the_member_it_is_for() {
        for field in [
            "/protocol",
            "/id",
            "/timestamp",
            "/type",
            "/sender",
            "/recipient",
            "/payload",
            "/up_to",
            "/payload/resource",
            "/payload/params",
            "/payload/budget",
            "/payload/timeout",
            "/payload/request_id",
            "/payload/offer_id",
            "/payload/payment_proof",
            "/payload/cost",
            "/payload/ttl",
            "/payload/eta",
            "/payload/status",
            "/payload/data",
            "/payload/final",
            "/payload/code",
            "/payload/message",
            "/payload/name",
            "/payload/nonce",
            "/payload/endpoint",
            "/payload/inbox",
            "/payload/capabilities",
        ] {
            let name = field.rsplit('/').next().expect("a name");
            let example = ijson::read(example_for(field).as_bytes()).expect(field);
            assert!(example.get(name).is_some(), "{field}");
        }
        assert_eq!(example_for("/sender/id"), SENDER);
        assert_eq!(example_for("/recipient/id"), RECIPIENT);
        assert_eq!(example_for("/payload/capabilities/0/price"), CAPABILITIES);
        assert_eq!(example_for("/payload/budget/max"), example_for("/payload/budget"));
        assert_eq!(example_for(""), ENVELOPE);
    }
}
