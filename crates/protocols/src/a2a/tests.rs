//! Tests of the wire forms. The worked exchanges of the requirements are a fixture, whole.

use proptest::prelude::*;
use serde_json::Value;

use super::wire::Version;
use super::wire::content::{self, OutputForm};
use super::wire::error::{A2aError, Reason};
use super::wire::message::{Message, Part, PartContent, Role};
use super::wire::params::{ListParams, PushConfig, SendParams, TaskParams};
use super::wire::rpc::{Method, RpcRequest, check_version};
use super::wire::task::{Artifact, StreamEvent, TaskState};
use crate::kit::ijson;
use crate::kit::jcs;
use crate::kit::query::Query;

fn exchanges() -> Value {
    serde_json::from_str(include_str!("fixtures/flows.json")).unwrap()
}

/// All values with this name anywhere in the exchanges.
fn members<'v>(value: &'v Value, name: &str, found: &mut Vec<&'v Value>) {
    match value {
        Value::Object(object) => {
            found.extend(object.get(name));
            object.values().for_each(|value| members(value, name, found));
        }
        Value::Array(items) => items.iter().for_each(|value| members(value, name, found)),
        _ => {}
    }
}

fn read_event(text: &str, version: Version) -> StreamEvent {
    let mut wrong = Vec::new();
    let json = ijson::read(text.as_bytes()).unwrap();
    let event = StreamEvent::read(&json, version, &mut wrong);
    assert_eq!(wrong, [], "{text}");
    event.unwrap()
}

fn read_message(text: &str, version: Version) -> Result<Message, Vec<String>> {
    let mut wrong = Vec::new();
    let json = ijson::read(text.as_bytes()).unwrap();
    let message = Message::read(&json, "message", version, &mut wrong);
    let fields: Vec<String> = wrong.into_iter().map(|one| one.field).collect();
    if fields.is_empty() { Ok(message) } else { Err(fields) }
}

/// The canonical form of JSON text.
fn canonical(text: &str) -> String {
    jcs::canonicalize(&ijson::read(text.as_bytes()).unwrap()).unwrap()
}

#[test]
fn every_result_of_the_worked_exchanges_is_read_and_written_back_the_same() {
    let all = exchanges();
    let mut results = Vec::new();
    members(&all, "result", &mut results);
    let mut events = 0;
    for result in results {
        let is_old = result.get("kind").is_some();
        let is_event = is_old || result.get("task").is_some() || result.get("message").is_some();
        if !is_event {
            continue;
        }
        let version = if is_old { Version::V03 } else { Version::V1 };
        let text = result.to_string();
        let written = read_event(&text, version).write(version, true);
        assert_eq!(canonical(&written), canonical(&text));
        events += 1;
    }
    assert!(events >= 8, "{events} results were found");
}

#[test]
fn every_event_of_the_worked_streams_is_read_and_written_back_the_same() {
    let all = exchanges();
    let mut bodies = Vec::new();
    members(&all, "body", &mut bodies);
    let streams =
        bodies.into_iter().filter_map(Value::as_str).filter(|body| body.contains("data: "));
    let mut events = 0;
    for line in streams.flat_map(str::lines).filter_map(|line| line.strip_prefix("data: ")) {
        let json: Value = serde_json::from_str(line).unwrap();
        let text = json.get("result").unwrap_or(&json).to_string();
        let written = read_event(&text, Version::V1).write(Version::V1, true);
        assert_eq!(canonical(&written), canonical(&text));
        events += 1;
    }
    assert_eq!(events, 8);
}

#[test]
fn every_send_of_the_worked_exchanges_is_read() {
    let all = exchanges();
    let mut params = Vec::new();
    members(&all, "params", &mut params);
    let sends = params.into_iter().filter(|params| params.get("message").is_some());
    let mut count = 0;
    for params in sends {
        let version = match params["message"].get("kind") {
            Some(_) => Version::V03,
            None => Version::V1,
        };
        let text = params.to_string();
        let read = SendParams::read(&ijson::read(text.as_bytes()).unwrap(), version).unwrap();
        assert_eq!(read.message.role, Role::User);
        count += 1;
    }
    assert!(count >= 8, "{count} sends were found");
}

