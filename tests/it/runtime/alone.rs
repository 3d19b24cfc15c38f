//! One running program per agent, until its owner stops it; and the state it reports.

use rialto_core::agent::presence::Availability;
use serde_json::{Value, json};

use super::kit::{Place, Runtime, key_of};
use crate::kit::{Agent, TestHub, eventually};

async fn hub_and_boss() -> (TestHub, Agent) {
    let hub = TestHub::serve(&[]).await;
    let boss = hub.orchestrator("boss").await;
    hub.grant("boss", "100.00").await;
    (hub, boss)
}

async fn posted(hub: &TestHub, boss: &Agent, skill: &str) -> String {
    let body = json!({"skill": skill, "input": {}, "budget": 0.10});
    hub.post("/v1/jobs", Some(&boss.key), &body).await.expect(201).str("/id")
}

async fn ended(hub: &TestHub, boss: &Agent, id: &str) -> Value {
    hub.get(&format!("/v1/jobs/{id}?wait=30"), Some(&boss.key)).await.expect(200).json()
}

fn id_of(runtime: &Runtime) -> String {
    runtime.said("at_work").expect("said")["agent_id"].as_str().expect("text").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_program_with_the_same_key_is_refused() {
    let ((hub, boss), place, other) = (hub_and_boss().await, Place::new(), Place::new());
    let flags = ["--skill", "twin", "--price", "0.05", "--exec", "echo run >>runs; echo '{}'"];
    let mut first = place.at_work(&hub, "said", &flags).await;
    let key = other.path("copied.key");
    std::fs::copy(key_of(&place, "twin"), &key).expect("copied");
    let second = other
        .rialto()
        .args(["agent", "run", "--json", "--hub", &hub.url, "--key-file"])
        .arg(&key)
        .args(["--skill", "other", "--price", "0.01", "--exec", "echo run >>runs; echo '{}'"])
        .output()
        .expect("it runs");
    assert_eq!(second.status.code(), Some(5), "{}", String::from_utf8_lossy(&second.stderr));
    let said = String::from_utf8_lossy(&second.stdout).into_owned();
    assert!(said.contains("another program uses this agent's key"), "{said}");
    // The first continues unaffected.
    first.assert_running();
    let job = posted(&hub, &boss, "twin").await;
    assert_eq!(ended(&hub, &boss, &job).await["state"], "completed");
    assert_eq!((place.text("runs"), other.text("runs")), ("run\n".to_owned(), String::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_its_owner_removes_stops_and_does_not_come_back() {
    let ((hub, _), place) = (hub_and_boss().await, Place::new());
    let flags = ["--skill", "gone", "--price", "0.05", "--exec", "echo '{}'"];
    let mut runtime = place.at_work(&hub, "said", &flags).await;
    let (id, key) = (id_of(&runtime), key_of(&place, "gone"));
    let removed = place
        .rialto()
        .args(["agent", "rm", &id, "--hub", &hub.url, "--key-file"])
        .arg(&key)
        .output()
        .expect("it runs");
    assert!(removed.status.success(), "{}", String::from_utf8_lossy(&removed.stderr));
    let left = runtime.ended().await;
    assert_eq!(left.code(), Some(5), "{:?}", runtime.events());
    let said = place.text("said");
    assert!(said.contains("the agent was unregistered from its hub"), "{said}");
    let found = hub.get("/registry/discover?skill=gone", None).await.expect(200).json();
    assert_eq!(found["total"], 0, "{found}");
    // Starting it again registers it again, under its old id.
    let again = place.at_work(&hub, "again", &flags).await;
    assert_eq!(id_of(&again), id);
}

#[tokio::test]
async fn a_workshop_that_stays_full_is_busy_until_there_is_room() {
    let ((hub, boss), place) = (hub_and_boss().await, Place::new());
    let exec = "until [ -e gate ]; do sleep 0.05; done; echo '{}'";
    let flags = ["--skill", "busy", "--price", "0.05", "--concurrency", "1", "--exec", exec];
    let _runtime = place.at_work(&hub, "said", &flags).await;
    let is_busy = || {
        hub.engine.with_world(|world| {
            let availability =
                |id| world.agent_state(id).map(|fixture| fixture.presence.availability);
            world.agents().any(|agent| availability(agent.id) == Some(Availability::Busy))
        })
    };
    assert!(!is_busy());
    let job = posted(&hub, &boss, "busy").await;
    eventually(async || is_busy()).await;
    place.file("gate", "");
    assert_eq!(ended(&hub, &boss, &job).await["state"], "completed");
    eventually(async || !is_busy()).await;
}

#[tokio::test]
async fn a_job_that_cannot_be_written_down_is_declined_and_the_agent_says_why() {
    let ((hub, boss), place) = (hub_and_boss().await, Place::new());
    let exec = "echo run >>runs; echo '{}'";
    let flags = ["--skill", "full", "--price", "0.05", "--exec", exec];
    let runtime = place.at_work(&hub, "said", &flags).await;
    let jobs = key_of(&place, "full").with_file_name("jobs");
    std::fs::rename(&jobs, jobs.with_file_name("away")).expect("moved");
    std::fs::write(&jobs, "no directory").expect("written");
    let job = posted(&hub, &boss, "full").await;
    assert_eq!(ended(&hub, &boss, &job).await["state"], "failed");
    eventually(async || runtime.said("ended").is_some_and(|said| said["outcome"] == "declined"))
        .await;
    let said = runtime.said("mishap").expect("said");
    assert_eq!((&said["job"], &said["what"]), (&json!(job), &json!("cannot write the job record")));
    assert_eq!(place.text("runs"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_that_stays_says_is_in_the_log_of_its_job() {
    let ((hub, boss), place) = (hub_and_boss().await, Place::new());
    place.file(
        "stays.sh",
        r#"while read job; do
  id=$(printf %s "$job" | sed 's/.*"job_id":"\([^"]*\)".*/\1/')
  echo "thinking of $id" >&2
  echo "{\"job_id\":\"$id\",\"output\":null}"
done"#,
    );
    let flags = ["--skill", "stay", "--price", "0.05", "--persistent", "--exec", "sh stays.sh"];
    let _runtime = place.at_work(&hub, "said", &flags).await;
    for _ in 0..2 {
        let id = posted(&hub, &boss, "stay").await;
        let job = ended(&hub, &boss, &id).await;
        assert_eq!(job["result"]["output"], json!({"result": null}), "{job}");
        let log = place.rialto().args(["job", "log", &id]).output().expect("it runs");
        assert_eq!(String::from_utf8_lossy(&log.stdout), format!("thinking of {id}\n"));
    }
}
