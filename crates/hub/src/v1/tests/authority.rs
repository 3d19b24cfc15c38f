//! Access tests: every operation with every kind of caller.

use http::Method;
use rialto_core::command::Command;
use rialto_core::time::Millis;
use rialto_protocols::adapter::Access;

use super::kit::{Hub, nothing};
use crate::v1::operations;

/// A path filled with ids that do not exist.
fn path(template: &str) -> String {
    let job = nothing().to_string();
    template.replace("{uuid}", &job).replace("{id}", "999").replace("{name}", "nobody")
}

fn method(text: &str) -> Method {
    text.parse().expect("a method")
}

#[tokio::test]
async fn every_route_admits_exactly_the_callers_of_its_row() {
    let hub = Hub::start().await;
    // Without an endpoint, so that no outbound call is made.
    let agent = hub.enrol_at("ada", "acme", None, None).await;
    for row in operations().into_iter().map(|operation| operation.info) {
        // After these no key would be valid any more.
        if row.method == "DELETE" && matches!(&*row.path, "/v1/keys" | "/v1/me") {
            continue;
        }
        let path = path(&row.path);
        let answer = async |key: &str| {
            let request = Hub::request(method(row.method), &path, key, "{}");
            hub.ask(request).await.status().as_u16()
        };
        let (anon, by_agent, by_operator) =
            (answer("").await, answer(&agent.key).await, answer(&hub.operator).await);
        let let_in = |status: u16| !matches!(status, 401 | 403);
        let expected = match row.access {
            Access::Public => (true, true, true),
            Access::AnyAgent => (false, true, false),
            Access::AnyAgentOrOperator | Access::OwnerOrOperator => (false, true, true),
            Access::Operator => (false, false, true),
            other => panic!("{other:?} is not used here"),
        };
        let got = (let_in(anon), let_in(by_agent), let_in(by_operator));
        assert_eq!(got, expected, "{} {path}: {anon} {by_agent} {by_operator}", row.method);
        if row.access != Access::Public {
            assert_eq!(anon, 401, "{} {path}", row.method);
        }
    }
}

#[tokio::test]
async fn every_bad_key_gets_the_same_401_before_the_body_is_read() {
    let hub = Hub::start().await;
    let ada = hub.enrol("ada", "acme", None).await;
    let bob = hub.enrol("bob", "acme", None).await;
    hub.engine
        .run(Command::RevokeKeys { agent: ada.id, by_operator: true })
        .await
        .expect("revoked");
    hub.engine.run(Command::Remove { agent: bob.id, by_operator: false }).await.expect("gone");
    let unknown = "rk_0123456789abcdef0123456789abcdef0123456700000000";
    let expected = hub.post("/v1/messages", "", "{}").await;
    expected.is_problem(401, "unauthorized");
    assert_eq!(expected.headers["www-authenticate"], "Bearer");
    for key in ["nonsense", unknown, &ada.key, &bob.key] {
        for once in [false, true] {
            // A body that never arrives: a handler that waits for it never responds.
            let body = axum::body::Body::from_stream(futures_util::stream::pending::<
                Result<bytes::Bytes, std::convert::Infallible>,
            >());
            let mut request = Hub::request(Method::POST, "/v1/messages", key, "").map(|_| body);
            if once {
                request.headers_mut().insert("idempotency-key", "k".parse().expect("a header"));
            }
            let got = hub.send(request).await;
            assert_eq!((got.status, &got.text), (401, &expected.text), "{key} {once}");
        }
    }
    // An invalid key is an error even where no key is needed.
    hub.get("/v1/agents", "nonsense").await.is_problem(401, "unauthorized");
}

#[tokio::test]
async fn another_agents_data_looks_like_missing_data() {
    let hub = Hub::start().await;
    hub.grant("rich", "10.00").await;
    let client = hub.enrol("client", "rich", None).await;
    let _worker = hub.enrol("worker", "globex", Some(("sum", "0.05"))).await;
    let stranger = hub.enrol("stranger", "acme", None).await;
    let job = hub.open(&client, "sum", "1.00").await;
    for (theirs, nobodys) in [
        (format!("/v1/jobs/{}", job.uuid), format!("/v1/jobs/{}", nothing())),
        ("/v1/accounts/rich".to_owned(), "/v1/accounts/nobody".to_owned()),
        ("/v1/accounts/hub:issuance".to_owned(), "/v1/accounts/nobody".to_owned()),
        ("/v1/ledger?owner=rich".to_owned(), "/v1/ledger?owner=nobody".to_owned()),
    ] {
        let (theirs, nobodys) =
            (hub.get(&theirs, &stranger.key).await, hub.get(&nobodys, &stranger.key).await);
        theirs.is_problem(404, "not_found");
        assert_eq!(theirs.text, nobodys.text);
    }
}

#[test]
fn every_operation_is_under_v1_and_says_what_it_does() {
    let mut seen = std::collections::BTreeSet::new();
    for row in operations().into_iter().map(|operation| operation.info) {
        assert!(row.protocol.is_none() && row.path.starts_with("/v1/") && !row.summary.is_empty());
        assert!(seen.insert((row.method, row.path)));
    }
}

#[tokio::test]
async fn every_call_with_its_key_is_a_sign_of_life() {
    let hub = Hub::start().await;
    let ada = hub.enrol("ada", "acme", None).await;
    let seen = || {
        hub.engine.with_world(|world| {
            world.agent_state(ada.id).map(|agent_state| agent_state.presence.last_seen)
        })
    };
    hub.clock.advance(Millis::seconds(30));
    let now = Some(hub.engine.now());
    hub.get("/v1/me", "").await;
    hub.grant("acme", "1").await;
    assert_ne!(seen(), now, "a request without a key is not counted as activity");
    hub.get("/v1/me", &ada.key).await;
    hub.grant("acme", "1").await;
    assert_eq!(seen(), now);
}
