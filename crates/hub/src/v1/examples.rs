//! Correct examples for invalid fields, shown in error responses.

use std::borrow::Cow;

use rialto_protocols::adapter::api_protocol;

/// JSON text with a valid value of the field, if there is an example.
pub fn example_for(field: &str) -> Option<Cow<'static, str>> {
    let protocol = || api_protocol().id();
    let example = match field {
        "?protocol" => return Some(format!(r#""/v1/agents?protocol={}""#, protocol()).into()),
        "agent" => {
            let agent = "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f";
            return Some(format!(r#""/v1/agents/{}:{agent}""#, protocol()).into());
        }
        "/owner" | "/amount" => r#"{"owner":"acme","amount":100.00}"#,
        "/create" => r#"{"owner":"acme","amount":100.00,"create":true}"#,
        "/retire_others" => r#"{"retire_others":true}"#,
        "/up_to" => r#"{"up_to":17}"#,
        "/to" | "/body" => {
            r#"{"to":"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f","body":{"text":"hello"}}"#
        }
        "/ok" | "/output" | "/took_ms" | "/cost" => {
            r#"{"epoch":1,"ok":true,"output":{"sum":3},"took_ms":12,"cost":0.04}"#
        }
        "/code" | "/message" | "/cause" => {
            r#"{"epoch":1,"ok":false,"code":"EXECUTION_ERROR","message":"out of memory","cause":"execution"}"#
        }
        "/fraction" | "/text" => r#"{"epoch":1,"fraction":0.5,"text":"half done"}"#,
        "/artifact" | "/append" => r#"{"epoch":1,"artifact":{"page":1},"append":false}"#,
        "/schema" => r#"{"epoch":1,"text":"Which city?","schema":{"type":"object"}}"#,
        "/question" => r#"{"question":1,"text":"Lugano"}"#,
        "/epoch" | "/reason" => r#"{"epoch":1,"reason":"too much to do"}"#,
        "/id" | "/skill" | "/input" | "/budget" | "/callback" | "/deadline" | "/select" => {
            r#"{"skill":"analyze_text","input":{"text":"hello"},"budget":0.10,"select":"best"}"#
        }
        "/price" | "/valid_for" => r#"{"price":0.04,"valid_for":"60s"}"#,
        "/agent" => r#"{"agent":7}"#,
        "/offer" => r#"{"agent":7,"price":0.04}"#,
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
