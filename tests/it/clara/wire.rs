//! The two units over HTTP (2.1): every route, slashes, pages of other origins, statuses.

use rialto_protocols::clara::PROCESS;
use serde_json::{Value, json};

use super::kit::{Hub, Wallet};
use crate::kit::{Reply, snapshot};

/// A hub published under this name, as behind a proxy; it listens on loopback.
const PUBLISHED: [(&str, &str); 1] = [("http.public_url", "https://hub.example")];
const NAME: (&str, &str) = ("host", "hub.example");
const OCTETS: (&str, &str) = ("content-type", "application/octet-stream");
const UNKNOWN: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

async fn raw(hub: &Hub, method: &str, path: &str, body: &[u8]) -> Reply {
    let reply = hub.0.send(method, path, &[OCTETS], body).await;
    assert!(!(300..400).contains(&reply.status), "{method} {path} is answered with a redirect");
    assert_eq!(reply.header("location"), None);
    assert!(reply.json().is_object(), "{method} {path}: {}", reply.text);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    reply
}

fn nop(by: &Wallet) -> Vec<u8> {
    by.item(&[("Action", "List-Agents")], b"")
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_posted_to_the_unit_or_to_the_prefix() {
    let hub = Hub::serve(&[]).await;
    let by = Wallet::of(1);
    for base in ["/clara/mu", "/clara", "/clara/mu/", "/clara/", "//clara//mu//", "/clara//mu"] {
        let reply = raw(&hub, "POST", base, &nop(&by)).await.expect(202);
        let id = reply.str("/id");
        assert_eq!(reply.json(), json!({"message": "Processing DataItem", "id": id}));
        assert_eq!(hub.result(&id).await.messages.len(), 1, "evaluated before the answer");
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_read_from_the_unit_or_from_the_prefix() {
    let hub = Hub::serve(&[]).await;
    let by = Wallet::of(1);
    let id = hub.agent(&by, "A", "tweet", "1").await.id;
    let mut seen: Vec<[String; 3]> = Vec::new();
    for base in ["/clara/cu", "/clara", "/clara/cu/", "/clara/", "/clara//cu/"] {
        let one = raw(&hub, "GET", &format!("{base}/result/{id}?process-id={PROCESS}"), b"").await;
        let all = raw(&hub, "GET", &format!("{base}/results/{PROCESS}?limit=5"), b"").await;
        let dry = format!("{base}/dry-run?process-id={PROCESS}");
        let body = json!({"Tags": [{"name": "Action", "value": "List-Agents"}]}).to_string();
        let dry = raw(&hub, "POST", &dry, body.as_bytes()).await;
        seen.push([one, all, dry].map(|reply| reply.expect(200).text));
    }
    assert!(seen.iter().all(|one| *one == seen[0]), "{seen:?}");
    let result: Value = serde_json::from_str(&seen[0][0]).expect("JSON");
    let wanted = json!({"Messages": result["Messages"], "Assignments": [], "Spawns": [],
        "Output": {"data": "", "prompt": "", "print": false}, "GasUsed": 0});
    assert_eq!(result, wanted);
    let sent = json!([{"Target": by.address(), "Anchor": format!("{:032}", 1),
        "Data": "Agent A registered in Market", "Tags": [
            {"name": "Data-Protocol", "value": "ao"}, {"name": "Variant", "value": "ao.TN.1"},
            {"name": "Type", "value": "Message"}, {"name": "Reference", "value": "1"},
            {"name": "Action", "value": "Registered"},
            {"name": "Protocol", "value": "C.L.A.R.A."}]}]);
    assert_eq!(result["Messages"], sent);
    let failed = hub.act(&by, "Register-Task", &[], "{}").await.id;
    let path = format!("/clara/cu/result/{failed}?process-id={PROCESS}");
    let wanted = json!({"Error": "Unknown Topic nil", "Messages": [], "Assignments": [],
        "Spawns": [], "GasUsed": 0});
    assert_eq!(raw(&hub, "GET", &path, b"").await.expect(200).json(), wanted);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn monitoring_and_assigning_change_nothing() {
    let hub = Hub::serve(&[]).await;
    let by = Wallet::of(1);
    let known = hub.agent(&by, "A", "tweet", "1").await.id;
    let before = hub.held().await;
    for base in ["/clara/mu", "/clara", "/clara/mu/"] {
        for method in ["POST", "DELETE"] {
            let path = format!("{base}/monitor/{PROCESS}");
            let reply = raw(&hub, method, &path, &by.item(&[], b" ")).await.expect(200);
            assert_eq!(reply.json(), json!({"message": "ok"}));
            let path = format!("{base}/monitor/{UNKNOWN}");
            raw(&hub, method, &path, b"").await.expect(404);
        }
        let assign = |id: &str| {
            format!("{base}?process-id={PROCESS}&assign={id}&base-layer&exclude=Data,Tags")
        };
        let reply = raw(&hub, "POST", &assign(&known), b"").await.expect(202);
        assert_eq!(reply.json(), json!({"message": "Processing Assignment", "id": known}));
        raw(&hub, "POST", &assign(UNKNOWN), b"").await.expect(404);
    }
    assert_eq!(hub.held().await, before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_prefix_says_where_the_market_is() {
    let hub = Hub::serve(&[]).await;
    let wanted = json!({"process": PROCESS, "mu": "/clara/mu", "cu": "/clara/cu"});
    for path in ["/clara", "/clara/"] {
        assert_eq!(raw(&hub, "GET", path, b"").await.expect(200).json(), wanted);
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_told_in_json() {
    let hub = Hub::serve(&[]).await;
    let by = Wallet::of(1);
    let id = hub.agent(&by, "A", "tweet", "1").await.id;
    for (method, path, status) in [
        ("GET", format!("/clara/cu/result/{UNKNOWN}?process-id={PROCESS}"), 404),
        ("GET", format!("/clara/cu/result/x?process-id={PROCESS}"), 404),
        ("GET", format!("/clara/cu/result/{id}?process-id={UNKNOWN}"), 404),
        ("GET", format!("/clara/cu/result/{id}"), 400),
        ("GET", format!("/clara/cu/results/{UNKNOWN}"), 404),
        ("GET", "/clara/cu/nothing".to_owned(), 404),
        ("POST", "/clara/nothing".to_owned(), 404),
        ("PUT", "/clara/mu".to_owned(), 405),
        ("GET", "/clara/cu/dry-run".to_owned(), 405),
        ("POST", format!("/clara/mu?process-id={UNKNOWN}&assign={id}"), 404),
    ] {
        let reply = raw(&hub, method, &path, b"").await;
        assert_eq!(reply.status, status, "{method} {path}");
        assert!(!reply.str("/error").is_empty());
    }
    let elsewhere = by.item_for(UNKNOWN, &[("Action", "List-Agents")], b"");
    let reply = raw(&hub, "POST", "/clara/mu", &elsewhere).await.expect(404);
    assert_eq!(reply.str("/error"), "unknown process");
    let spawn = by.item(&[("Type", "Process")], b"");
    let reply = raw(&hub, "POST", "/clara/mu", &spawn).await.expect(400);
    assert_eq!(reply.json(), json!({"error": "spawn is not supported"}));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_every_origin_may_ask_all_of_a_published_hub() {
    let hub = Hub::serve(&PUBLISHED).await;
    let by = Wallet::of(1);
    let origin = ("origin", "https://app.example");
    let id = hub.agent(&by, "A", "tweet", "1").await.id;
    let paths = [
        ("GET", "/clara".to_owned()),
        ("POST", "/clara".to_owned()),
        ("POST", "/clara/mu".to_owned()),
        ("POST", "/clara//mu/".to_owned()),
        ("POST", format!("/clara/mu/monitor/{PROCESS}")),
        ("DELETE", format!("/clara/mu/monitor/{PROCESS}")),
        ("DELETE", format!("/clara/monitor/{PROCESS}")),
        ("GET", format!("/clara/cu/result/{id}?process-id={PROCESS}")),
        ("GET", format!("/clara/cu/results/{PROCESS}")),
        ("POST", format!("/clara/cu/dry-run?process-id={PROCESS}")),
        ("POST", format!("/clara/cu//dry-run?process-id={PROCESS}")),
        ("GET", "/clara/nothing".to_owned()),
        ("PUT", "/clara/mu".to_owned()),
    ];
    for (method, path) in &paths {
        let reply = hub.0.send(method, path, &[NAME, origin, OCTETS], b"{}").await;
        assert_ne!(reply.status, 403, "{method} {path}");
        let allowed = reply.header("access-control-allow-origin");
        assert_eq!(allowed, Some("*"), "{method} {path}: {}", reply.text);
        let asked = ("access-control-request-method", *method);
        let header = ("access-control-request-headers", "content-type");
        let preflight =
            hub.0.send("OPTIONS", path, &[NAME, origin, asked, header], b"").await.expect(204);
        assert_eq!(preflight.header("access-control-allow-origin"), Some("*"));
        assert_eq!(preflight.header("access-control-allow-methods"), Some(*method));
        assert_eq!(preflight.header("access-control-allow-headers"), Some("*"));
    }
    let item = nop(&by);
    let posted = hub.0.send("POST", "/clara/mu", &[NAME, origin, OCTETS], &item).await.expect(202);
    assert_eq!(posted.header("access-control-allow-origin"), Some("*"));
    // The rest of the hub is still closed.
    let other = hub.0.send("POST", "/registry/register", &[NAME, origin], b"{}").await;
    assert_eq!((other.status, other.header("access-control-allow-origin")), (403, None));
    let slashes = hub.get("/registry//skills", None).await;
    assert_eq!(slashes.status, 404);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_cannot_post_to_a_hub_on_loopback() {
    let hub = Hub::serve(&PUBLISHED).await;
    let by = Wallet::of(1);
    let before = snapshot(&hub.0).await;
    for origin in ["https://app.example", "http://127.0.0.1:3000", "null"] {
        let origin = ("origin", origin);
        for (method, path) in [
            ("POST", "/clara".to_owned()),
            ("POST", "/clara//mu/".to_owned()),
            ("DELETE", format!("/clara/monitor/{PROCESS}")),
            ("POST", format!("/clara/cu/dry-run?process-id={PROCESS}")),
        ] {
            let reply = hub.0.send(method, &path, &[origin, OCTETS], &nop(&by)).await.expect(403);
            assert!(!reply.str("/error").is_empty());
            assert_eq!(reply.header("access-control-allow-origin"), None, "{method} {path}");
            let asked = ("access-control-request-method", method);
            let preflight = hub.0.send("OPTIONS", &path, &[origin, asked], b"").await.expect(403);
            assert_eq!(preflight.header("access-control-allow-origin"), None, "{method} {path}");
        }
        // Pages may read public data here as well.
        let read = hub.0.send("GET", "/clara", &[origin], b"").await.expect(200);
        assert_eq!(read.header("access-control-allow-origin"), Some("*"));
    }
    assert_eq!(snapshot(&hub.0).await, before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_not_compressed_and_have_a_limit() {
    let hub = Hub::serve(&[]).await;
    let by = Wallet::of(1);
    for path in ["/clara/mu".to_owned(), format!("/clara/cu/dry-run?process-id={PROCESS}")] {
        let gzip = ("content-encoding", "gzip");
        let reply = hub.0.send("POST", &path, &[gzip], &nop(&by)).await.expect(415);
        assert!(!reply.str("/error").is_empty());
        let long = vec![b' '; (1 << 20) + 1];
        let reply = hub.0.send("POST", &path, &[OCTETS], &long).await.expect(413);
        assert!(!reply.str("/error").is_empty());
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_writes_too_often_is_told_when_to_come_back() {
    let hub = Hub::serve(&[PUBLISHED[0], ("limits.writes_per_minute", "3")]).await;
    let by = Wallet::of(1);
    let mut refused = None;
    for _ in 0..64 {
        let reply = hub.0.send("POST", "/clara/mu", &[NAME, OCTETS], &nop(&by)).await;
        if reply.status != 202 {
            refused = Some(reply);
            break;
        }
    }
    let refused = refused.expect("a limit").expect(429);
    assert!(refused.header("retry-after").is_some_and(|after| after.parse::<u32>().is_ok()));
    assert!(!refused.str("/error").is_empty());
    assert_eq!(refused.header("access-control-allow-origin"), Some("*"));
    hub.0.stop().await;
}
