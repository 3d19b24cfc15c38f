//! How the process lives and ends: lines, input, signals, many calls at once.

use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::fake_hub::{Answer, FakeHub, discovered, result};
use super::process::Bridge;
use crate::kit::{TestHub, eventually};

/// The longest line that is read.
const LINE_BYTES_MAX: usize = 4 << 20;
/// How long the process may take to end.
const END_TIME_MAX: Duration = Duration::from_secs(2);

/// A hub on which `wait` takes for ever, and everything else is answered at once.
async fn waiting_hub() -> FakeHub {
    FakeHub::start(|heard| match heard.json["params"]["name"].as_str() {
        Some("wait") => Answer::Open(Vec::new()),
        _ if heard.json["method"] == "server/discover" => discovered(heard),
        _ => result(heard, json!({"content": []})),
    })
    .await
}

fn waiting(bridge: &mut Bridge) -> u64 {
    bridge.request("tools/call", json!({"name": "wait", "arguments": {}}))
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_cannot_be_read_get_an_error_and_the_next_ones_an_answer() {
    let (hub, home) = (waiting_hub().await, TempDir::new().expect("a directory"));
    let mut bridge = Bridge::with_key(&hub.url, home.path(), "rk_test");
    bridge.write(&"x".repeat(LINE_BYTES_MAX + 1));
    let refused = bridge.next();
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    assert!(refused.get("id").is_none() && refused.to_string().contains("4194304"), "{refused}");
    for (line, code) in [
        ("{nope", -32700),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32700),
    ] {
        bridge.write(line);
        let refused = bridge.next();
        assert_eq!(refused["error"]["code"], code, "{refused}");
        assert!(refused.get("id").is_none(), "{refused}");
    }
    bridge.write("\r");
    // A line of the longest length is read: the space belongs to it.
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    bridge.write(&format!("{ping}{}", " ".repeat(LINE_BYTES_MAX - ping.len())));
    assert_eq!(bridge.next(), json!({"jsonrpc": "2.0", "id": 7, "result": {}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_with_its_input_and_answers_what_can_be_answered_first() {
    let (hub, home) = (waiting_hub().await, TempDir::new().expect("a directory"));
    let mut bridge = Bridge::with_key(&hub.url, home.path(), "rk_test");
    let waits = waiting(&mut bridge);
    let quick = bridge.request("tools/list", json!({}));
    bridge.close();
    assert_eq!(bridge.response(quick)["id"], quick);
    let (status, took) = bridge.ended();
    assert_eq!(status.code(), Some(0));
    assert!(took < END_TIME_MAX, "{took:?}");
    assert!(bridge.next_within(Duration::from_secs(5)).is_none(), "{waits} has no answer");
    eventually(async || hub.hung_up() == 1).await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn it_ends_when_it_is_told_to_while_its_input_is_open() {
    let (hub, home) = (waiting_hub().await, TempDir::new().expect("a directory"));
    let mut bridge = Bridge::with_key(&hub.url, home.path(), "rk_test");
    bridge.open("2025-11-25", json!({}));
    waiting(&mut bridge);
    bridge.terminate();
    let (status, took) = bridge.ended();
    assert_eq!(status.code(), Some(0));
    assert!(took < END_TIME_MAX, "{took:?}");
}

/// A bridge whose client reads nothing. It is killed when dropped.
#[cfg(unix)]
struct Unread(std::process::Child);

#[cfg(unix)]
impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(unix)]
impl Unread {
    fn start(hub: &FakeHub, home: &TempDir) -> Self {
        use std::process::Stdio;
        let mut command = super::process::isolated(home.path());
        command.arg("mcp").env("RIALTO_HUB", &hub.url).env("RIALTO_KEY", "rk_test");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Self(command.spawn().expect("the binary starts"))
    }

    /// Writes lines that are refused, more than all pipes and queues hold. Returns the open input.
    async fn fill(&mut self) -> std::process::ChildStdin {
        use std::io::Write;
        let mut input = self.0.stdin.take().expect("a pipe");
        let (sender, filled) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let all_read = (0..30).all(|_| input.write_all(&b"x\n".repeat(5_000)).is_ok());
            let _ = sender.send((all_read, input));
        });
        let filled = tokio::time::timeout(Duration::from_secs(20), filled).await;
        let (all_read, input) = filled.expect("it reads on").expect("no panic");
        assert!(all_read, "it ended early");
        input
    }

    async fn ends(&mut self) {
        let begun = std::time::Instant::now();
        while begun.elapsed() < END_TIME_MAX {
            if let Some(status) = self.0.try_wait().expect("it can be waited for") {
                return assert_eq!(status.code(), Some(0));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("it does not end");
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn it_ends_with_its_input_or_a_signal_though_nobody_reads_its_output() {
    let (hub, home) = (waiting_hub().await, TempDir::new().expect("a directory"));
    let (mut first, mut second) = (Unread::start(&hub, &home), Unread::start(&hub, &home));
    drop(first.fill().await);
    first.ends().await;
    let input = second.fill().await;
    let pid = rustix::process::Pid::from_child(&second.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    second.ends().await;
    drop(input);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_run_side_by_side_and_a_cancelled_one_hangs_up() {
    let (hub, home) = (waiting_hub().await, TempDir::new().expect("a directory"));
    let mut bridge = Bridge::with_key(&hub.url, home.path(), "rk_test");
    bridge.open("2025-11-25", json!({}));
    let first = waiting(&mut bridge);
    let second = waiting(&mut bridge);
    // Others are answered while these wait, in any number.
    let quick: Vec<u64> = (0..20).map(|_| bridge.request("tools/list", json!({}))).collect();
    let mut answered: Vec<u64> =
        quick.iter().map(|_| bridge.next()["id"].as_u64().expect("an id")).collect();
    answered.sort_unstable();
    assert_eq!(answered, quick);
    bridge.notify("notifications/cancelled", json!({"requestId": first, "reason": "enough"}));
    eventually(async || hub.hung_up() == 1).await;
    // No answer comes to it, and the other one still waits.
    assert_eq!(bridge.result("ping", json!({})), json!({}));
    bridge.send(&json!({"jsonrpc": "2.0", "id": second, "method": "ping"}));
    let refused = bridge.next();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(second), &json!(-32600)));
    assert_eq!(hub.hung_up(), 1);
    // The id of the cancelled one is free again.
    bridge.send(&json!({"jsonrpc": "2.0", "id": first, "method": "ping"}));
    assert_eq!(bridge.next()["id"], first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_wait_is_over_at_the_hub_within_a_second() {
    let (hub, home) = (TestHub::serve(&[]).await, TempDir::new().expect("a directory"));
    let me = hub.agent("ann", "shout", "0.05", None).await;
    let mut bridge = Bridge::with_key(&hub.url, home.path(), &me.key);
    bridge.open("2025-11-25", json!({}));
    let id = bridge
        .request("tools/call", json!({"name": "next_job", "arguments": {"wait_seconds": 50}}));
    assert!(bridge.next_within(Duration::from_millis(1_500)).is_none());
    bridge.notify("notifications/cancelled", json!({"requestId": id}));
    assert!(bridge.next_within(Duration::from_secs(1)).is_none());
    assert_eq!(bridge.result("ping", json!({})), json!({}));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_before_the_message_is_read_get_the_id_of_the_request() {
    let (hub, home) = (TestHub::serve(&[]).await, TempDir::new().expect("a directory"));
    let wrong = "rk_000000000000000000000000000000000000000000000000";
    let mut bridge = Bridge::with_key(&hub.url, home.path(), wrong);
    let (code, error) = bridge.error("tools/call", json!({"name": "whoami", "arguments": {}}));
    assert_eq!(code, -32600);
    assert_eq!(error["data"]["code"], "unauthorized", "{error}");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("rialto connect")));
    hub.stop().await;
}
