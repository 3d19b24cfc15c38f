//! Tests for workers: listing work and reporting results.

use rialto_core::agent::presence::Availability;
use rialto_core::command::{Command, JobRef};
use rialto_core::job::Reassignment;
use rialto_core::job::{Policy, Selection};
use rialto_core::time::Millis;

use serde_json::json;

use super::kit::{Agent, Hub, nothing};

async fn scene() -> (Hub, Agent, Agent) {
    let hub = Hub::start().await;
    hub.grant("rich", "10.00").await;
    let client = hub.enrol("client", "rich", None).await;
    let worker = hub.enrol("worker", "globex", Some(("sum", "0.05"))).await;
    (hub, client, worker)
}

fn ids(got: &super::kit::Got) -> Vec<String> {
    let jobs = got.body["jobs"].as_array().expect("a list");
    jobs.iter().map(|job| job["id"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn a_worker_is_told_all_it_needs_oldest_first() {
    let (hub, client, worker) = scene().await;
    assert!(ids(&hub.get("/v1/work", &worker.key).await).is_empty());
    let first = hub.open(&client, "sum", "0.50").await;
    let second = hub.open(&client, "sum", "0.50").await;
    let got = hub.get("/v1/work", &worker.key).await;
    assert_eq!(ids(&got), [first.uuid.to_string(), second.uuid.to_string()]);
    let expected = format!(
        r#"{{"id":"{}","epoch":1,"skill":"sum","input":{{
 "text": 1.10 }},"requester":"{}","protocol":"registry","budget":0.50,"price":0.05,"deadline":"2026-02-11T12:10:00.000Z","lease_until":"2026-02-11T12:10:00.000Z","opened_at":"2026-02-11T12:00:00.000Z"}}"#,
        first.uuid, client.native
    );
    assert!(got.text.contains(&expected), "{}", got.text);
    assert_eq!(ids(&hub.get("/v1/work?limit=1", &worker.key).await), [first.uuid.to_string()]);
    assert!(ids(&hub.get("/v1/work", &client.key).await).is_empty());
}

#[tokio::test]
async fn what_was_fetched_is_handed_over() {
    let (hub, client, worker) = scene().await;
    let job = hub.open(&client, "sum", "0.50").await;
    let turn = || hub.engine.with_world(|world| world.job(job.id).and_then(|job| job.assignment));
    assert!(turn().is_some_and(|turn| !turn.handed_over));
    hub.get("/v1/work", &worker.key).await;
    assert!(turn().is_some_and(|turn| turn.handed_over));
}

#[tokio::test]
async fn a_poll_ends_with_a_job_it_does_not_know() {
    let (hub, client, worker) = scene().await;
    let known = hub.open(&client, "sum", "0.50").await;
    let path = format!("/v1/work?wait=30&known={}", known.uuid);
    let (got, fresh) = tokio::join!(hub.get(&path, &worker.key), hub.open(&client, "sum", "0.50"));
    assert_eq!(ids(&got), [fresh.uuid.to_string()]);
    assert_eq!((&got.body["gone"], &got.body["more"]), (&json!([]), &json!(false)));
    // At once, if there is a job already.
    assert_eq!(ids(&hub.get(&path, &worker.key).await).len(), 1);
}

#[tokio::test]
async fn a_poll_ends_when_something_is_taken_away() {
    let (hub, client, worker) = scene().await;
    let kept = hub.open(&client, "sum", "0.50").await;
    let lost = hub.open(&client, "sum", "0.50").await;
    let path = format!("/v1/work?wait=30&known={},{}", kept.uuid, lost.uuid);
    let requeue = Command::Requeue { job: JobRef::Id(lost.id) };
    let (got, requeued) = tokio::join!(hub.get(&path, &worker.key), hub.engine.run(requeue));
    requeued.expect("taken away");
    assert!(ids(&got).is_empty());
    assert_eq!(got.body["gone"], json!([lost.uuid]));
    assert_eq!(hub.get(&path, &worker.key).await.body["gone"], json!([lost.uuid]));
}

#[tokio::test]
async fn a_list_that_was_cut_says_so_and_loses_nothing_that_is_known() {
    let (hub, client, worker) = scene().await;
    let first = hub.open(&client, "sum", "0.50").await;
    let second = hub.open(&client, "sum", "0.50").await;
    let third = hub.open(&client, "sum", "0.50").await;
    let path = format!("/v1/work?limit=1&known={}.1", third.uuid);
    let got = hub.get(&path, &worker.key).await;
    assert_eq!(ids(&got), [first.uuid.to_string()]);
    assert_eq!((&got.body["gone"], &got.body["more"]), (&json!([]), &json!(true)));
    let path = format!("/v1/work?limit=0&known={}.1,{}.2", first.uuid, second.uuid);
    let got = hub.get(&path, &worker.key).await;
    assert!(ids(&got).is_empty());
    // Another assignment of a job counts as another entry.
    assert_eq!((&got.body["gone"], &got.body["more"]), (&json!([second.uuid]), &json!(true)));
}

