//! How long calls and servers live: time limits, changed lists, servers that end, and the end of the
//! agent.

use std::time::{Duration, Instant};

use serde_json::json;

use super::kit::{
    agent, boss, ended, failure, fixture, hire, id_of, lines, output, place, post, skills, sold,
};
use super::runtime::{Place, Runtime};
use crate::kit::{TestHub, eventually};

/// The process id of the server that was started last.
fn server_pid(place: &Place) -> String {
    lines(place, "starts").last().expect("it was started").clone()
}

fn kill(pid: &str) {
    let sent = std::process::Command::new("kill").args(["-KILL", pid]).status();
    assert!(sent.expect("kill runs").success());
}

fn is_alive(pid: &str) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled_and_its_job_fails() {
    for era in ["new", "old"] {
        let (hub, place) = (TestHub::open(&[]).await, place());
        let flags = ["--tools", "slow", "--timeout", "500ms"];
        let _runtime = sold(&place, &hub, &format!("--era {era}"), &flags).await;
        let boss = boss(&hub).await;
        let job = hire(&hub, &boss, "slow", r#"{"ms":60000}"#).await;
        let (cause, text) = failure(&job);
        assert!(cause == "execution" && text.contains("time limit of 0.5 s"), "{text}");
        eventually(async || lines(&place, "cancelled").len() == 1).await;
        // The server works on.
        output(&hire(&hub, &boss, "slow", r#"{"ms":1}"#).await);
    }
}

#[tokio::test]
async fn a_task_that_takes_too_long_is_cancelled() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let _runtime = sold(&place, &hub, "", &["--tools", "later", "--timeout", "500ms"]).await;
    let boss = boss(&hub).await;
    let job = hire(&hub, &boss, "later", r#"{"ms":60000}"#).await;
    assert!(failure(&job).1.contains("time limit"), "{job}");
    eventually(async || lines(&place, "cancelled").iter().any(|id| id.starts_with('t'))).await;
}

#[tokio::test]
async fn signs_of_life_keep_a_job_beyond_its_lease() {
    let (hub, place) = (TestHub::open(&[("jobs.lease", "2s")]).await, place());
    let _runtime = sold(&place, &hub, "", &["--tools", "later,slow"]).await;
    let boss = boss(&hub).await;
    let jobs = [
        post(&hub, &boss, "later", r#"{"ms":5000}"#).await,
        post(&hub, &boss, "slow", r#"{"ms":5000,"progress":true}"#).await,
    ];
    for job in &jobs {
        let job = ended(&hub, &boss, job).await;
        output(&job);
        assert_eq!(job["epoch"], 1, "{job}");
    }
    // Without them the call is cancelled at the end of the lease.
    let job = hire(&hub, &boss, "slow", r#"{"ms":60000}"#).await;
    assert_eq!((&job["state"], &job["cause"]), (&json!("expired"), &json!("timed_out")), "{job}");
    eventually(async || lines(&place, "cancelled").len() == 1).await;
}

#[tokio::test]
async fn a_changed_list_is_registered_within_two_seconds() {
    for era in ["new", "old"] {
        let (hub, place) = (TestHub::open(&[]).await, place());
        let flags = format!("--era {era} --only echo,grow,shrink");
        let runtime = sold(&place, &hub, &flags, &[]).await;
        let boss = boss(&hub).await;
        output(&hire(&hub, &boss, "grow", "{}").await);
        let since = Instant::now();
        eventually(async || skills(&hub, &runtime).await.contains(&"grown".to_owned())).await;
        assert!(since.elapsed() < Duration::from_secs(2), "{era}: {:?}", since.elapsed());
        output(&hire(&hub, &boss, "grown", "{}").await);
        output(&hire(&hub, &boss, "shrink", "{}").await);
        let since = Instant::now();
        eventually(async || !skills(&hub, &runtime).await.contains(&"grown".to_owned())).await;
        assert!(since.elapsed() < Duration::from_secs(2), "{era}: {:?}", since.elapsed());
        output(&hire(&hub, &boss, "echo", r#"{"text":"x"}"#).await);
    }
}

#[tokio::test]
async fn a_job_of_a_lost_tool_is_handed_back() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let flags = ["--concurrency", "1"];
    let runtime = sold(&place, &hub, "--only slow,grow,shrink", &flags).await;
    let boss = boss(&hub).await;
    output(&hire(&hub, &boss, "grow", "{}").await);
    eventually(async || skills(&hub, &runtime).await.contains(&"grown".to_owned())).await;
    // It waits behind the others until its tool is gone. They are taken in this order.
    let taken = |count: usize| {
        let events = runtime.events();
        events.iter().filter(|event| event["event"] == "took").count() == count
    };
    let slow = post(&hub, &boss, "slow", r#"{"ms":2000}"#).await;
    eventually(async || taken(2)).await;
    let shrink = post(&hub, &boss, "shrink", "{}").await;
    eventually(async || taken(3)).await;
    let body = json!({"skill": "grown", "input": {}, "budget": 0.10,
        "to": format!("registry:{}", id_of(&runtime))});
    let job = hub.post("/v1/jobs", Some(&boss.key), &body).await.expect(201).str("/id");
    for done in [&slow, &shrink] {
        output(&ended(&hub, &boss, done).await);
    }
    eventually(async || {
        let declined = |event: &serde_json::Value| {
            event["event"] == "ended" && event["job"] == job && event["outcome"] == "declined"
        };
        runtime.events().iter().any(declined)
    })
    .await;
}

#[tokio::test]
async fn a_server_that_ended_is_started_again_and_its_agent_is_offline_meanwhile() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let runtime = sold(&place, &hub, "--only echo,die,append", &[]).await;
    let boss = boss(&hub).await;
    let job = hire(&hub, &boss, "die", "{}").await;
    let (cause, text) = failure(&job);
    assert!(cause == "execution" && text.contains("outcome unknown"), "{text}");
    eventually(async || agent(&hub, &runtime).await["online"] == false).await;
    eventually(async || agent(&hub, &runtime).await["online"] == true).await;
    let told = runtime.said("server_ended").expect("it is told");
    assert_eq!(told["retry_in_seconds"], 1, "{told}");
    assert!(told["why"].as_str().is_some_and(|why| why.contains("I cannot go on")), "{told}");
    output(&hire(&hub, &boss, "echo", r#"{"text":"x"}"#).await);
    assert_eq!((lines(&place, "starts").len(), lines(&place, "calls").len()), (2, 1));
    // The next delay is longer.
    kill(&server_pid(&place));
    eventually(async || {
        runtime.said("server_ended").is_some_and(|told| told["retry_in_seconds"] == 2)
    })
    .await;
}

#[tokio::test]
async fn a_tool_that_can_be_repeated_is_called_once_more() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let _runtime = sold(&place, &hub, "--only put", &[]).await;
    let boss = boss(&hub).await;
    let job = hire(&hub, &boss, "put", r#"{"text":"a"}"#).await;
    assert_eq!(output(&job), &json!({"text": "written"}));
    assert_eq!(lines(&place, "calls"), ["a", "a"]);
}

#[tokio::test]
async fn a_job_that_finds_its_server_down_is_handed_back() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let runtime = sold(&place, &hub, "--only echo,append", &[]).await;
    let boss = boss(&hub).await;
    // It cannot come back.
    place.file("die", "");
    kill(&server_pid(&place));
    let to = format!("registry:{}", id_of(&runtime));
    let body = json!({"skill": "append", "input": {"text": "x"}, "budget": 0.10, "to": to});
    let reply = hub.post("/v1/jobs", Some(&boss.key), &body).await;
    // Either the hub knew that the agent is offline, or the agent handed the job back.
    if reply.status == 201 {
        let job = reply.str("/id");
        eventually(async || {
            runtime.events().iter().any(|event| {
                event["event"] == "ended" && event["job"] == job && event["outcome"] == "declined"
            })
        })
        .await;
    }
    assert_eq!(lines(&place, "calls").len(), 0);
}

#[tokio::test]
async fn five_ends_in_five_minutes_end_the_agent() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let mut runtime = sold(&place, &hub, "--only echo", &[]).await;
    place.file("die", "");
    kill(&server_pid(&place));
    assert_eq!(runtime.ended().await.code(), Some(1));
    // The first end, and four starts that failed.
    assert_eq!(lines(&place, "starts").len(), 5);
    let said = place.text("said");
    assert!(said.contains("ends again and again") && said.contains("no fuel"), "{said}");
    let delays: Vec<_> = runtime
        .events()
        .iter()
        .filter(|event| event["event"] == "server_ended")
        .map(|event| event["retry_in_seconds"].clone())
        .collect();
    assert_eq!(delays, [json!(1), json!(2), json!(4), json!(8), json!(null)]);
}

#[tokio::test]
async fn a_server_that_ends_before_its_first_answer_is_not_started_again() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    place.file("die", "");
    let flags = ["--hub", &hub.url, "--mcp", &fixture(""), "--price", "0.05"];
    let mut runtime = place.run("said", &flags);
    assert_eq!(runtime.ended().await.code(), Some(1));
    assert_eq!(lines(&place, "starts").len(), 1);
    let said = place.text("said");
    assert!(said.contains("bad configuration: no fuel"), "{said}");
    let mut missing =
        place.run("said2", &["--hub", &hub.url, "--mcp", "no-such-program", "--price", "0"]);
    assert_eq!(missing.ended().await.code(), Some(1));
    assert!(place.text("said2").contains("no-such-program cannot be started"));
}

#[tokio::test]
async fn a_server_sees_no_variable_of_rialto_and_its_standard_error_is_the_log() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let command = fixture("--only environment");
    let flags = ["--mcp", &command, "--price", "0.05"];
    let env = [("RIALTO_AGORA_KEY", "x"), ("RIALTO_ANYTHING", "x"), ("FIXTURE_TOKEN", "x")];
    let runtime = place.at_work_with(&hub, "said", &flags, &env).await;
    let boss = boss(&hub).await;
    let job = hire(&hub, &boss, "environment", "{}").await;
    let names = output(&job)["text"].as_str().expect("text").to_owned();
    assert!(!names.contains("RIALTO_"), "{names}");
    assert!(names.split(' ').any(|name| name == "FIXTURE_TOKEN"), "{names}");
    assert!(runtime.events().iter().any(|event| event["line"] == "fixture is here"));
    // The log of the job has what was written during its call.
    let id = job["id"].as_str().expect("an id");
    eventually(async || {
        let mut log = place.rialto();
        log.args(["job", "log", id, "--hub", &hub.url]);
        let text = crate::kit::output(&mut log).expect("it runs").stdout;
        String::from_utf8_lossy(&text).contains("called environment")
    })
    .await;
}

#[tokio::test]
async fn a_stopped_agent_closes_the_input_of_its_server_and_ends_with_0() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let mut runtime = sold(&place, &hub, "--only echo", &[]).await;
    let pid = server_pid(&place);
    let since = Instant::now();
    assert_eq!(runtime.terminate().await.code(), Some(0));
    assert!(!is_alive(&pid), "the server has ended");
    assert!(since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());
}

#[tokio::test]
async fn a_server_that_ignores_the_end_of_its_input_is_ended() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    place.file("stubborn", "");
    let mut runtime = sold(&place, &hub, "--only echo", &[]).await;
    let pid = server_pid(&place);
    let since = Instant::now();
    assert_eq!(runtime.terminate().await.code(), Some(0));
    assert!(!is_alive(&pid), "the server was ended");
    assert!(since.elapsed() >= Duration::from_secs(2), "it had its two seconds");
}

/// A server that answers no call, reads no more, and asks for something without an end.
const FLOOD: &str = r#"
import json, sys

def write(id, **more):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, **more}) + "\n")
    sys.stdout.flush()

