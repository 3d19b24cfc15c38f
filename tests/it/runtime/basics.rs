//! How an agent handles the jobs it gets.

use serde_json::{Value, json};

use super::kit::{Place, Runtime};
use crate::kit::{Agent, Reply, TestHub, eventually, output};

/// A hub, and a requester with credits.
async fn hub_and_boss() -> (TestHub, Agent) {
    let hub = TestHub::serve(&[]).await;
    let boss = hub.orchestrator("boss").await;
    hub.grant("boss", "100.00").await;
    (hub, boss)
}

async fn ask(hub: &TestHub, boss: &Agent, body: &Value) -> Reply {
    hub.post("/v1/jobs?wait=30", Some(&boss.key), body).await
}

async fn done(hub: &TestHub, boss: &Agent, skill: &str, input: &Value) -> Value {
    let body = json!({"skill": skill, "input": input, "budget": 0.10});
    ask(hub, boss, &body).await.expect(201).json()
}

#[tokio::test]
async fn a_program_is_hired_and_paid() {
    let ((hub, boss), place) = (hub_and_boss().await, Place::new());
    place.file(
        "shout.sh",
        r#"read job; echo "got it" >&2; printf %s "$job" >job; echo '{"loud":1.50}'"#,
    );
    let flags = ["--skill", "shout", "--price", "0.05", "--exec", "sh shout.sh"];
    let runtime = place.at_work(&hub, "said", &flags).await;
    let job = done(&hub, &boss, "shout", &json!({"text": "hi"})).await;
    assert_eq!(job["state"], "completed", "{job}");
    assert_eq!(job["result"]["output"], json!({"loud": 1.50}));
    assert_eq!(job["paid"], json!(0.05));
    let owner = runtime.said("at_work").expect("said")["owner"].as_str().expect("text").to_owned();
    assert_eq!(hub.balance(&owner).await.0, "0.05");
    // The handler got the six members of the contract.
    let got: Value = serde_json::from_str(&place.text("job")).expect("JSON");
    let names: Vec<&String> = got.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["budget", "deadline", "input", "job_id", "requester", "skill"]);
    assert_eq!(got["job_id"], job["id"]);
    assert_eq!(got["input"], json!({"text": "hi"}));
    assert_eq!(got["requester"], boss.id.as_str());
    assert_eq!(got["budget"], json!(0.10));
    // Its standard error is the job's log.
    eventually(async || runtime.said("log").is_some_and(|said| said["line"] == "got it")).await;
}

#[tokio::test]
async fn exit_75_hands_the_job_to_another_agent() {
    let ((hub, boss), place) = (hub_and_boss().await, Place::new());
    let flags = |name: &'static str, exec: &'static str| {
        ["--skill", "pick", "--price", "0.05", "--name", name, "--exec", exec]
    };
    let picky = place.at_work(&hub, "picky", &flags("picky", "exit 75")).await;
    let willing =
        place.at_work(&hub, "willing", &flags("willing", "echo '{\"by\":\"willing\"}'")).await;
    let job = done(&hub, &boss, "pick", &json!({})).await;
    assert_eq!(job["result"]["output"], json!({"by": "willing"}), "{job}");
    eventually(async || picky.said("ended").is_some_and(|said| said["outcome"] == "declined"))
        .await;
    drop(willing);
}