#[tokio::test]
async fn an_agent_waits_for_so_many_answers_at_a_time() {
    let (hub, _, worker) = scene().await;
    let hub = std::sync::Arc::new(hub);
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..70 {
        let (hub, key) = (hub.clone(), worker.key.clone());
        waiting.spawn(async move { hub.get("/v1/work?wait=30", &key).await.status });
    }
    // Six more than may wait: they end first, and no others do.
    for _ in 0..6 {
        assert_eq!(waiting.join_next().await.expect("some wait").expect("it ends"), 429);
    }
    assert!(waiting.try_join_next().is_none());
    // A request that does not wait gets a response, and so do requests of other agents.
    assert_eq!(hub.get("/v1/work", &worker.key).await.status, 200);
}

#[tokio::test]
async fn one_program_at_a_time_works_for_an_agent() {
    let (hub, client, worker) = scene().await;
    let [one, two] = ["one", "two"].map(|name| format!("/v1/work?instance={name}"));
    assert_eq!(hub.get(&one, &worker.key).await.status, 200);
    let job = hub.open(&client, "sum", "0.50").await;
    let refused = hub.get(&two, &worker.key).await;
    refused.is_problem(409, "other_instance");
    assert_eq!(refused.body["retryable"], true, "the first may have ended");
    let waiting = format!("{one}&wait=30&known={}", job.uuid);
    let (_, refused) = tokio::join!(
        async {
            let waits = hub.get(&waiting, &worker.key);
            assert!(
                tokio::time::timeout(std::time::Duration::from_millis(200), waits).await.is_err()
            );
        },
        async {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            hub.get(&two, &worker.key).await
        }
    );
    refused.is_problem(409, "other_instance");
    assert_eq!(refused.body["retryable"], false, "the first is there");
    // Restarted under the same name it continues; and its reservation expires.
    assert_eq!(ids(&hub.get(&one, &worker.key).await), [job.uuid.to_string()]);
    hub.clock.advance(Millis::seconds(10));
    assert_eq!(ids(&hub.get(&two, &worker.key).await), [job.uuid.to_string()]);
    hub.get(&one, &worker.key).await.is_problem(409, "other_instance");
    // Other agents, and programs without an instance name, are not affected.
    assert_eq!(hub.get(&one, &client.key).await.status, 200);
    assert_eq!(hub.get("/v1/work", &worker.key).await.status, 200);
}

#[tokio::test]
async fn a_worker_that_was_removed_hears_so_at_once_and_unlike_a_stranger() {
    let (hub, _, worker) = scene().await;
    let remove = Command::Remove { agent: worker.id, by_operator: false };
    let (got, removed) =
        tokio::join!(hub.get("/v1/work?wait=30", &worker.key), hub.engine.run(remove));
    removed.expect("removed");
    got.is_problem(410, "unregistered");
    hub.get("/v1/work", &worker.key).await.is_problem(410, "unregistered");
    hub.engine
        .run(Command::RevokeKeys { agent: worker.id, by_operator: false })
        .await
        .expect("revoked");
    hub.get("/v1/work", &worker.key).await.is_problem(401, "unauthorized");
}