for line in sys.stdin:
    message = json.loads(line)
    id, method = message.get("id"), message["method"]
    if method == "initialize":
        write(id, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                          "serverInfo": {"name": "flood", "version": "1"}})
    elif method == "tools/list":
        write(id, result={"tools": [{"name": "pour", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        break
    elif id is not None:
        write(id, error={"code": -32601, "message": "no"})
while True:
    write("x" * 5000, method="sampling/createMessage", params={})
"#;

#[tokio::test]
async fn a_server_that_floods_its_agent_with_requests_is_ended_like_one_that_broke() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    place.file("flood.py", FLOOD);
    let flags = ["--mcp", "python3 flood.py", "--price", "0.05"];
    let runtime = place.at_work(&hub, "said", &flags).await;
    let boss = boss(&hub).await;
    let job = hire(&hub, &boss, "pour", "{}").await;
    assert!(failure(&job).1.contains("outcome unknown"), "{job}");
    let told = runtime.said("server_ended").expect("it is told");
    let why = told["why"].as_str().expect("a reason");
    assert!(why.contains("it does not read what it is sent"), "{told}");
    eventually(async || agent(&hub, &runtime).await["online"] == true).await;
}

/// A job whose tool must not be called twice, in the middle of its call.
async fn begun(hub: &TestHub, place: &Place) -> (Runtime, crate::kit::Agent, String) {
    let runtime = sold(place, hub, "--only append", &[]).await;
    let boss = boss(hub).await;
    let job = post(hub, &boss, "append", r#"{"text":"once","ms":60000}"#).await;
    eventually(async || lines(place, "calls").len() == 1).await;
    (runtime, boss, job)
}

#[tokio::test]
async fn a_stopped_agent_does_not_hand_back_a_call_that_may_have_had_an_effect() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let (mut runtime, boss, job) = begun(&hub, &place).await;
    assert_eq!(runtime.terminate().await.code(), Some(0));
    let job = ended(&hub, &boss, &job).await;
    assert!(failure(&job).1.contains("outcome unknown"), "{job}");
}

#[tokio::test]
async fn a_killed_agent_does_not_repeat_a_call_that_may_have_had_an_effect() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let (runtime, boss, job) = begun(&hub, &place).await;
    runtime.kill();
    let _again = sold(&place, &hub, "--only append", &[]).await;
    let job = ended(&hub, &boss, &job).await;
    assert!(failure(&job).1.contains("outcome unknown"), "{job}");
    assert_eq!(lines(&place, "calls"), ["once"]);
}