#[cfg(feature = "server")]
#[test]
fn the_card_of_the_worked_exchange_is_signed_as_printed() {
    use super::wire::agent_card::{AgentCard, CardForm, CardSkill, Extension};
    use crate::kit::ed25519::SecretKey;
    use rialto_engine::secret::HubSecret;

    let all = exchanges();
    let printed = &all["1_card"][0]["response"]["body"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| value.as_array().unwrap().iter().map(text).collect::<Vec<_>>();
    let extension = |value: &Value| Extension {
        uri: text(&value["uri"]),
        description: text(&value["description"]),
        required: false,
        params: value.get("params").map(Value::to_string),
    };
    let skill = |value: &Value| CardSkill {
        id: text(&value["id"]),
        name: text(&value["name"]),
        description: text(&value["description"]),
        tags: texts(&value["tags"]),
    };
    let list = |value: &Value| value.as_array().unwrap().clone();
    let card = AgentCard {
        name: text(&printed["name"]),
        description: text(&printed["description"]),
        version: text(&printed["version"]),
        organization: text(&printed["provider"]["organization"]),
        hub_url: text(&printed["provider"]["url"]),
        url: text(&printed["supportedInterfaces"][0]["url"]),
        needs_key: true,
        extensions: list(&printed["capabilities"]["extensions"]).iter().map(extension).collect(),
        input_modes: texts(&printed["defaultInputModes"]),
        output_modes: texts(&printed["defaultOutputModes"]),
        skills: list(&printed["skills"]).iter().map(skill).collect(),
    };
    let secret = HubSecret::from_bytes(std::array::from_fn(|at| at as u8));
    let key = SecretKey::from_seed(&secret.derive("rialto a2a card v1", "card"));
    let strict = card.write_signed(CardForm::Strict, &key);
    assert_eq!(canonical(&strict), canonical(&printed.to_string()));
}

#[test]
fn members_are_read_in_camel_and_snake_case_and_null_is_absent() {
    let snake = r#"{"message_id":"m","role":1,"context_id":null,"parts":[{"raw":"-_8","media_type":"x/y"}],"new":1}"#;
    let message = read_message(snake, Version::V1).unwrap();
    let part = &message.parts[0];
    assert_eq!((message.role, message.context_id), (Role::User, None));
    assert_eq!(part.content, PartContent::Raw("+/8=".to_owned()), "standard base64 is written");
    assert_eq!(part.media_type.as_deref(), Some("x/y"));
    let params = ijson::read(br#"{"id":"t","historyLength":"3"}"#).unwrap();
    assert_eq!(TaskParams::read(&params, Version::V1).unwrap().history_length, Some(3));
    let filter = ijson::read(br#"{"status":"UNRECOGNIZED","pageSize":null}"#).unwrap();
    assert_eq!(ListParams::read(&filter, Version::V1).unwrap(), ListParams::default());
}

#[test]
fn everything_that_is_wrong_is_reported_with_its_place() {
    let bad =
        r#"{"role":"ROLE_USER","parts":[{"text":1},{},{"text":"a","url":"b"}],"metadata":[]}"#;
    let fields = read_message(bad, Version::V1).unwrap_err();
    let expected = [
        "message.messageId",
        "message.parts[0].text",
        "message.parts[1]",
        "message.parts[2]",
        "message.metadata",
    ];
    assert_eq!(fields, expected);
    let agent = r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"a"}]}}"#;
    let wrong = SendParams::read(&ijson::read(agent.as_bytes()).unwrap(), Version::V1).unwrap_err();
    assert_eq!(wrong[0].field, "message.role");
    let query = Query::read("pageSize=101&includeArtifacts=maybe&else=1").unwrap();
    let wrong = ListParams::read_query(&query).unwrap_err();
    let fields: Vec<&str> = wrong.iter().map(|one| one.field.as_str()).collect();
    assert_eq!(fields, ["includeArtifacts", "pageSize"]);
}

