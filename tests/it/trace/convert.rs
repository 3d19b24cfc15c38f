//! `rialto convert`: the specs' own requests, from every protocol into every other.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use rialto_protocols::ALL;
use serde_json::{Value, json};

use super::kit::assert_accounted;
use crate::crossing::golden::mask::Mask;
use crate::kit::output_given;

/// A request of each protocol, as its spec prints it.
fn example(protocol: &str) -> Value {
    let text = match protocol {
        "registry" => {
            r#"{"job_id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","orchestrator_id":"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f","skill_name":"analyze_text","input_data":{"text":"Revenue for Q3 was 42000"},"budget":0.15,"currency":"chorus_credits_v1","callback_url":"https://orchestrator.example/results","tone":"dry"}"#
        }
        "openclaw" => rialto_protocols::openclaw::wire::Kind::Request.example(),
        "agora" => rialto_protocols::agora::wire::error::ENVELOPE_EXAMPLE,
        "relay" => rialto_protocols::relay::wire::error::MESSAGE_EXAMPLE,
        "clara" => return task(),
        "a2a" => {
            r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"tenant":"","message":{"messageId":"m-1","contextId":"ctx-1","role":"ROLE_USER","parts":[{"data":{"text":"Q3 was $42,000","n":1.50}}],"metadata":{"urn:rialto:a2a:hire:v1":{"skill":"analyze_text","budget":"0.15","deadline":"2026-11-17T10:00:00Z","queue":false,"key":"order-7"},"tone":"dry"},"extensions":["urn:rialto:a2a:hire:v1"],"referenceTaskIds":["2f0c4d68-5ccb-4d0c-8f3f-3f1f0e6a2b11"]},"configuration":{"acceptedOutputModes":["application/json"],"returnImmediately":true,"historyLength":0,"taskPushNotificationConfig":{"url":"https://client.example/hook","token":"tok-1"}},"metadata":{"shade":"blue"}}}"#
        }
        new => panic!("{new} has no example here"),
    };
    serde_json::from_str(text).expect("JSON")
}

fn task() -> Value {
    let example = rialto_protocols::clara::wire::register::REGISTER_TASK;
    let tags: Vec<Value> =
        example.tags.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    json!({"Tags": tags, "Data": example.data})
}

fn convert(arguments: &[&str], request: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
    let output = output_given(command.arg("convert").args(arguments), request).expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// Checks that the notes cover the whole request.
#[track_caller]
fn assert_all_told(from: &str, request: &Value, notes: &Value) {
    if from != "clara" {
        return assert_accounted(request, notes, "");
    }
    let told = |field: &str| {
        let all = notes.as_array().expect("notes").iter();
        all.filter(|note| note["field"] == field && note["fate"] != "defaulted").count()
    };
    for tag in request["Tags"].as_array().expect("tags") {
        let name = tag["name"].as_str().expect("a name");
        assert_eq!(told(name), 1, "{name} in {notes}");
    }
    assert_eq!(told("/Data"), 1, "{notes}");
}

#[test]
fn every_request_can_be_shown_to_every_protocol_and_every_member_is_told_of() {
    for from in ALL.iter().map(|face| face.id()) {
        for to in ALL.iter().map(|face| face.id()) {
            let request = example(from.as_str());
            let line = ["--from", from.as_str(), "--to", to.as_str(), "--json"];
            let (code, out, error) = convert(&line, &request.to_string());
            assert_eq!(code, 0, "{from} to {to}: {out} {error}");
            let document: Value = serde_json::from_str(&out).expect("one JSON document");
            assert_all_told(from.as_str(), &request, &document["notes"]);
            let given = document["given"].as_str().expect("a message");
            let given: Value = serde_json::from_str(given).expect("JSON");
            let notes = document["notes"].as_array().expect("notes");
            if from == to {
                assert!(notes.iter().all(|note| note["fate"] == "kept"), "{from}: {notes:?}");
                continue;
            }
            // Whatever its name there, the input is the same.
            let carried = notes.iter().find(|note| note["part"] == "input").expect("an input");
            assert!(carried["fate"] == "kept" || carried["fate"] == "renamed", "{carried}");
            assert!(given.is_object(), "{given}");
        }
    }
}

/// What `rialto convert` prints with its explanation, without what differs between runs.
fn explained(from: &str, to: &str, request: &str) -> String {
    let line = ["--from", from, "--to", to, "--explain"];
    let (code, out, error) = convert(&line, request);
    assert_eq!(code, 0, "{from} to {to}: {error}");
    let told = format!("{from} to {to}\n\n{request}\n\n{out}\n{error}");
    Mask::new("http://").over(&told)
}

#[test]
fn every_conversion_to_and_from_a2a_reads_as_it_is_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/it/trace/converted");
    let write = std::env::var_os("RIALTO_GOLDEN").is_some_and(|word| word == "write");
    let all = || ALL.iter().map(|face| face.id());
    let pairs = all().flat_map(|from| all().map(move |to| (from, to)));
    let a2a = rialto_protocols::a2a::ID;
    let mut expected = BTreeSet::new();
    for (from, to) in pairs.filter(|(from, to)| [from, to].contains(&&a2a)) {
        let request = example(from.as_str()).to_string();
        let told = explained(from.as_str(), to.as_str(), &request);
        let name = format!("{from}-{to}.txt");
        if write {
            std::fs::write(folder.join(&name), &told).expect("it can be written");
        }
        let kept = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
        assert_eq!(kept, told, "{name}; RIALTO_GOLDEN=write rewrites it");
        expected.insert(name);
    }
    let files = std::fs::read_dir(folder).expect("a folder").flatten();
    let files: BTreeSet<_> =
        files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(files, expected);
}

