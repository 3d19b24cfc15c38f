use rialto_protocols::relay::wire::discovery::Paths;
use serde_json::Value;

use crate::CallError;
use crate::relay::{AckAnswer, AgentFilter, HistoryFilter, Key, Registration, Server};
use crate::testing::{TestServer, answer, failure, success};

async fn discover(document: Vec<u8>) -> Result<Server, CallError> {
    let stage = TestServer::new(move |_, _| document.clone()).await;
    Server::discover(&stage.url).await
}

#[tokio::test]
async fn the_paths_are_those_of_the_document() {
    let document =
        r#"{"server_name":"Hub","endpoints":{"discover":"/v9/agents","inbox":"/v9/in?x=1"}}"#;
    let stage = TestServer::new(move |heard, _| match heard.target.as_str() {
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
        assert_eq!(discover(none).await.expect("a server").paths(), &Paths::default());
    }
    let stage = TestServer::new(|_, _| answer(404, "", "")).await;
    let below = Server::discover(&format!("{}/hub/", stage.url)).await.expect("a server");
    assert_eq!(below.paths().send, "/hub/messages");
}

#[tokio::test]
async fn a_server_in_trouble_is_not_one_without_document() {
    for (request_error, status) in [
        (failure(503, "ERR_UNAVAILABLE", ""), 503),
        (failure(429, "ERR_RATE_LIMITED", "retry-after: 7\r\n"), 429),
    ] {
        match discover(request_error).await.expect_err("trouble") {
            CallError::Refused { status: refused, .. } => assert_eq!(refused, status),
            other => panic!("{other}"),
        }
    }
    let error = Server::discover("http://127.0.0.1:1").await.expect_err("unreachable");
    assert!(matches!(error, CallError::Unreachable { .. }), "{error}");
    for base in ["nonsense", "file:///etc", "http://a:b@127.0.0.1"] {
        let error = Server::discover(base).await.expect_err(base);
        assert!(matches!(error, CallError::Refused { status: 400, .. }), "{error}");
    }
}

#[tokio::test]
async fn the_key_never_leaves_the_server_it_is_for() {
    let thief = TestServer::new(|_, _| success("[]")).await;
    let host = thief.url.trim_start_matches("http:").to_owned();
    for lure in
        [thief.url.clone() + "/agents", host.clone() + "/agents", format!("/\\\\{}", &host[2..])]
    {
        let document = serde_json::json!({"endpoints": {"discover": lure}}).to_string();
        let stage = TestServer::new(move |heard, _| match heard.target.as_str() {
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
    let stage = TestServer::new(move |_, _| answer(307, &location, "")).await;
    let server = Server::discover(&stage.url).await.expect("a server").with_key(Key::new("ca_x"));
    let error = server.agents(&Default::default()).await.expect_err("a redirect");
    assert!(matches!(error, CallError::Refused { status: 307, .. }), "{error}");
    let odd = Server::discover(&format!("{}{host}", stage.url)).await.expect("a server");
    assert!(odd.agents(&Default::default()).await.is_err(), "a base that looks like a host");
    assert!(thief.heard().is_empty());
}

#[tokio::test]
async fn an_agent_registers_and_keeps_what_it_is_given() {
    let stage = TestServer::plain(|_, _| {
        let data = r#"{"agent_id":"alice@chorus","api_key":"ca_1","webhook_secret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw","registration":{"agent_id":"alice@chorus"}}"#;
        answer(201, "", &format!(r#"{{"success":true,"data":{data}}}"#))
    });
    let stage = stage.await;
    let server = Server::discover(&stage.url).await.expect("a server");
    let registered = server.register(&Registration::new("alice", "en", &["en".into()])).await;
    let registered = registered.expect("registered");
    assert_eq!(registered.agent_id, "alice@chorus");
    assert_eq!(registered.api_key.reveal(), "ca_1");
    assert!(registered.webhook_secret.is_some());
    let heard = &stage.heard()[0];
    assert_eq!((heard.method.as_str(), heard.target.as_str()), ("POST", "/register"));
    assert_eq!(heard.header("authorization"), None);
    let body: Value = serde_json::from_str(&heard.body).expect("JSON");
    assert_eq!(body["agent_card"]["card_version"], "0.3");
}

#[tokio::test]
async fn a_refusal_says_what_the_server_said() {
    let stage = TestServer::plain(|_, _| {
        let error = r#"{"code":"ERR_AGENT_ID_TAKEN","message":"taken","retryable":false,"hint":"choose another"}"#;
        answer(409, "retry-after: 3\r\n", &format!(r#"{{"success":false,"error":{error}}}"#))
    });
    let server = Server::discover(&stage.await.url).await.expect("a server");
    match server.register(&Registration::new("alice", "en", &[])).await.expect_err("taken") {
        CallError::Refused { status, code, message, hint, retry_after, .. } => {
            assert_eq!(
                (status, code.as_str(), message.as_str()),
                (409, "ERR_AGENT_ID_TAKEN", "taken")
            );
            assert_eq!(hint.as_deref(), Some("choose another"));
            assert_eq!(retry_after.map(|after| after.as_secs()), Some(3));
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_list_is_read_to_its_end_page_by_page() {
    let stage = TestServer::plain(|heard, _| {
        let (list, metadata) = if heard.target.contains("cursor=c%261") {
            (r#"[{"agent_id":"c@d"}]"#, "{}")
        } else {
            (r#"[{"agent_id":"a@b"}]"#, r#"{"next_cursor":"c&1"}"#)
        };
        answer(200, "", &format!(r#"{{"success":true,"data":{list},"metadata":{metadata}}}"#))
    });
    let stage = stage.await;
    let server = Server::discover(&stage.url).await.expect("a server");
    let filter = AgentFilter {
        language: Some("zh-CN".into()),
        online: Some(true),
        ..AgentFilter::default()
    };
    let agents = server.agents(&filter).await.expect("a list");
    let ids: Vec<_> = agents.iter().map(|agent| agent.agent_id.as_str()).collect();
    assert_eq!(ids, ["a@b", "c@d"]);
    assert_eq!(stage.heard()[0].target, "/agents?language=zh-CN&online=true");
}

#[tokio::test]
async fn a_server_that_gives_the_same_page_for_ever_is_left() {
    let stage = TestServer::plain(|_, _| {
        answer(200, "", r#"{"success":true,"data":[],"metadata":{"next_cursor":"c"}}"#)
    });
    let server = Server::discover(&stage.await.url).await.expect("a server");
    assert!(server.agents(&AgentFilter::default()).await.expect("a list").is_empty());
}

#[tokio::test]
async fn an_agent_that_is_not_registered_cannot_be_unregistered() {
    for (said, deleted) in [
        (success(r#"{"deleted":true,"agent_id":"a@b"}"#), true),
        (success(r#"{"deleted":false,"agent_id":"a@b"}"#), false),
        (failure(404, "ERR_AGENT_NOT_FOUND", ""), false),
    ] {
        let stage = TestServer::plain(move |_, _| said.clone()).await;
        let server = Server::discover(&stage.url).await.expect("a server");
        assert_eq!(server.unregister("a@b").await.expect("an answer"), deleted);
        assert_eq!(stage.heard()[0].method, "DELETE");
    }
    let stage = TestServer::plain(|_, _| failure(401, "ERR_UNAUTHORIZED", "")).await;
    let server = Server::discover(&stage.url).await.expect("a server");
    assert!(server.unregister("a@b").await.is_err());
    for id in ["", ".", ".."] {
        assert!(server.unregister(id).await.is_err(), "{id}");
    }
    assert_eq!(stage.heard().len(), 1);
}

#[tokio::test]
async fn history_and_acknowledgements_are_read() {
    let stage = TestServer::plain(|heard, _| match heard.target.split('?').next() {
        Some("/agent/messages") => success(
            r#"[{"id":42,"trace_id":"t","sender_id":"a@b","receiver_id":"c@d","envelope":{"original_text":"x"},"delivered_via":"sse","timestamp":"2026-03-20T10:00:00.000Z"},{"id":null,"trace_id":"u","sender_id":"c@d","receiver_id":"a@b","envelope":{"original_text":"y"}}]"#,
        ),
        _ => success(r#"{"acked_to":42,"pending":1}"#),
    });
    let stage = stage.await;
    let server = Server::discover(&stage.url).await.expect("a server").with_key(Key::new("ca_1"));
    let since = Some("2026-03-20T10:00:00+01:00".to_owned());
    let past = server
        .history(&HistoryFilter { since, after: Some(3), limit: Some(2) })
        .await
        .expect("past");
    assert_eq!((past[0].position, past[1].position), (Some(42), None));
    assert_eq!(past[1].contents.original_text, "y");
    let target = "/agent/messages?since=2026-03-20T10%3A00%3A00%2B01%3A00&after=3&limit=2";
    assert_eq!(stage.heard()[0].target, target);
    assert_eq!(server.ack(42).await.expect("acked"), AckAnswer { acked_to: 42, pending: 1 });
    assert_eq!(stage.heard()[1].body, r#"{"up_to":42}"#);
}