#[tokio::test]
async fn a_program_that_fails_fails_its_job_and_says_why() {
    let ((hub, boss), place) = (hub_and_boss().await, Place::new());
    let exec = r#"echo '{"error":"no paper"}'; exit 3"#;
    let flags = ["--skill", "print", "--price", "0.05", "--exec", exec];
    let _runtime = place.at_work(&hub, "said", &flags).await;
    let job = done(&hub, &boss, "print", &json!({})).await;
    assert_eq!((&job["state"], &job["paid"]), (&json!("failed"), &json!(0.00)), "{job}");
    assert_eq!(job["result"]["text"], "no paper");
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_ended() {
    let ((hub, boss), place) = (hub_and_boss().await, Place::new());
    let exec = "trap 'echo asked >ended; exit 1' TERM; sleep 600 & wait";
    let flags = ["--skill", "wait", "--price", "0.05", "--timeout", "300ms", "--exec", exec];
    let _runtime = place.at_work(&hub, "said", &flags).await;
    let job = done(&hub, &boss, "wait", &json!({})).await;
    assert_eq!(job["state"], "failed", "{job}");
    assert_eq!(job["result"]["text"], "the job exceeded its time limit of 0.3 s");
    assert_eq!(place.text("ended"), "asked\n");
}

#[tokio::test]
async fn input_and_output_are_held_to_their_schemas() {
    let ((hub, boss), place) = (hub_and_boss().await, Place::new());
    let wants =
        r#"{"type":"object","required":["n"],"properties":{"n":{"type":"integer","minimum":1}}}"#;
    let flags = [
        "--skill",
        "count",
        "--price",
        "0.05",
        "--exec",
        "echo run >>runs; echo '{\"n\":0}'",
        "--input-schema",
        wants,
        "--output-schema",
        wants,
    ];
    let runtime = place.at_work(&hub, "said", &flags).await;
    let job = done(&hub, &boss, "count", &json!({"n": 0})).await;
    assert_eq!(job["state"], "failed", "{job}");
    let text = job["result"]["text"].as_str().expect("text");
    assert!(text.contains("n must be"), "{text}");
    assert_eq!(place.text("runs"), "", "the program was never asked");
    let worker = Agent {
        id: runtime.said("at_work").expect("said")["agent_id"].as_str().expect("text").to_owned(),
        ..boss.clone()
    };
    assert_eq!(hub.score(&worker).await, "50.0", "invalid input does not lower the score");
    let job = done(&hub, &boss, "count", &json!({"n": 1})).await;
    let text = job["result"]["text"].as_str().expect("text");
    assert!(text.starts_with("the output does not match the skill's schema: n must be"), "{text}");
    assert_eq!(place.text("runs"), "run\n");
}

#[tokio::test]
async fn several_skills_come_from_a_file_and_programs_may_stay() {
    let ((hub, boss), place) = (hub_and_boss().await, Place::new());
    place.file(
        "stays.sh",
        r#"echo start >>starts
while read job; do
  id=$(printf %s "$job" | sed 's/.*"job_id":"\([^"]*\)".*/\1/')
  echo "{\"job_id\":\"$id\",\"output\":{\"pid\":$$}}"
done"#,
    );
    place.file(
        "agent.toml",
        r#"name = "both"
concurrency = 2
[[skill]]
name = "once"
price = "0.05"
exec = "pwd >where; echo '{}'"
timeout = "5s"
input = { type = "object" }
[[skill]]
name = "stay"
price = "0.01"
exec = "sh stays.sh"
persistent = true
[skill.offer]
per_kib = "0.01"
"#,
    );
    let _runtime = place.at_work(&hub, "said", &[]).await;
    let first = done(&hub, &boss, "stay", &json!({})).await;
    let second = done(&hub, &boss, "stay", &json!({})).await;
    assert_eq!(first["state"], "completed", "{first}");
    assert_eq!(first["result"]["output"], second["result"]["output"]);
    assert_eq!(place.text("starts"), "start\n");
    assert_eq!(done(&hub, &boss, "once", &json!({})).await["state"], "completed");
    assert_eq!(
        place.text("where").trim(),
        place.directory.path().canonicalize().expect("a path").to_str().expect("text")
    );
}

#[tokio::test]
async fn a_server_of_ones_own_may_do_the_work() {
    let ((hub, boss), place) = (hub_and_boss().await, Place::new());
    let url = handler().await;
    let flags = ["--skill", "web", "--price", "0.05", "--http", &url];
    let _runtime = place.at_work(&hub, "said", &flags).await;
    let job = done(&hub, &boss, "web", &json!({"answer": 200})).await;
    let key = job["result"]["output"]["key"].as_str().expect("a key");
    assert_eq!(key.len(), 32, "{job}");
    let job = done(&hub, &boss, "web", &json!({"answer": 500})).await;
    assert_eq!(job["result"]["text"], "asked for it", "{job}");
    let job = done(&hub, &boss, "web", &json!({"answer": 503})).await;
    assert_eq!(job["state"], "failed", "no other agent has the skill: {job}");
}

/// Answers with the status that the input names, and the received idempotency key.
async fn handler() -> String {
    use axum::http::{HeaderMap, StatusCode};
    let answer = |headers: HeaderMap, body: String| async move {
        let job: Value = serde_json::from_str(&body).expect("JSON");
        let status = u16::try_from(job["input"]["answer"].as_u64().expect("a number"));
        let status = StatusCode::from_u16(status.expect("a status")).expect("a status");
        let key = headers["idempotency-key"].to_str().expect("text").to_owned();
        (status, json!({"key": key, "error": "asked for it"}).to_string())
    };
    let router = axum::Router::new().route("/work", axum::routing::post(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/work", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test]
async fn a_runtime_that_is_told_to_stop_finishes_or_hands_back_and_leaves_the_lists() {
    let ((hub, boss), place) = (hub_and_boss().await, Place::new());
    let exec = "if [ -e slow ]; then echo begun >begun; sleep 600; fi; echo '{}'";
    let flags = ["--skill", "leave", "--price", "0.05", "--name", "leaver", "--exec", exec];
    let mut leaver = place.at_work(&hub, "leaver", &flags).await;
    assert_eq!(done(&hub, &boss, "leave", &json!({})).await["state"], "completed");
    place.file("slow", "");
    let body = json!({"skill": "leave", "input": {}, "budget": 0.10});
    let posted = hub.post("/v1/jobs", Some(&boss.key), &body).await.expect(201);
    eventually(async || !place.text("begun").is_empty()).await;
    std::fs::remove_file(place.path("slow")).expect("removed");
    // An agent that takes over.
    let other = ["--skill", "leave", "--price", "0.05", "--name", "other", "--exec", "echo '{}'"];
    let _other = place.at_work(&hub, "other", &other).await;
    let left = leaver.terminate().await;
    assert!(left.success(), "{left:?}: {:?}", leaver.events());
    let found = hub.get("/registry/discover?skill=leave", None).await.expect(200).json();
    assert_eq!(found["total"], 1, "{found}");
    assert_eq!(found["agents"][0]["agent_name"], "other");
    let path = format!("/v1/jobs/{}?wait=30", posted.str("/id"));
    let job = hub.get(&path, Some(&boss.key)).await.expect(200).json();
    assert_eq!(job["state"], "completed", "{job}");
    // It returns under its old id.
    let id = |runtime: &Runtime| runtime.said("at_work").expect("said")["agent_id"].clone();
    let first = id(&leaver);
    let again = place.at_work(&hub, "leaver", &flags).await;
    assert_eq!(id(&again), first);
}

#[tokio::test]
async fn a_second_agent_of_one_name_is_refused_and_gets_a_name_of_its_own() {
    let ((hub, _), place) = (hub_and_boss().await, Place::new());
    let flags = ["--skill", "twin", "--price", "0.05", "--exec", "echo '{}'"];
    let _one = place.at_work(&hub, "one", &flags).await;
    for name in [&[][..], &["--name", "twin"]] {
        let mut second = place.rialto();
        second.args(["agent", "run", "--json", "--hub", &hub.url]).args(flags).args(name);
        let output = output(&mut second).expect("it runs");
        assert_eq!(output.status.code(), Some(5));
        let told: Value = serde_json::from_slice(&output.stdout).expect("one document");
        assert!(told["next"].as_str().is_some_and(|next| next.contains("--name")), "{told}");
    }
    let two = place.at_work(&hub, "two", &[&flags[..], &["--name", "twin-2"]].concat()).await;
    assert_eq!(two.said("at_work").expect("said")["agent"], "twin-2");
}

#[tokio::test]
async fn a_hub_that_was_set_up_anew_gets_the_agent_again() {
    let ((hub, _), place) = (hub_and_boss().await, Place::new());
    let flags = ["--skill", "stay", "--price", "0.05", "--exec", "echo '{}'"];
    let first = place.at_work(&hub, "first", &flags).await;
    first.kill();
    let hub = TestHub::serve(&[]).await;
    // Another address is another context; the key is given by a file.
    let key = place.path("agent.key");
    let kept = std::fs::read_to_string(super::kit::key_of(&place, "stay")).expect("a key");
    let no_hub: Vec<&str> = kept.lines().filter(|line| !line.starts_with("hub ")).collect();
    std::fs::write(&key, no_hub.join("\n")).expect("written");
    let key = key.to_str().expect("text");
    let runtime = place.at_work(&hub, "second", &[&flags[..], &["--key-file", key]].concat()).await;
    let boss = hub.orchestrator("boss").await;
    hub.grant("boss", "1.00").await;
    assert_eq!(done(&hub, &boss, "stay", &json!({})).await["state"], "completed");
    drop(runtime);
}

#[tokio::test]
async fn a_price_is_named_by_rule_where_one_is_asked_for() {
    let ((hub, boss), place) = (hub_and_boss().await, Place::new());
    place.file(
        "agent.toml",
        r#"[[skill]]
name = "read"
price = "0.05"
exec = "echo '{\"read\":true}'"
input = { type = "object", required = ["text"] }
offer = { per_kib = "0.01" }
"#,
    );
    let runtime = place.at_work(&hub, "said", &[]).await;
    let text = "x".repeat(2000);
    let body =
        json!({"skill": "read", "input": {"text": text}, "budget": 1.00, "select": "offers"});
    let posted = hub.post("/v1/jobs", Some(&boss.key), &body).await.expect(201).json();
    let path = format!("/v1/jobs/{}", posted["id"].as_str().expect("an id"));
    let offers = async || {
        let reply = hub.get(&format!("{path}/offers"), Some(&boss.key)).await.expect(200);
        reply.json()["offers"].as_array().cloned().unwrap_or_default()
    };
    eventually(async || !offers().await.is_empty()).await;
    let offer = offers().await.remove(0);
    assert_eq!(offer["price"], json!(0.07), "two started KiB: {offer}");
    eventually(async || runtime.said("offered").is_some_and(|said| said["price"] == "0.07")).await;
    let body = json!({"agent": offer["agent"]});
    hub.post(&format!("{path}/accept"), Some(&boss.key), &body).await.expect(200);
    let job = hub.get(&format!("{path}?wait=30"), Some(&boss.key)).await.expect(200).json();
    assert_eq!((&job["state"], &job["paid"]), (&json!("completed"), &json!(0.07)), "{job}");
}