#[test]
fn the_request_goes_to_standard_output_and_the_notes_beside_it() {
    let request = example("registry").to_string();
    let line = ["--from", "registry", "--to", "openclaw", "--explain", "-"];
    let (code, out, error) = convert(&line, &request);
    assert_eq!(code, 0, "{error}");
    let given: Value = serde_json::from_str(&out).expect("one message");
    assert_eq!(given["capability_id"], "analyze_text");
    assert_eq!(given["input_data"], json!({"text": "Revenue for Q3 was 42000"}));
    assert_eq!(given["meta"], json!({"tone": "dry"}));
    assert_eq!(given["budget"], json!(0.15));
    let line = |start: &str| error.lines().find(|line| line.trim_start().starts_with(start));
    assert!(line("/skill_name").is_some_and(|line| line.contains("renamed")), "{error}");
    assert!(line("/callback_url").is_some_and(|line| line.contains("dropped")), "{error}");
    let (_, _, silent) = convert(&["--from", "registry", "--to", "openclaw"], &request);
    assert_eq!(silent, "", "no notes without the flag");
}

#[test]
fn what_is_no_request_is_refused_with_a_reason() {
    for (from, request, says) in [
        ("registry", r#"{"budget":1}"#, "skill_name"),
        ("openclaw", "{}", "request_id"),
        ("agora", r#"{"protocol":"agora/1.0"}"#, "id is required"),
        ("relay", r#"{"envelope":{}}"#, "original_text"),
        ("clara", r#"{"Tags":[{"name":"Action","value":"List-Agents"}]}"#, "Register-Task"),
        ("clara", "not JSON", "clara"),
        ("a2a", r#"{"message":{"messageId":"m-1","role":"ROLE_USER"}}"#, "parts"),
        ("a2a", r#"{"method":"SendMessage"}"#, "message is required"),
    ] {
        let (code, out, error) = convert(&["--from", from, "--to", "registry"], request);
        assert_eq!((code, out.as_str()), (1, ""), "{error}");
        assert!(error.contains(says), "{from}: {error}");
    }
    let (code, _, error) = convert(&["--from", "smoke", "--to", "agora"], "{}");
    assert_eq!(code, 2);
    assert!(error.contains("registry, relay, agora, openclaw, clara, a2a"), "{error}");
    let missing = ["--from", "registry", "--to", "agora", "no-such-file.json"];
    assert_eq!(convert(&missing, "").0, 2);
}
