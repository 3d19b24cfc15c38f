use serde_json::json;
use tokio::net::TcpStream;

use super::{Stand, Works};
use crate::agent::direct::{PeerIdentity, serve};
use crate::agora::Seed;

#[tokio::test]
async fn every_caller_can_read_the_agents_description() {
    let stand = Stand::shouter().await;
    let wanted = json!({
        "name": "The Shouter",
        "agent_id": stand.identity.id().to_string(),
        "did": stand.identity.signer().did(),
        "skills": [{"name": "shout", "about": "Says it louder", "price": 0.05}],
        "endpoints": {"registry": "/jobs", "relay": "/receive", "openclaw": "/openclaw",
            "agora": "/agora"},
    });
    assert_eq!(stand.get("/").await.json(), wanted);
    assert_eq!(stand.post("/", "{}").await.status, 405);
    for path in ["/elsewhere", "/jobsite", "/clara"] {
        let reply = stand.get(path).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (404, &json!("not_found")));
    }
}

#[tokio::test]
async fn requests_from_browser_pages_are_refused() {
    let stand = Stand::new().await;
    let body = json!({"skill_name": "echo", "input_data": {}, "budget": 0}).to_string();
    let origin = [("origin", "http://evil.example")];
    let reply = stand.send(reqwest::Method::POST, "/jobs", body.clone(), &origin).await;
    assert_eq!((reply.status, stand.works.begun()), (403, 0));
    assert_eq!(stand.post("/jobs", body).await.status, 200);
}

#[tokio::test]
async fn an_agent_whose_skills_cannot_be_announced_is_not_served() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let shop = crate::agent::Handlers::builder().build();
    let me = PeerIdentity::new("Nobody", &Seed::from_bytes([1; 32]));
    assert!(serve(listener, shop, me, std::future::pending()).await.is_err());
}

#[tokio::test]
async fn what_runs_at_the_end_may_finish() {
    let stand = Stand::with(Works::all).await;
    let body = json!({"skill_name": "held", "input_data": {}, "budget": 0});
    let ending = async {
        stand.begun(1).await;
        stand.stop.notify_one();
        // New connections are refused; open ones are still served.
        while TcpStream::connect(stand.url.trim_start_matches("http://")).await.is_ok() {
            tokio::task::yield_now().await;
        }
        stand.works.gate.add_permits(1);
    };
    let (reply, ()) = tokio::join!(stand.post("/jobs", &body), ending);
    assert_eq!(reply.status, 200);
    stand.served.await.expect("no panic").expect("it ended well");
}