#[test]
fn numbers_in_data_keep_their_digits() {
    let text = r#"{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"n":42.0,"big":12345678901234567890}}]}"#;
    for version in [Version::V1, Version::V03] {
        let written = read_message(text, Version::V1).unwrap().write(version);
        assert!(written.contains(r#"{"n":42.0,"big":12345678901234567890}"#), "{written}");
    }
}

#[test]
fn version_0_3_wraps_data_that_is_not_an_object_and_unwraps_it_again() {
    let part = Part { metadata: Some(r#"{"a":1}"#.to_owned()), ..Part::data("[1,2]") };
    let written = part.write(Version::V03);
    assert!(written.contains(r#""data":{"value":[1,2]}"#), "{written}");
    let mut wrong = Vec::new();
    let json = ijson::read(written.as_bytes()).unwrap();
    assert_eq!(Part::read(&json, "part", Version::V03, &mut wrong), part);
    assert_eq!(wrong, []);
}

#[test]
fn calls_are_read_or_refused_with_their_id() {
    let call = RpcRequest::read(br#"{"jsonrpc":"2.0","id":"r-1","method":"tasks/get"}"#, true);
    let call = call.unwrap();
    assert_eq!((call.method, call.version), (Method::GetTask, Version::V03));
    assert_eq!((call.id.as_str(), call.params.as_str()), (r#""r-1""#, "{}"));
    let refused: [(&[u8], bool, i32, &str); 8] = [
        (b"[]", true, -32600, "null"),
        (br#"{"jsonrpc":"1.0","id":7,"method":"GetTask"}"#, true, -32600, "7"),
        (br#"{"jsonrpc":"2.0","id":7}"#, true, -32600, "7"),
        (br#"{"jsonrpc":"2.0","id":1.5,"method":"GetTask"}"#, true, -32600, "null"),
        (br#"{"jsonrpc":"2.0","id":7,"method":"Dance"}"#, true, -32601, "7"),
        (br#"{"jsonrpc":"2.0","id":7,"method":"GetTask","params":[]}"#, true, -32602, "7"),
        (b"{", true, -32700, "null"),
        (b"hello", false, -32005, "null"),
    ];
    for (body, is_json, code, id) in refused {
        let failure = RpcRequest::read(body, is_json).unwrap_err();
        let shown = String::from_utf8_lossy(body);
        assert_eq!((failure.error.reason.rpc_code(), failure.id.as_str()), (code, id), "{shown}");
    }
}

#[test]
fn a_stated_version_must_fit_the_name_of_the_method() {
    for (stated, meant, good) in [
        (None, Version::V1, true),
        (Some(""), Version::V03, true),
        (Some("1.0"), Version::V1, true),
        (Some("1.0.1"), Version::V1, true),
        (Some("0.3.0"), Version::V03, true),
        (Some("0.3"), Version::V1, false),
        (Some("1.0"), Version::V03, false),
        (Some("2.0"), Version::V1, false),
        (Some("1"), Version::V1, false),
    ] {
        let checked = check_version(stated, meant).map_err(|error| error.reason);
        let expected = if good { Ok(()) } else { Err(Reason::VersionNotSupported) };
        assert_eq!(checked, expected, "{stated:?} {meant:?}");
    }
}

#[test]
fn errors_have_the_code_the_status_and_the_details_of_the_table() {
    let error = A2aError::task_not_found("t-1");
    let rpc: Value = serde_json::from_str(&error.write_rpc("7", Version::V1)).unwrap();
    assert_eq!((&rpc["id"], &rpc["error"]["code"]), (&7.into(), &(-32001).into()));
    let info = &rpc["error"]["data"][0];
    assert_eq!(
        (&info["reason"], &info["domain"]),
        (&"TASK_NOT_FOUND".into(), &"a2a-protocol.org".into())
    );
    assert_eq!(info["metadata"]["taskId"], "t-1");
    let http: Value = serde_json::from_str(&error.write_http()).unwrap();
    assert_eq!(
        (&http["error"]["code"], &http["error"]["status"]),
        (&404.into(), &"NOT_FOUND".into())
    );
    let old: Value = serde_json::from_str(&error.write_rpc("7", Version::V03)).unwrap();
    assert_eq!(old["error"]["data"]["reason"], "TASK_NOT_FOUND");
    // 0.3 does not have every code.
    let version = A2aError::new(Reason::VersionNotSupported, "no");
    let old: Value = serde_json::from_str(&version.write_rpc("null", Version::V03)).unwrap();
    let shown = (&old["error"]["code"], &old["error"]["data"]["reason"]);
    assert_eq!(shown, (&(-32603).into(), &"VERSION_NOT_SUPPORTED".into()));
    let invalid = A2aError::invalid_field("message.parts", "must have at least one part");
    for version in [Version::V1, Version::V03] {
        assert!(invalid.write_rpc("1", version).contains(r#""field":"message.parts""#));
    }
    // JSON-RPC answers with 200 but for what the transport itself refuses.
    let statuses = Reason::ALL.map(|reason| A2aError::new(reason, "").rpc_http_status());
    let others: Vec<u16> = statuses.into_iter().filter(|status| *status != 200).collect();
    assert_eq!(others, [401, 403, 429, 503, 409, 422, 413, 415]);
}

#[test]
fn every_error_of_the_table_has_its_three_forms() {
    let table = [
        (Reason::TaskNotFound, "TASK_NOT_FOUND", -32001, 404, "NOT_FOUND"),
        (Reason::TaskNotCancelable, "TASK_NOT_CANCELABLE", -32002, 400, "FAILED_PRECONDITION"),
        (Reason::UnsupportedOperation, "UNSUPPORTED_OPERATION", -32004, 400, "FAILED_PRECONDITION"),
        (
            Reason::ContentTypeNotSupported,
            "CONTENT_TYPE_NOT_SUPPORTED",
            -32005,
            400,
            "INVALID_ARGUMENT",
        ),
        (
            Reason::ExtensionSupportRequired,
            "EXTENSION_SUPPORT_REQUIRED",
            -32008,
            400,
            "FAILED_PRECONDITION",
        ),
        (Reason::VersionNotSupported, "VERSION_NOT_SUPPORTED", -32009, 400, "FAILED_PRECONDITION"),
        (Reason::ParseError, "PARSE_ERROR", -32700, 400, "INVALID_ARGUMENT"),
        (Reason::InvalidRequest, "INVALID_REQUEST", -32600, 400, "INVALID_ARGUMENT"),
        (Reason::InvalidParams, "INVALID_PARAMS", -32602, 400, "INVALID_ARGUMENT"),
        (Reason::MethodNotFound, "METHOD_NOT_FOUND", -32601, 404, "NOT_FOUND"),
        (Reason::InternalError, "INTERNAL_ERROR", -32603, 500, "INTERNAL"),
        (Reason::Unauthenticated, "UNAUTHENTICATED", -32050, 401, "UNAUTHENTICATED"),
        (Reason::Forbidden, "FORBIDDEN", -32051, 403, "PERMISSION_DENIED"),
        (Reason::RateLimited, "RATE_LIMITED", -32052, 429, "RESOURCE_EXHAUSTED"),
        (Reason::Unavailable, "UNAVAILABLE", -32053, 503, "UNAVAILABLE"),
        (Reason::Conflict, "CONFLICT", -32054, 409, "ABORTED"),
        (Reason::IdempotencyConflict, "IDEMPOTENCY_CONFLICT", -32055, 422, "FAILED_PRECONDITION"),
        (Reason::TooLarge, "TOO_LARGE", -32056, 413, "INVALID_ARGUMENT"),
        (Reason::UnsupportedEncoding, "UNSUPPORTED_ENCODING", -32056, 415, "INVALID_ARGUMENT"),
        (Reason::NotFound, "NOT_FOUND", -32601, 404, "NOT_FOUND"),
    ];
    assert_eq!(table.map(|row| row.0), Reason::ALL);
    for (reason, name, code, http, status) in table {
        let error = A2aError::new(reason, "text");
        let own = (-32056..=-32050).contains(&code) || reason == Reason::NotFound;
        let domain = if own { "rialto" } else { "a2a-protocol.org" };
        let info = serde_json::json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": name, "domain": domain, "metadata": {}});
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let expected = serde_json::json!({"jsonrpc": "2.0", "id": 1,
            "error": {"code": code, "message": "text", "data": [info]}});
        assert_eq!(read(&error.write_rpc("1", Version::V1)), expected);
        // 0.3 has neither of these two.
        let old = if [-32008, -32009].contains(&code) { -32603 } else { code };
        let expected = serde_json::json!({"jsonrpc": "2.0", "id": 1,
            "error": {"code": old, "message": "text", "data": {"reason": name}}});
        assert_eq!(read(&error.write_rpc("1", Version::V03)), expected);
        let expected = serde_json::json!({"error": {"code": http, "status": status,
            "message": "text", "details": [info]}});
        assert_eq!(read(&error.write_http()), expected);
        assert_eq!(error.http_status(), http);
    }
}

#[test]
fn no_form_of_a_push_configuration_shows_its_secrets() {
    let secret = "throw-away-secret";
    let text = format!(
        r#"{{"taskId":"t","url":"https://a.example","token":"{secret}","authentication":{{"scheme":"Bearer","credentials":"{secret}"}}}}"#
    );
    let config = PushConfig::read(&ijson::read(text.as_bytes()).unwrap(), Version::V1).unwrap();
    assert_eq!(config.token.as_deref(), Some(secret));
    for version in [Version::V1, Version::V03] {
        let written = config.write(version);
        assert!(!written.contains(secret) && written.contains("Bearer"), "{written}");
    }
}

#[test]
fn a_message_is_an_input_and_an_output_is_artifacts() {
    let data = |json: &str| Part::data(json);
    let inputs = [
        (vec![data(r#"{"n":1}"#)], r#"{"n":1}"#),
        (vec![Part::text("a"), Part::text("b")], r#"{"text":"a\nb"}"#),
        (vec![data(r#"{"n":1}"#), Part::text("a")], r#"{"n":1,"text":"a"}"#),
        (vec![data(r#"{"text":"own"}"#), Part::text("a")], r#"{"text":"own"}"#),
        (vec![data("[1]")], r#"{"parts":[{"data":[1],"mediaType":"application/json"}]}"#),
    ];
    for (parts, input) in inputs {
        assert_eq!(content::input_of(&parts), input);
    }
    let task = |artifacts: Vec<Artifact>| OutputForm::Task { artifacts, message: None };
    let result = |part: Part| task(vec![Artifact::new("result", vec![part])]);
    assert_eq!(content::form_of_output(r#"{"text":"hi"}"#), result(Part::text("hi")));
    assert_eq!(content::form_of_output(r#"{"n":1}"#), result(Part::data(r#"{"n":1}"#)));
    let own = r#"{"artifacts":[{"artifactId":"a","parts":[{"text":"x"}]}]}"#;
    let artifact = Artifact::new("a", vec![Part::text("x")]);
    assert_eq!(content::form_of_output(own), task(vec![artifact.clone()]));
    assert_eq!(content::form_of_output(r#"{"artifacts":[]}"#), task(Vec::new()));
    let told = r#"{"message":{"parts":[{"text":"x"}]},"artifacts":[]}"#;
    let form = OutputForm::Task { artifacts: Vec::new(), message: Some(vec![Part::text("x")]) };
    assert_eq!(content::form_of_output(told), form);
    let none = content::artifact_of_part(r#"{"artifacts":[]}"#, 3);
    assert_eq!(none, Artifact::new("part-3", vec![data(r#"{"artifacts":[]}"#)]));
    let message = r#"{"message":{"parts":[{"text":"x"}]}}"#;
    assert_eq!(content::form_of_output(message), OutputForm::Message(vec![Part::text("x")]));
    let broken = r#"{"artifacts":[{"artifactId":"a"}]}"#;
    assert_eq!(content::form_of_output(broken), result(Part::data(broken)));
    assert_eq!(content::output_of_artifacts(&[artifact], None), r#"{"text":"x"}"#);
    // A chunk continues the text before it; its own texts are lines.
    let mut parts = vec![Part::text("Take ")];
    content::add_chunk(&mut parts, vec![Part::text("the A2"), Part::text("and stop")]);
    content::add_chunk(&mut parts, vec![Part::text(".")]);
    let artifact = Artifact::new("a", parts);
    let text = r#"{"text":"Take the A2\nand stop."}"#;
    assert_eq!(content::output_of_artifacts(&[artifact], None), text);
    let mut parts = vec![data("1")];
    content::add_chunk(&mut parts, vec![Part::text("a")]);
    content::add_chunk(&mut parts, vec![data("2"), Part::text("b")]);
    assert_eq!(parts, [data("1"), Part::text("a"), data("2"), Part::text("b")]);
}

#[test]
fn modes_allow_types_and_decide_the_form_of_parts() {
    let modes = |list: &[&str]| list.iter().map(|mode| (*mode).to_owned()).collect::<Vec<_>>();
    for (mode, media_type, allowed) in [
        ("*/*", "image/png", true),
        ("text/*", "text/csv; charset=utf-8", true),
        ("text", "text/csv", true),
        ("text/plain", "text/csv", false),
        ("Application/JSON", "application/json", true),
    ] {
        assert_eq!(content::is_type_allowed(&modes(&[mode]), media_type), allowed, "{mode}");
    }
    let adapted = content::adapt_parts(vec![Part::data("[1]")], &modes(&["text/plain"]));
    assert_eq!(adapted, [Part::text("[1]")]);
    let adapted = content::adapt_parts(vec![Part::text("a")], &modes(&["application/json"]));
    assert_eq!(adapted, [Part::data(r#"{"text":"a"}"#)]);
}

#[test]
fn states_have_a_name_in_both_versions_and_a_number() {
    for number in 1..=8 {
        let state = TaskState::from_number(number).unwrap();
        for version in [Version::V1, Version::V03] {
            assert_eq!(TaskState::parse(state.name(version), version), Some(state));
        }
    }
    assert_eq!((TaskState::from_number(0), TaskState::from_number(9)), (None, None));
}

fn any_part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        any::<String>().prop_map(PartContent::Text),
        Just(PartContent::Data(r#"{"a":[1.50,null]}"#.to_owned())),
        Just(PartContent::Data("[true]".to_owned())),
        Just(PartContent::Raw("+/8=".to_owned())),
        "[a-z]{1,9}".prop_map(PartContent::Url),
    ];
    let metadata = proptest::option::of(Just(r#"{"k":"v"}"#.to_owned()));
    (content, proptest::option::of("[a-z.]{1,9}"), metadata).prop_map(
        |(content, name, metadata)| {
            let is_file = matches!(content, PartContent::Raw(_) | PartContent::Url(_));
            let is_data = matches!(content, PartContent::Data(_));
            // 0.3 has names for files alone, and no media type for texts.
            let media_type = if is_data { Some("application/json".to_owned()) } else { None };
            Part { content, filename: name.filter(|_| is_file), media_type, metadata }
        },
    )
}

proptest! {
    #[test]
    fn a_message_that_is_written_and_read_is_the_same(
        parts in proptest::collection::vec(any_part(), 1..5),
        context in proptest::option::of("[a-z0-9-]{1,40}"),
        is_agent in any::<bool>(),
    ) {
        let message = Message {
            context_id: context,
            role: if is_agent { Role::Agent } else { Role::User },
            extensions: vec!["urn:x".to_owned()],
            ..Message::of_agent("m-1".to_owned(), parts)
        };
        for version in [Version::V1, Version::V03] {
            let written = message.write(version);
            prop_assert_eq!(read_message(&written, version), Ok(message.clone()));
        }
    }
}
