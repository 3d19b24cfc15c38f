//! Correct examples for invalid fields, shown in error responses.

use std::borrow::Cow;

use rialto_protocols::adapter::api_protocol;

pub const CREDITS: &str = r#"{"owner":"acme","amount":100.00}"#;
pub const KEY: &str = r#"{"retire_others":true}"#;
pub const LIMITED_KEY: &str =
    r#"{"label":"laptop","per_job":1.00,"per_day":10.00,"transfers":false}"#;
pub const ACK: &str = r#"{"up_to":17}"#;
pub const MESSAGE: &str =
    r#"{"to":"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f","body":{"text":"hello"}}"#;
pub const RESULT: &str = r#"{"epoch":1,"ok":true,"output":{"sum":3},"took_ms":12,"cost":0.04}"#;
pub const DECLINE: &str = r#"{"epoch":1,"reason":"too much to do"}"#;
pub const CANCEL: &str = r#"{"reason":"no longer needed"}"#;
pub const JOB: &str =
    r#"{"skill":"analyze_text","input":{"text":"hello"},"budget":0.10,"select":"best"}"#;
pub const OFFER: &str = r#"{"price":0.04,"valid_for":"60s"}"#;
pub const ACCEPT: &str = r#"{"agent":7,"price":0.04}"#;
pub const PROGRESS: &str = r#"{"epoch":1,"fraction":0.5,"text":"half done"}"#;
pub const PART: &str = r#"{"epoch":1,"artifact":{"page":1},"append":false}"#;
pub const QUESTION: &str = r#"{"epoch":1,"text":"Which city?","schema":{"type":"object"}}"#;
pub const ANSWER: &str = r#"{"question":1,"text":"Lugano"}"#;
pub const STATUS: &str = r#"{"status":"online"}"#;

/// JSON text with a valid value of the field, if there is an example.
pub fn example_for(field: &str) -> Option<Cow<'static, str>> {
    let protocol = || api_protocol().id();
    let example = match field {
        "?protocol" => return Some(format!(r#""/v1/agents?protocol={}""#, protocol()).into()),
        "agent" => {
            let agent = "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f";
            return Some(format!(r#""/v1/agents/{}:{agent}""#, protocol()).into());
        }
        "/owner" | "/amount" => CREDITS,
        "/create" => r#"{"owner":"acme","amount":100.00,"create":true}"#,
        "/retire_others" => KEY,
        "/label" | "/per_job" | "/per_day" | "/transfers" => LIMITED_KEY,
        "/up_to" => ACK,
        "/to" | "/body" => MESSAGE,
        "/ok" | "/output" | "/took_ms" | "/cost" => RESULT,
        "/code" | "/message" | "/cause" => {
            r#"{"epoch":1,"ok":false,"code":"EXECUTION_ERROR","message":"out of memory","cause":"execution"}"#
        }
        "/fraction" | "/text" => PROGRESS,
        "/artifact" | "/append" => PART,
        "/schema" => QUESTION,
        "/question" => ANSWER,
        "/epoch" | "/reason" => DECLINE,
        "/id" | "/skill" | "/input" | "/budget" | "/callback" | "/deadline" | "/select" => JOB,
        "/price" | "/valid_for" => OFFER,
        "/agent" => r#"{"agent":7}"#,
        "/offer" => ACCEPT,
        "?instance" => r#""/v1/work?instance=worker-1""#,
        "?owner" => r#""/v1/ledger?owner=acme""#,
        "?wait" => r#""?wait=30""#,
        "?known" => r#""/v1/work?known=f81d4fae-7dec-11d0-a765-00a0c91e6bf6""#,
        "?limit" => r#""?limit=50""#,
        "?cursor" => r#""?cursor=<next_cursor of the previous page>""#,
        "?after" => r#""?after=17""#,
        "?position" => r#""/v1/inbox/delivery?position=17""#,
        "?side" => r#""/v1/jobs?side=asked""#,
        "?state" => r#""/v1/jobs?state=live""#,
        "?online" => r#""/v1/agents?online=true""#,
        "?skill" => r#""/v1/agents?skill=analyze_text""#,
        "?q" => r#""/v1/agents?q=analyst""#,
        "job" => r#""/v1/jobs/f81d4fae-7dec-11d0-a765-00a0c91e6bf6""#,
        "push" => r#""/v1/operator/pushes/17/retry""#,
        "Last-Event-ID" => r#""Last-Event-ID: 17""#,
        "Idempotency-Key" => r#""Idempotency-Key: 5f0c2a9e""#,
        _ => return None,
    };
    Some(example.into())
}
