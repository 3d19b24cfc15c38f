//! A2A in both versions: cards of other servers, messages with their parts, and calls.

use rialto_protocols::a2a::wire::Version;
use rialto_protocols::a2a::wire::content::{self, OutputForm};
use rialto_protocols::a2a::wire::error::A2aError;
use rialto_protocols::a2a::wire::message::{Message, Part};
use rialto_protocols::a2a::wire::params::{
    ListParams, PushConfig, PushParams, SendParams, TaskParams, read_tenant,
};
use rialto_protocols::a2a::wire::reader::Violations;
use rialto_protocols::a2a::wire::remote_card::{self, RemoteCard, SKILLS_MAX};
use rialto_protocols::a2a::wire::rpc::{Method, RpcRequest, check_version, write_result};
use rialto_protocols::a2a::wire::task::{Artifact, StreamEvent, Task};
use rialto_protocols::kit::ijson::{self, Json};
use rialto_protocols::kit::jws::{JwkSet, ProtectedHeader};
use rialto_protocols::kit::query::Query;
use rialto_protocols::kit::{jcs, sse};

use super::text;

const VERSIONS: [Version; 2] = [Version::V1, Version::V03];

/// Checks cards of other servers, and the key sets that sign them.
pub fn a2a_card(bytes: &[u8]) {
    let _ = JwkSet::parse(bytes);
    let Ok(json) = ijson::read(bytes) else { return };
    for text in remote_card::signed_texts(&json) {
        let again = ijson::read(text.as_bytes()).expect("what is signed is JSON");
        assert_eq!(jcs::canonicalize(&again).ok(), Some(text), "a signed text is not canonical");
    }
    match RemoteCard::read(&json) {
        Err(wrong) => refused(wrong),
        Ok(card) => {
            assert!(card.skills.len() <= SKILLS_MAX);
            if let Some(usable) = card.usable_interface() {
                assert!(card.interfaces.contains(usable));
            }
            for extension in &card.extensions {
                let _ = card.owner_token(&extension.uri);
            }
            for signature in &card.signatures {
                let header = ProtectedHeader::parse(&signature.protected);
                let _ = header.map(|header| {
                    JwkSet::parse(bytes).is_ok_and(|keys| keys.find(&header).is_some())
                });
            }
        }
    }
}

/// Checks messages, artifacts, tasks and events: refused, or the same after writing and reading.
pub fn a2a_parts(bytes: &[u8]) {
    let Ok(json) = ijson::read(bytes) else { return };
    for version in VERSIONS {
        let message = again(
            &json,
            |json, wrong| Some(Message::read(json, "", version, wrong)),
            |message| message.write(version),
        );
        if let Some(message) = message {
            contents(&message.parts);
        }
        let artifact = again(
            &json,
            |json, wrong| Some(Artifact::read(json, "", version, wrong)),
            |artifact| artifact.write(version),
        );
        if let Some(artifact) = artifact {
            let output = content::output_of_artifacts(std::slice::from_ref(&artifact), None);
            outputs(&output);
        }
        again(
            &json,
            |json, wrong| Task::read(json, "", version, wrong),
            |task| task.write(version),
        );
        again(
            &json,
            |json, wrong| StreamEvent::read(json, version, wrong),
            |event| {
                let mut data = event.write(version, false).into_bytes();
                sse::replace_newlines(&mut data);
                String::from_utf8(data).expect("text")
            },
        );
    }
    outputs(json.raw());
}

