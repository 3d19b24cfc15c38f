//! The API document: it is valid, its examples fit, and clients that other tools generate from it
//! complete a paid job. That answers are as documented is checked wherever a test calls the hub.

#[cfg(unix)]
mod foreign;

use std::collections::BTreeSet;

use rialto_hub::app::openapi::openapi_document;
use serde_json::Value;

use crate::kit::API_DOC;

/// Every operation of the document, with its method and path.
fn operations(document: &Value) -> Vec<(String, &str, &Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let all = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("methods");
        methods.iter().map(move |(method, operation)| (method.to_uppercase(), &**path, operation))
    });
    all.collect()
}

#[test]
fn every_operation_says_what_it_takes_and_what_it_answers() {
    let document = openapi_document();
    for (method, path, operation) in operations(&document) {
        let responses = operation["responses"].as_object().expect("responses");
        let success = |status: &String| status.starts_with('2') || status == "101";
        assert!(responses.keys().any(success), "{method} {path} has no success");
        assert!(responses.contains_key("500"), "{method} {path} has no errors");
        let parameters = operation["parameters"].as_array().expect("parameters");
        let in_path = |one: &&Value| one["in"] == "path";
        assert_eq!(parameters.iter().filter(in_path).count(), path.matches('{').count(), "{path}");
        for parameter in parameters {
            let described = parameter["schema"]["type"].is_string()
                || parameter["schema"]["type"].is_array()
                || parameter["schema"]["$ref"].is_string();
            assert!(described, "{method} {path}: {parameter}");
        }
        let body = &operation["requestBody"]["content"]["application/json"];
        assert!(body.is_null() || !body["example"].is_null(), "{method} {path} has no example");
    }
}

#[test]
fn every_example_of_a_request_fits_its_schema() {
    let document = openapi_document();
    for (method, path, operation) in operations(&document) {
        let example = &operation["requestBody"]["content"]["application/json"]["example"];
        if !example.is_null() {
            API_DOC.check_request(&method, path, 200, example.to_string().as_bytes());
        }
    }
}

#[test]
fn streams_are_documented_as_streams() {
    let document = openapi_document();
    let streams = operations(&document).into_iter().filter(|(_, _, operation)| {
        !operation["responses"]["200"]["content"]["text/event-stream"].is_null()
    });
    let paths: BTreeSet<&str> = streams.map(|(_, path, _)| path).collect();
    let expected = BTreeSet::from([
        "/a2a",
        "/a2a/",
        "/a2a/message:stream",
        "/a2a/tasks/{task}",
        "/a2a/{tenant}/message:stream",
        "/a2a/{tenant}/tasks/{task}",
        "/a2a/agents/{agent}",
        "/a2a/agents/{agent}/",
        "/a2a/agents/{agent}/message:stream",
        "/a2a/agents/{agent}/tasks/{task}",
        "/a2a/agents/{agent}/{tenant}/message:stream",
        "/a2a/agents/{agent}/{tenant}/tasks/{task}",
        "/agent/inbox",
        "/agora/inbox",
        "/mcp",
        "/mcp/agents/{names}",
        "/messages",
        "/openclaw/stream",
        "/relay/agent/inbox",
        "/relay/messages",
        "/v1/events",
    ]);
    assert_eq!(paths, expected);
}
