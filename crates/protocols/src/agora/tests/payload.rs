//! Tests of each payload: required members, optional members, and writing then reading.

use rialto_core::money::Credits;
use rialto_core::time::Millis;

use super::*;
use crate::agora::Code;
use crate::agora::wire::hello::{Capability, Hello, Welcome};
use crate::agora::wire::payload::{
    Accept, Budget, ErrorPayload, Offer, Request, ResultPayload, ResultStatus,
};
use crate::agora::wire::status::{AgentStatus, MessageStatus, RequestState, StatusUpdate};
use crate::kit::ijson::{Json, JsonValue};

/// Reads a text with one of the readers and checks the result.
fn reading<T>(text: &str, read: impl FnOnce(&Json<'_>) -> T) -> T {
    read(&ijson::read(text.as_bytes()).expect(text))
}

/// Recorded payloads of a type from foreign clients. The fixture names the clients.
fn foreign(kind: &str) -> Vec<String> {
    let all = ijson::read(include_bytes!("../fixtures/clients.json")).expect("JSON");
    match all.get(kind).map(Json::value) {
        Some(JsonValue::Array(list)) => list.iter().map(|one| one.raw().to_owned()).collect(),
        other => panic!("{kind}: {other:?}"),
    }
}

/// `good` with one member set, or without it where `value` is `null`.
fn with(good: &Value, name: &str, value: Value) -> String {
    let mut payload = good.clone();
    payload[name] = value;
    payload.to_string()
}

/// Every change must be refused at its member, with a message that names it.
fn refuses(good: &Value, changes: &[(&str, &str)], read: fn(&Json<'_>) -> Option<Failure>) {
    assert_eq!(reading(&good.to_string(), read), None);
    for (name, value) in changes {
        let text = with(good, name, json!("VALUE")).replace("\"VALUE\"", value);
        let failure = reading(&text, read).expect(&text);
        assert_eq!(failure.code, Code::BadRequest);
        let field = failure.field.as_deref().expect("a field");
        assert!(field.starts_with(&format!("/payload/{name}")), "{text}: {field}");
        assert!(failure.message.starts_with(&format!("payload.{name}")), "{}", failure.message);
        assert!(ijson::read(failure.example.expect("an example").as_bytes()).is_ok());
    }
}

#[test]
fn a_request_has_resource_and_params() {
    let good =
        json!({"resource": "agora:search:v1", "params": {}, "budget": {"max": 5}, "timeout": 1});
    let long = format!("\"{}\"", "x".repeat(257));
    refuses(
        &good,
        &[
            ("resource", "null"),
            ("resource", "7"),
            ("resource", "\"\""),
            ("resource", &long),
            ("params", "null"),
            ("params", "[]"),
            ("params", "\"{}\""),
            ("budget", "5"),
            ("budget", r#"{"max":"5"}"#),
            ("budget", r#"{"max":-1}"#),
            ("budget", r#"{"max":0.0000001}"#),
            ("budget", r#"{"max":1000000000.1}"#),
            ("budget", r#"{"max":1,"max_cost":2}"#),
            ("budget", r#"{"max":1,"currency":7}"#),
            ("timeout", "0"),
            ("timeout", "-1"),
            ("timeout", "86400001"),
            ("timeout", "1.5"),
            ("timeout", "\"1\""),
            ("timeout", "1e30"),
        ],
        |json| Request::read(json).err(),
    );
}

#[test]
fn numbers_are_read_as_they_were_signed() {
    for timeout in ["10000", "10000.0", "1e4", "1.0E+4"] {
        let text = format!(r#"{{"resource":"r","params":{{}},"timeout":{timeout}}}"#);
        let read = reading(&text, |json| Request::read(json).map(|r| r.timeout));
        assert_eq!(read, Ok(Some(Millis(10_000))), "{timeout}");
    }
    for text in foreign("REQUEST") {
        let read = |json: &Json<'_>| {
            let request = Request::read(json).expect("a request");
            (request.timeout, request.budget.and_then(|budget| budget.max))
        };
        let five = Some(Credits::from_micros(5_000_000));
        assert_eq!(reading(&text, read), (Some(Millis(600_000)), five), "{text}");
    }
    for text in foreign("OFFER") {
        let read = |json: &Json<'_>| {
            let offer = Offer::read(json).expect("an offer");
            (offer.cost, offer.ttl, offer.eta)
        };
        let terms = (Credits::from_micros(5_000_000), Millis(60_000), Millis(10_000));
        assert_eq!(reading(&text, read), terms, "{text}");
    }
    // A double cannot hold all of these digits. The signed amount counts.
    let text = r#"{"request_id":"r","cost":0.10000000000000000001,"ttl":1,"eta":0}"#;
    let cost = reading(text, |json| Offer::read(json).map(|offer| offer.cost));
    assert_eq!(cost, Ok(Credits::from_micros(100_000)));
}

#[test]
fn a_budget_may_leave_out_its_maximum_or_name_it_otherwise() {
    let budget = |text: &str| {
        let text = format!(r#"{{"resource":"r","params":{{}},"budget":{text}}}"#);
        reading(&text, |json| {
            Request::read(json)
                .expect("a request")
                .budget
                .map(|b| (b.max, b.currency.map(str::to_owned)))
        })
    };
    let five = Some(Credits::from_micros(5_000_000));
    assert_eq!(budget("null"), None);
    assert_eq!(budget("{}"), Some((None, None)));
    assert_eq!(budget(r#"{"max":5}"#), Some((five, None)));
    assert_eq!(budget(r#"{"max_cost":5.0,"currency":"USD"}"#), Some((five, Some("USD".into()))));
    assert_eq!(budget(r#"{"max_cost":5,"max":5.0}"#), Some((five, None)));
}

#[test]
fn an_offer_has_all_of_its_terms() {
    let good = json!({"request_id": "r-1", "cost": 5.25, "ttl": 60000, "eta": 0});
    refuses(
        &good,
        &[
            ("request_id", "null"),
            ("request_id", "7"),
            ("request_id", "\"\""),
            ("cost", "null"),
            ("cost", "\"5\""),
            ("cost", "-1"),
            ("cost", "0.0000001"),
            ("cost", "1e10"),
            ("ttl", "null"),
            ("ttl", "0"),
            ("ttl", "-1"),
            ("ttl", "0.5"),
            ("eta", "null"),
            ("eta", "-1"),
            ("eta", "true"),
        ],
        |json| Offer::read(json).err(),
    );
}

#[test]
fn an_accept_names_an_offer() {
    let good = json!({"offer_id": "o-1", "payment_proof": "tx"});
    let changes = [("offer_id", "null"), ("offer_id", "1"), ("payment_proof", "{}")];
    refuses(&good, &changes, |json| Accept::read(json).err());
}

#[test]
fn a_result_is_whole_or_partial() {
    let good = json!({"request_id": "r-1", "status": "success", "data": {}});
    refuses(
        &good,
        &[
            ("request_id", "null"),
            ("status", "null"),
            ("status", "\"failure\""),
            ("status", "\"SUCCESS\""),
            ("data", "null"),
            ("data", "\"text\""),
            ("data", "[]"),
            ("final", "1"),
        ],
        |json| ResultPayload::read(json).err(),
    );
    for (status, last, wanted, completes) in [
        ("success", "null", ResultStatus::Success, true),
        ("success", "false", ResultStatus::Success, true),
        ("partial", "null", ResultStatus::Partial, false),
        ("partial", "false", ResultStatus::Partial, false),
        ("partial", "true", ResultStatus::FinalPartial, true),
    ] {
        let text =
            format!(r#"{{"request_id":"r","status":"{status}","final":{last},"data":{{}}}}"#);
        let read = reading(&text, |json| ResultPayload::read(json).expect("a result").status);
        assert_eq!((read, read.is_final()), (wanted, completes), "{text}");
    }
}

#[test]
fn an_error_has_a_number_and_a_message() {
    let good = json!({"code": 500, "message": "down", "request_id": "r-1"});
    let changes = [
        ("code", "null"),
        ("code", "\"500\""),
        ("code", "1.5"),
        ("message", "null"),
        ("message", "7"),
        ("request_id", "7"),
    ];
    refuses(&good, &changes, |json| ErrorPayload::read(json).err());
    for (number, code) in
        [("503", Code::Unavailable), ("418", Code::Internal), ("-7", Code::Internal)]
    {
        let text = with(&good, "code", json!("N")).replace("\"N\"", number);
        assert_eq!(reading(&text, |json| ErrorPayload::read(json).expect("an error").code()), code);
    }
    let hubs = Failure::rate_limited("slow down", 3).for_request("r-1").with_hint("wait").payload();
    reading(&hubs, |json| {
        let read = ErrorPayload::read(json).expect("an error");
        assert_eq!((read.code(), read.message), (Code::TooManyRequests, "slow down"));
        assert_eq!(
            (read.request_id, read.retryable, read.hint),
            (Some("r-1"), Some(true), Some("wait"))
        );
    });
}

#[test]
fn a_hello_keeps_its_promises_or_is_refused() {
    let good =
        json!({"nonce": 7, "name": ["Ann"], "capabilities": ["a", {"resource": "b"}], "x": 1});
    let many = json!((0..101).map(|n| n.to_string()).collect::<Vec<_>>()).to_string();
    let long = json!("x".repeat(257)).to_string();
    let about = json!([{"resource": "a", "description": "x".repeat(1_025)}]).to_string();
    let far = json!(format!("https://a.example/{}", "x".repeat(2_048))).to_string();
    refuses(
        &good,
        &[
            ("nonce", &long),
            ("name", &long),
            ("name", r#""a\u202eb""#),
            ("capabilities", "[\"\"]"),
            ("capabilities", r#"[{"resource":"a","price":"1"}]"#),
            ("capabilities", r#"[{"resource":"a","price":-1}]"#),
            ("capabilities", r#"["a",{"resource":"a"}]"#),
            ("capabilities", &about),
            ("capabilities", &many),
            ("endpoint", "\"agent.example\""),
            ("endpoint", "\"ftp://agent.example\""),
            ("endpoint", &far),
        ],
        |json| Hello::read(json).err(),
    );
    reading(&good.to_string(), |json| {
        let hello = Hello::read(json).expect("a hello");
        assert_eq!((hello.nonce, hello.name, hello.inbox), (None, None, false));
        assert_eq!(hello.capabilities.map(|list| list.len()), Some(2));
    });
    assert!(reading("{}", |json| Hello::read(json).expect("a hello") == Hello::default()));
    for name in ["☁\u{fe0f} Weather", "می\u{200c}خواهم"] {
        reading(&format!(r#"{{"name":"{name}"}}"#), |json| {
            assert_eq!(Hello::read(json).expect("a hello").name, Some(name));
        });
    }
}

#[test]
fn members_of_another_shape_are_passed_over() {
    let strange = [
        json!({"name": ""}),
        json!({"capabilities": "a"}),
        json!({"capabilities": {}}),
        json!({"capabilities": [7, {}, {"resource": 1}, null]}),
        json!({"endpoint": 7, "inbox": "yes"}),
        json!({"endpoint": {}, "inbox": 1}),
    ];
    let literal = [foreign("HELLO"), foreign("STATUS")].concat();
    for text in strange.iter().map(Value::to_string).chain(literal) {
        let hello = reading(&text, |json| Hello::read(json).expect("a hello") == Hello::default());
        assert!(hello, "{text}");
        assert!(reading(&text, |json| StatusUpdate::read(json).expect("a status")
            == StatusUpdate::default()));
    }
    let mixed = json!({"capabilities": [{"name": "x"}, "a", 7, {"resource": "b"}]}).to_string();
    let read = reading(&mixed, |json| {
        let known = Hello::read(json).expect("a hello").capabilities.expect("some are known");
        known.iter().map(|one| one.resource.to_owned()).collect::<Vec<_>>()
    });
    assert_eq!(read, ["a", "b"]);
    // An empty list is a known shape: the agent offers nothing any more.
    assert!(reading(r#"{"capabilities":[]}"#, |json| {
        Hello::read(json).expect("a hello").capabilities == Some(Vec::new())
    }));
}

#[test]
fn a_status_in_other_words_is_passed_over() {
    for (text, status) in [
        (r#"{"status":"busy"}"#, Some(AgentStatus::Busy)),
        (r#"{"status":"so-so"}"#, None),
        (r#"{"status":7}"#, None),
        (r#"{}"#, None),
    ] {
        assert_eq!(
            reading(text, |json| StatusUpdate::read(json).expect("a status").status),
            status
        );
    }
    let good = json!({"status": "idle"});
    refuses(&good, &[("capabilities", "[\"\"]")], |json| StatusUpdate::read(json).err());
    for status in AgentStatus::ALL {
        assert_eq!(AgentStatus::read(status.as_str()), Some(status));
    }
}

#[test]
fn the_hubs_answer_is_the_books() {
    let text = MessageStatus::accepted("m-1", Some(("r-1", RequestState::Pending))).write();
    assert_eq!(
        text,
        r#"{"status":"accepted","message_id":"m-1","request_id":"r-1","state":"PENDING"}"#
    );
    assert_eq!(
        MessageStatus::accepted("m-1", None).write(),
        r#"{"status":"accepted","message_id":"m-1"}"#
    );
    assert_eq!(
        MessageStatus::offer_closed("o-1", "r-1").write(),
        r#"{"status":"offer_closed","message_id":"o-1","request_id":"r-1"}"#
    );
    assert!(reading(r#"{"status":"idle"}"#, |json| MessageStatus::read(json).is_none()));
}

#[test]
fn what_is_written_is_read() {
    let cost = Credits::from_micros(5_250_001);
    let request = Request {
        resource: "agora:\"x\":v1",
        params: r#"{"q": [1.0]}"#,
        budget: Some(Budget { max: Some(cost), currency: Some("credits") }),
        timeout: Some(Millis(7)),
    };
    reading(&request.write(), |json| assert_eq!(Request::read(json).as_ref(), Ok(&request)));
    let offer = Offer { request_id: "r\n", cost, ttl: Millis(1), eta: Millis(0) };
    reading(&Offer { request_id: "r", ..offer }.write(), |json| {
        assert_eq!(Offer::read(json), Ok(Offer { request_id: "r", ..offer }));
    });
    let accept = Accept { offer_id: "o", payment_proof: Some("\u{1}tx") };
    reading(&accept.write(), |json| assert_eq!(Accept::read(json), Ok(accept)));
    for status in [ResultStatus::Success, ResultStatus::Partial, ResultStatus::FinalPartial] {
        let output = ResultPayload { request_id: "r", status, data: "{\"a\" :1}" };
        reading(&output.write(), |json| assert_eq!(ResultPayload::read(json), Ok(output)));
    }
    let failed = ErrorPayload {
        number: 418,
        message: "é",
        request_id: Some("r"),
        retryable: None,
        hint: None,
    };
    reading(&failed.write(), |json| assert_eq!(ErrorPayload::read(json), Ok(failed)));
    let capability = Capability { resource: "a", price: Some(cost), description: Some("d") };
    let plain = Capability { resource: "b", price: None, description: None };
    let hello = Hello {
        nonce: Some("n"),
        name: Some("Ann"),
        capabilities: Some(vec![capability, plain]),
        endpoint: Some("https://a.example/x"),
        inbox: true,
    };
    reading(&hello.write(), |json| assert_eq!(Hello::read(json).as_ref(), Ok(&hello)));
    let heard =
        StatusUpdate { status: Some(AgentStatus::Offline), capabilities: Some(vec![plain]) };
    reading(&heard.write(), |json| assert_eq!(StatusUpdate::read(json).as_ref(), Ok(&heard)));
    let welcome = Welcome {
        nonce: Some("n"),
        hello_id: Some("h"),
        hello_sender: Some("did:key:a"),
        inbox_token: Some("at_1"),
        inbox_token_expires_at: Some(Timestamp(1_774_000_800_000)),
        hub: Some("did:key:h"),
        webhook_secret: Some("whsec_1"),
    };
    reading(&welcome.write(), |json| assert_eq!(Welcome::read(json), Ok(welcome)));
    let notice = MessageStatus::accepted("m", Some(("r", RequestState::Failed)));
    reading(&notice.write(), |json| assert_eq!(MessageStatus::read(json), Some(notice)));
}