/// Checks calls: their parameters, and what they are answered with.
pub fn a2a_rpc(bytes: &[u8]) {
    if let Some(query) = text(bytes).and_then(|text| Query::read(text).ok()) {
        let _ = ListParams::read_query(&query).map_err(refused);
        let _ = TaskParams::read_query(String::new(), &query).map_err(refused);
        for version in VERSIONS {
            let _ = check_version(query.text("A2A-Version"), version);
        }
    }
    let request = match RpcRequest::read(bytes, true) {
        Ok(request) => request,
        Err(failure) => {
            let body = failure.error.write_rpc(&failure.id, failure.version);
            let body = ijson::read(body.as_bytes()).expect("an error is JSON");
            assert_eq!(body.get("id").map(Json::raw), Some(failure.id.as_str()));
            return;
        }
    };
    let RpcRequest { id, method, version, params } = request;
    assert_eq!(method.name(version).and_then(Method::parse), Some((method, version)));
    let body = write_result(&id, &params);
    let body = ijson::read(body.as_bytes()).expect("a result is JSON");
    assert_eq!(body.get("id").map(Json::raw), Some(id.as_str()), "the id changed");
    let params = ijson::read(params.as_bytes()).expect("parameters are JSON");
    for version in VERSIONS {
        match SendParams::read(&params, version) {
            Ok(send) => without_secrets(&send, version),
            Err(wrong) => refused(wrong),
        }
        match PushConfig::read(&params, version) {
            Ok(config) => {
                let shown = config.write(version);
                let shown = ijson::read(shown.as_bytes()).expect("a configuration is JSON");
                let shown = PushConfig::read(&shown, version).ok();
                assert!(shown.as_ref().is_none_or(has_no_secrets), "{shown:?} shows a secret");
            }
            Err(wrong) => refused(wrong),
        }
        let _ = TaskParams::read(&params, version).map_err(refused);
        let _ = ListParams::read(&params, version).map_err(refused);
        let _ = PushParams::read(&params, version).map_err(refused);
    }
    let _ = read_tenant(&params).map_err(refused);
}

/// What is kept of a send opens the same task, without the secrets of its push configuration.
fn without_secrets(send: &SendParams, version: Version) {
    let kept = send.without_secrets();
    let json = ijson::read(kept.as_bytes()).expect("what is kept is JSON");
    let again = SendParams::read(&json, version).expect("what is kept is a send");
    assert_eq!(again.message, send.message);
    assert_eq!(again.metadata, send.metadata);
    let push = again.configuration.push;
    assert_eq!(push.is_some(), send.configuration.push.is_some());
    assert!(push.as_ref().is_none_or(has_no_secrets), "{push:?} keeps a secret");
}

fn has_no_secrets(config: &PushConfig) -> bool {
    let authentication = config.authentication.as_ref();
    config.token.is_none() && authentication.is_none_or(|it| it.credentials.is_none())
}

/// Whatever is wrong is said in all forms of an error.
fn refused(wrong: Violations) {
    assert!(!wrong.is_empty(), "refused for no reason");
    let error = A2aError::invalid(wrong);
    let bodies = VERSIONS.map(|version| error.write_rpc("null", version));
    for body in bodies.iter().chain([&error.write_http()]) {
        assert!(ijson::read(body.as_bytes()).is_ok(), "an error is not valid JSON: {body}");
    }
}

/// What is read, if it is the same after writing and reading it again.
fn again<T: PartialEq + std::fmt::Debug>(
    json: &Json<'_>,
    read: impl Fn(&Json<'_>, &mut Violations) -> Option<T>,
    write: impl Fn(&T) -> String,
) -> Option<T> {
    let mut wrong = Violations::new();
    let first = read(json, &mut wrong).filter(|_| wrong.is_empty())?;
    let written = write(&first);
    let json = ijson::read(written.as_bytes()).expect("what we write is JSON");
    let second = read(&json, &mut wrong);
    assert!(wrong.is_empty(), "{written} is refused: {wrong:?}");
    assert_eq!(second.as_ref(), Some(&first), "it changes when it is written");
    Some(first)
}

/// The parts of a message are the input of a job, and have a form for every client.
fn contents(parts: &[Part]) {
    let input = content::input_of(parts);
    ijson::read(input.as_bytes()).expect("an input is JSON");
    for accepted in ["text/plain", "application/json", "*/*"] {
        let adapted = content::adapt_parts(parts.to_vec(), &[accepted.to_owned()]);
        assert_eq!(adapted.len(), parts.len());
        for part in &adapted {
            let written = part.write(Version::V1);
            ijson::read(written.as_bytes()).expect("a part is JSON");
        }
    }
}

/// An output of any worker is artifacts or a message, which clients can read.
fn outputs(output: &str) {
    let mut artifacts = vec![content::artifact_of_part(output, 1)];
    match content::form_of_output(output) {
        OutputForm::Task { artifacts: all, .. } => artifacts.extend(all),
        OutputForm::Message(parts) => artifacts.push(Artifact::new("message", parts)),
    }
    for artifact in artifacts {
        let written = artifact.write(Version::V1);
        // One more level may be too deep.
        let Ok(json) = ijson::read(written.as_bytes()) else { continue };
        let mut wrong = Violations::new();
        assert_eq!(Artifact::read(&json, "", Version::V1, &mut wrong), artifact);
        assert!(wrong.is_empty(), "{written} is refused: {wrong:?}");
    }
    let _ = content::is_last_chunk(output);
}
