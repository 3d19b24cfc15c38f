//! Servers at a URL, of both eras: headers, credentials, sessions, streams and cancellation.

use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::kit::{boss, failure, hire, lines, output, place, post, skills};
use super::runtime::{Place, Runtime};
use crate::kit::{ClosedPort, TestHub, eventually};

const TOKEN: &str = "Bearer opensesame-42";

/// The fixture at a URL. It is killed when dropped.
struct Server {
    child: Child,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn serve(place: &Place, flags: &str) -> Server {
    let port = free_port();
    let child = Command::new("python3")
        .args(["fixture.py", "--http", &port.to_string()])
        .args(flags.split_whitespace())
        .current_dir(place.directory.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("python3 starts");
    let url = format!("http://127.0.0.1:{port}/mcp");
    let http = crate::kit::http();
    eventually(async || http.delete(&url).send().await.is_ok()).await;
    Server { child, url }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

async fn sold(place: &Place, hub: &TestHub, url: &str, more: &[&str]) -> Runtime {
    let header = "Authorization: env:FIXTURE_TOKEN";
    let flags = [&["--mcp", url, "--price", "0.05", "--mcp-header", header], more].concat();
    place.at_work_with(hub, "said", &flags, &[("FIXTURE_TOKEN", TOKEN)]).await
}

fn requests(place: &Place, method: &str) -> Vec<Value> {
    let all = lines(place, "requests");
    let all = all.iter().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    all.filter(|request| request["method"] == method).collect()
}

#[tokio::test]
async fn a_server_of_the_new_era_gets_its_headers_and_its_credential() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let server = serve(&place, "").await;
    let runtime = sold(&place, &hub, &server.url, &[]).await;
    let boss = boss(&hub).await;
    assert_eq!(output(&hire(&hub, &boss, "echo", r#"{"text":"x"}"#).await), &json!({"text": "x"}));
    output(&hire(&hub, &boss, "where", r#"{"place":"Zürich"}"#).await);
    let job = hire(&hub, &boss, "digits", r#"{"value":1.50}"#).await;
    assert!(
        job["raw"].as_str().is_some_and(|raw| raw.contains(r#""output":{"value":1.50}"#)),
        "{job}"
    );
    assert_eq!(
        output(&hire(&hub, &boss, "later", r#"{"ms":300}"#).await),
        &json!({"text": "thought"})
    );
    for method in
        ["server/discover", "tools/list", "tools/call", "subscriptions/listen", "tasks/get"]
    {
        let all = requests(&place, method);
        assert!(!all.is_empty(), "{method}");
        for request in all {
            assert_eq!(request["authorization"], TOKEN, "{request}");
            assert_eq!(request["mcp-protocol-version"], "2026-07-28", "{request}");
            assert_eq!(request["mcp-method"], method, "{request}");
        }
    }
    let calls = requests(&place, "tools/call");
    assert_eq!(calls[0]["mcp-name"], "echo");
    assert_eq!(calls[1]["mcp-param-place"], "=?base64?WsO8cmljaA==?=", "{}", calls[1]);
    assert_eq!(requests(&place, "tasks/get")[0]["mcp-name"].as_str().map(|id| &id[..1]), Some("t"));
    // The list changes, and the news come over the stream.
    output(&hire(&hub, &boss, "grow", "{}").await);
    eventually(async || skills(&hub, &runtime).await.contains(&"grown".to_owned())).await;
    // The credential is nowhere but at its server.
    assert!(!place.text("said").contains("opensesame"), "{}", place.text("said"));
    let shown = hub.get("/v1/agents?limit=100", Some(&hub.operator)).await.expect(200).text;
    assert!(!shown.contains("opensesame"));
    let dump =
        crate::kit::output(Command::new("grep").args(["-rl", "opensesame"]).arg(hub.dir.path()));
    assert_eq!(String::from_utf8_lossy(&dump.expect("grep runs").stdout), "");
    // Nor is the key of the hub at the server.
    assert!(!place.text("requests").contains("rk_") && !place.text("said").contains("rk_"));
}

#[tokio::test]
async fn hanging_up_cancels_a_call_of_the_new_era() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let server = serve(&place, "").await;
    let _runtime =
        sold(&place, &hub, &server.url, &["--tools", "slow", "--timeout", "500ms"]).await;
    let boss = boss(&hub).await;
    // The fixture notices when it next writes.
    let job = hire(&hub, &boss, "slow", r#"{"ms":8000,"progress":true}"#).await;
    assert!(failure(&job).1.contains("time limit"), "{job}");
    eventually(async || lines(&place, "cancelled").iter().any(|line| line.starts_with("closed")))
        .await;
    assert!(requests(&place, "notifications/cancelled").is_empty());
}

#[tokio::test]
async fn a_server_of_the_old_era_has_a_session_a_stream_and_cancellations() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let server = serve(&place, "--era old").await;
    let flags = ["--tools", "slow,echo,g*", "--timeout", "2s"];
    let mut runtime = sold(&place, &hub, &server.url, &flags).await;
    let boss = boss(&hub).await;
    output(&hire(&hub, &boss, "echo", r#"{"text":"x"}"#).await);
    for request in requests(&place, "tools/call") {
        assert_eq!(request["mcp-session-id"], "s1", "{request}");
        assert_eq!(request["mcp-protocol-version"], "2025-11-25", "{request}");
    }
    assert_eq!(requests(&place, "notifications/initialized").len(), 1);
    output(&hire(&hub, &boss, "grow", "{}").await);
    eventually(async || skills(&hub, &runtime).await.contains(&"grown".to_owned())).await;
    let job = hire(&hub, &boss, "slow", r#"{"ms":60000}"#).await;
    assert!(failure(&job).1.contains("time limit"), "{job}");
    eventually(async || requests(&place, "notifications/cancelled").len() == 1).await;
    // A session that the server has forgotten is opened again, and the call is made once.
    place.file("gone", "");
    assert_eq!(output(&hire(&hub, &boss, "echo", r#"{"text":"y"}"#).await), &json!({"text": "y"}));
    assert_eq!(requests(&place, "initialize").len(), 2);
    assert_eq!(runtime.terminate().await.code(), Some(0));
    assert!(lines(&place, "cancelled").contains(&"session".to_owned()), "the session is ended");
}

#[tokio::test]
async fn a_call_that_is_answered_with_an_http_error_fails_alone() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let server = serve(&place, "--only echo").await;
    let runtime = sold(&place, &hub, &server.url, &[]).await;
    let boss = boss(&hub).await;
    let job = hire(&hub, &boss, "echo", r#"{"text":"stumble"}"#).await;
    let (cause, text) = failure(&job);
    assert!(cause == "execution" && text.contains("500") && text.contains("a wheel"), "{text}");
    // The agent was never offline, and the call was not repeated.
    output(&hire(&hub, &boss, "echo", r#"{"text":"x"}"#).await);
    assert!(runtime.said("server_ended").is_none());
    assert_eq!(requests(&place, "tools/call").len(), 2);
}

#[tokio::test]
async fn an_agent_waits_offline_for_a_url_that_is_gone() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let server = serve(&place, "--only echo,append").await;
    let port = server.url.split([':', '/']).nth(4).expect("a port").to_owned();
    let mut runtime = sold(&place, &hub, &server.url, &[]).await;
    let boss = boss(&hub).await;
    drop(server);
    // The end of its stream tells it.
    eventually(async || super::kit::agent(&hub, &runtime).await["online"] == false).await;
    runtime.assert_running();
    let mut child = Command::new("python3")
        .args(["fixture.py", "--only", "echo,append", "--http", &port])
        .current_dir(place.directory.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("python3 starts");
    eventually(async || super::kit::agent(&hub, &runtime).await["online"] == true).await;
    let job = post(&hub, &boss, "echo", r#"{"text":"back"}"#).await;
    output(&super::kit::ended(&hub, &boss, &job).await);
    let _ = (child.kill(), child.wait());
}

#[tokio::test]
async fn a_url_that_cannot_be_reached_is_an_error_at_the_start() {
    let place = place();
    let closed = ClosedPort::take();
    let flags = ["--hub", "http://127.0.0.1:1", "--mcp", &closed.url, "--price", "0"];
    let mut runtime = place.run("said", &flags);
    assert_eq!(runtime.ended().await.code(), Some(1));
    assert!(place.text("said").contains("connection refused"), "{}", place.text("said"));
}
