use rialto_protocols::relay::wire::discovery::Paths;

use crate::CallError;
use crate::relay::{Key, Server};
use crate::testing::{Stage, answer, failure, success};

async fn found(document: Vec<u8>) -> Result<Server, CallError> {
    let stage = Stage::new(move |_, _| document.clone()).await;
    Server::discover(&stage.url).await
}

#[tokio::test]
async fn the_paths_are_those_of_the_document() {
    let document =
        r#"{"server_name":"Hub","endpoints":{"discover":"/v9/agents","inbox":"/v9/in?x=1"}}"#;
    let stage = Stage::new(move |heard, _| match heard.target.as_str() {
        "/.well-known/chorus.json" => answer(200, "", document),
        _ => success(r#"{"agent_id":"a@b"}"#),
    });
    let stage = stage.await;
    let server = Server::discover(&format!("{}/relay?x#y", stage.url)).await.expect("a server");
    assert_eq!(server.name(), Some("Hub"));
    assert_eq!(
        (server.paths().send.as_str(), server.paths().inbox.as_str()),
        ("/messages", "/v9/in?x=1")
    );
    server.agent("a/b?c@d").await.expect("an agent");
    assert_eq!(stage.heard()[0].target, "/v9/agents/a%2Fb%3Fc@d");
}

#[tokio::test]
async fn a_server_without_document_has_the_paths_of_the_spec() {
    let long = "x".repeat(70_000);
    for none in [
        answer(404, "", ""),
        answer(301, "location: http://evil.example/\r\n", ""),
        answer(200, "", "<!doctype html>"),
        answer(200, "", "[]"),
        answer(200, "", r#"{"chorus_version":"0.4"}"#),
        answer(200, "", &long),
        failure(401, "ERR_UNAUTHORIZED", ""),
    ] {
        assert_eq!(found(none).await.expect("a server").paths(), &Paths::default());
    }
    let stage = Stage::new(|_, _| answer(404, "", "")).await;
    let below = Server::discover(&format!("{}/hub/", stage.url)).await.expect("a server");
    assert_eq!(below.paths().send, "/hub/messages");
}

#[tokio::test]
async fn a_server_in_trouble_is_not_one_without_document() {
    for (request_error, status) in [
        (failure(503, "ERR_UNAVAILABLE", ""), 503),
        (failure(429, "ERR_RATE_LIMITED", "retry-after: 7\r\n"), 429),
    ] {
        match found(request_error).await.expect_err("trouble") {
            CallError::Refused { status: told, .. } => assert_eq!(told, status),
            other => panic!("{other}"),
        }
    }
    let nobody = Server::discover("http://127.0.0.1:1").await.expect_err("unreachable");
    assert!(matches!(nobody, CallError::Unreachable { .. }), "{nobody}");
    for base in ["nonsense", "file:///etc", "http://a:b@127.0.0.1"] {
        let error = Server::discover(base).await.expect_err(base);
        assert!(matches!(error, CallError::Refused { status: 400, .. }), "{error}");
    }
}

#[tokio::test]
async fn the_key_never_leaves_the_server_it_is_for() {
    let thief = Stage::new(|_, _| success("[]")).await;
    let host = thief.url.trim_start_matches("http:").to_owned();
    for lure in
        [thief.url.clone() + "/agents", host.clone() + "/agents", format!("/\\\\{}", &host[2..])]
    {
        let document = serde_json::json!({"endpoints": {"discover": lure}}).to_string();
        let stage = Stage::new(move |heard, _| match heard.target.as_str() {
            "/.well-known/chorus.json" => answer(200, "", &document),
            _ => success(r#"{"agent_id":"a@b"}"#),
        });
        let stage = stage.await;
        let server =
            Server::discover(&stage.url).await.expect("a server").with_key(Key::new("ca_x"));
        server.agent("a@b").await.expect("an agent");
        assert_eq!(stage.heard()[0].target, "/agents/a@b");
        assert_eq!(stage.heard()[0].header("authorization"), Some("Bearer ca_x"));
    }
    let location = format!("location: {}/agents\r\n", thief.url);
    let stage = Stage::new(move |_, _| answer(307, &location, "")).await;
    let server = Server::discover(&stage.url).await.expect("a server").with_key(Key::new("ca_x"));
    let error = server.agents(&Default::default()).await.expect_err("a redirect");
    assert!(matches!(error, CallError::Refused { status: 307, .. }), "{error}");
    let odd = Server::discover(&format!("{}{host}", stage.url)).await.expect("a server");
    assert!(odd.agents(&Default::default()).await.is_err(), "a base that looks like a host");
    assert!(thief.heard().is_empty());
}