#[tokio::test]
async fn a_worker_says_that_it_is_busy_and_gets_work_all_the_same() {
    let (hub, client, worker) = scene().await;
    let availability = || {
        hub.engine.with_world(|world| {
            world.agent_state(worker.id).map(|agent_state| agent_state.presence.availability)
        })
    };
    for (status, wanted) in [("busy", Availability::Busy), ("online", Availability::Idle)] {
        let said = format!(r#"{{"status":"{status}"}}"#);
        let got = hub.post("/v1/me/status", &worker.key, &said).await;
        assert_eq!((got.status, availability()), (200, Some(wanted)), "{}", got.text);
        hub.open(&client, "sum", "0.50").await;
    }
    assert_eq!(ids(&hub.get("/v1/work", &worker.key).await).len(), 2);
}

#[tokio::test]
async fn a_poll_that_makes_no_sense_is_told_so() {
    let (hub, _, worker) = scene().await;
    let many = vec![nothing().to_string(); 201].join(",");
    for query in [
        "wait=31",
        "limit=51",
        "known=17",
        "known=17.x",
        "instance=",
        "instance=a.b",
        &format!("known={many}"),
    ] {
        hub.get(&format!("/v1/work?{query}"), &worker.key).await.is_problem(400, "malformed");
    }
}

#[tokio::test]
async fn a_result_is_paid_once_and_a_repeat_is_told_so() {
    let (hub, client, worker) = scene().await;
    let job = hub.open(&client, "sum", "0.50").await;
    let path = format!("/v1/jobs/{}/result", job.uuid);
    let said = r#"{"epoch":1,"ok":true,"output":{"sum": 0.30},"took_ms":12}"#;
    let got = hub.post(&path, &worker.key, said).await;
    let paid = |repeated: bool| {
        let id = job.uuid;
        format!(r#"{{"id":"{id}","state":"completed","paid":0.05,"repeated":{repeated}}}"#)
    };
    assert_eq!((got.status, got.text), (200, paid(false)));
    let again = r#"{ "output":{"sum":0.30}, "ok":true, "took_ms":99 }"#;
    assert_eq!(hub.post(&path, &worker.key, again).await.text, paid(true));
    let other = r#"{"ok":true,"output":{"sum":0.31}}"#;
    hub.post(&path, &worker.key, other).await.is_problem(409, "wrong_state");
    let shown = hub.get(&format!("/v1/jobs/{}", job.uuid), &client.key).await;
    assert_eq!(shown.body["result"]["took_ms"], 12);
    assert!(shown.text.contains(r#""output":{"sum": 0.30}"#), "{}", shown.text);
}

#[tokio::test]
async fn a_worker_may_ask_less_and_never_gets_more() {
    let (hub, client, worker) = scene().await;
    for (cost, paid) in [("0.04", "0.04"), ("0.5", "0.05")] {
        let job = hub.open(&client, "sum", "0.50").await;
        let said = format!(r#"{{"ok":true,"output":{{}},"cost":{cost}}}"#);
        let got = hub.post(&format!("/v1/jobs/{}/result", job.uuid), &worker.key, &said).await;
        assert!(got.text.contains(&format!(r#""paid":{paid},"#)), "{}", got.text);
    }
}

#[tokio::test]
async fn a_figure_that_makes_no_sense_voids_no_output_and_the_worker_is_told() {
    let (hub, client, worker) = scene().await;
    for (figure, paid, told) in [
        (r#""cost":0.030000000000000002,"took_ms":12.0,"epoch":1.0"#, "0.03", None),
        (
            r#""cost":"0.04""#,
            "0.05",
            Some("cost must be a number; the agreed price is used instead"),
        ),
        (
            r#""cost":-1"#,
            "0.05",
            Some("cost must not be negative; the agreed price is used instead"),
        ),
        (
            r#""took_ms":-1"#,
            "0.05",
            Some("took_ms must not be negative; the hub's own clock is used instead"),
        ),
        (
            r#""took_ms":0.5"#,
            "0.05",
            Some("took_ms must be a whole number; the hub's own clock is used instead"),
        ),
    ] {
        let job = hub.open(&client, "sum", "0.50").await;
        let said = format!(r#"{{"ok":true,"output":{{}},{figure}}}"#);
        let got = hub.post(&format!("/v1/jobs/{}/result", job.uuid), &worker.key, &said).await;
        assert!(got.text.contains(&format!(r#""paid":{paid},"#)), "{}", got.text);
        let warnings: Vec<_> = told.into_iter().collect();
        match warnings.is_empty() {
            true => assert_eq!(got.body.get("warnings"), None),
            false => assert_eq!(got.body["warnings"], serde_json::json!(warnings)),
        }
    }
}

#[tokio::test]
async fn only_the_current_worker_reports_and_only_for_its_own_assignment() {
    let (hub, client, worker) = scene().await;
    let stranger = hub.enrol("stranger", "acme", None).await;
    let job = hub.open(&client, "sum", "0.50").await;
    let done = r#","ok":true,"output":{}"#;
    for (end, more) in [("result", done), ("decline", "")] {
        let said = |epoch: u32| format!(r#"{{"epoch":{epoch}{more}}}"#);
        let path = format!("/v1/jobs/{}/{end}", job.uuid);
        hub.post(&path, &worker.key, &said(2)).await.is_problem(409, "wrong_state");
        for other in [&client, &stranger] {
            hub.post(&path, &other.key, &said(1)).await.is_problem(404, "not_found");
        }
        let nowhere = format!("/v1/jobs/{}/{end}", nothing());
        hub.post(&nowhere, &worker.key, &said(1)).await.is_problem(404, "not_found");
    }
    // A worker that lost the job has no access to it any more.
    hub.engine.run(Command::Requeue { job: JobRef::Id(job.id) }).await.expect("taken away");
    let path = format!("/v1/jobs/{}/result", job.uuid);
    let said = r#"{"epoch":1,"ok":true,"output":{}}"#;
    hub.post(&path, &worker.key, said).await.is_problem(404, "not_found");
}

#[tokio::test]
async fn what_makes_no_sense_as_a_result_names_its_member() {
    let (hub, client, worker) = scene().await;
    let job = hub.open(&client, "sum", "0.50").await;
    let path = format!("/v1/jobs/{}/result", job.uuid);
    for (said, field) in [
        (r#"{"output":{}}"#, "/ok"),
        (r#"{"ok":true}"#, "/output"),
        (r#"{"ok":true,"output":[1]}"#, "/output"),
        (r#"{"ok":true,"output":"x"}"#, "/output"),
        (r#"{"ok":true,"output":{},"message":"but"}"#, "/message"),
        (r#"{"ok":true,"output":{},"epoch":-1}"#, "/epoch"),
        (r#"{"ok":false,"cause":"mood"}"#, "/cause"),
    ] {
        let got = hub.post(&path, &worker.key, said).await;
        got.is_problem(400, "malformed");
        assert_eq!(got.body["field"], field, "{said}");
    }
    assert_eq!(ids(&hub.get("/v1/work", &worker.key).await).len(), 1);
}

#[tokio::test]
async fn a_failure_is_the_workers_unless_the_input_was_no_good() {
    for (cause, code, failures, shown) in [
        (r#","cause":"execution""#, "EXECUTION_ERROR", 1, "execution"),
        ("", "SKILL_MISMATCH", 0, "no_such_skill"),
        ("", "WHATEVER", 1, "execution"),
        (r#","cause":"invalid_input""#, "BAD_INPUT", 0, "policy"),
    ] {
        let (hub, client, worker) = scene().await;
        let job = hub.open(&client, "sum", "0.50").await;
        let said = format!(r#"{{"ok":false,"code":"{code}","message":"no such page"{cause}}}"#);
        let path = format!("/v1/jobs/{}/result", job.uuid);
        let got = hub.post(&path, &worker.key, &said).await;
        assert_eq!(got.body["state"], "failed", "{}", got.text);
        assert!(got.text.contains(r#""paid":0.00,"#), "{}", got.text);
        let told = hub.get(&format!("/v1/jobs/{}", job.uuid), &client.key).await;
        assert_eq!(told.body["result"]["text"], "no such page");
        assert_eq!(told.body["cause"], shown);
        let standing = hub.engine.with_world(|world| {
            world.agent_state(worker.id).map(|agent_state| agent_state.standing)
        });
        assert_eq!(standing.map(|standing| standing.failures), Some(failures), "{code}");
    }
}

#[tokio::test]
async fn a_declined_job_goes_on_if_the_hub_chose_and_ends_if_it_was_named() {
    let (hub, client, worker) = scene().await;
    let second = hub.enrol("second", "initech", Some(("sum", "0.05"))).await;
    let said = r#"{"epoch":1,"reason":"too much to do"}"#;
    let policy = Policy {
        reassignment: Reassignment { when_declined: true, ..Reassignment::default() },
        ..Policy::default()
    };
    let chosen = hub.hire_by(&client, "sum", Selection::BestReputation, policy).await;
    let path = format!("/v1/jobs/{}/decline", chosen.uuid);
    let got = hub.post(&path, &worker.key, said).await;
    assert_eq!(got.text, format!(r#"{{"id":"{}","state":"assigned"}}"#, chosen.uuid));
    assert_eq!(ids(&hub.get("/v1/work", &second.key).await), [chosen.uuid.to_string()]);
    hub.post(&path, &worker.key, said).await.is_problem(404, "not_found");

    let named = hub.hire(&client, "sum", "0.50", Selection::Direct(worker.id)).await;
    let got = hub.post(&format!("/v1/jobs/{}/decline", named.uuid), &worker.key, said).await;
    assert_eq!(got.body["state"], "failed");
    let told = hub.get(&format!("/v1/jobs/{}", named.uuid), &client.key).await;
    assert_eq!(told.body["result"]["text"], "too much to do");
    assert_eq!(told.body["cause"], "policy");
}

#[tokio::test]
async fn fetching_work_is_a_sign_of_life() {
    let (hub, _, worker) = scene().await;
    let seen = || {
        hub.engine.with_world(|world| {
            world.agent_state(worker.id).map(|agent_state| agent_state.presence.last_seen)
        })
    };
    let before = seen();
    hub.clock.advance(Millis::minutes(2));
    hub.get("/v1/work", &worker.key).await;
    // Activity is recorded with the next command.
    hub.grant("rich", "1.00").await;
    assert!(seen() > before);
}
