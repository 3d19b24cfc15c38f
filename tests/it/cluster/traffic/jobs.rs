//! Jobs: requesters post them, workers get them at any node, decline some and report the others.

use serde_json::json;

use super::cast::{BUDGET, Cast, cents_value};
use crate::cluster::client::{Client, Request};
use crate::cluster::history::{Operation, Seen};

/// Where a requester posts its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HirePath {
    /// `POST /v1/jobs`: the hub chooses the worker.
    Api,
    /// `POST /registry/jobs`: the requester names it.
    Registry,
}

/// States in which a job has ended.
pub const FINAL_STATES: [&str; 5] = ["completed", "failed", "expired", "cancelled", "withdrawn"];

/// Posts jobs one after the other, and reads each at other nodes until it has ended.
pub async fn hire(mut client: Client, cast: Cast, path: HirePath) {
    while !client.is_over() {
        let (key, requester) = (client.fresh_key(), &cast.requester);
        let input = json!({"echo": key});
        let (path, body) = match path {
            HirePath::Api => (
                "/v1/jobs",
                json!({"id": key, "skill": cast.skill, "input": input,
                    "budget": cents_value(BUDGET)}),
            ),
            HirePath::Registry => (
                "/registry/jobs",
                json!({"job_id": key, "agent_id": cast.workers[0].id,
                    "orchestrator_id": requester.id, "skill_name": cast.skill,
                    "input_data": input, "budget": cents_value(BUDGET)}),
            ),
        };
        let operation = Operation::PostJob { requester: requester.owner.clone() };
        let request = Request::new(operation, &*key, path).bearer(&requester.key).json(&body);
        let request = if client.dice.roll(2) == 0 { request.with_key() } else { request };
        let Some(reply) = client.run(&request).await else { return };
        if !reply.is_done() {
            let text = format!("a job was refused at {}: {}", reply.node, reply.text);
            client.round.history.violation(text);
            continue;
        }
        while !client.is_over() {
            let node = client.any_node();
            let path = format!("/v1/jobs/{key}");
            let Some((job, begin, end)) = client.read(node, &path, Some(&requester.key)).await
            else {
                client.pause(20).await;
                continue;
            };
            let word = |name: &str| job[name].as_str().unwrap_or_default().to_owned();
            let (state, epoch) = (word("state"), job["epoch"].as_u64().unwrap_or_default());
            let has_ended = FINAL_STATES.contains(&state.as_str());
            client.record(node, (begin, end), Seen::Job { job: word("id"), epoch, state });
            if has_ended {
                break;
            }
            client.pause(15).await;
        }
    }
}

/// Works: gets jobs at any node, declines some of them once, and reports the others.
pub async fn work(mut client: Client, cast: Cast, worker: usize) {
    let me = &cast.workers[worker];
    while !client.is_over() {
        let node = client.any_node();
        let Some((work, begin, end)) = client.read(node, "/v1/work?wait=1", Some(&me.key)).await
        else {
            client.pause(20).await;
            continue;
        };
        for job in work["jobs"].as_array().into_iter().flatten() {
            let id = job["id"].as_str().unwrap_or_default().to_owned();
            let epoch = job["epoch"].as_u64().unwrap_or_default();
            let seen = Seen::Assignment { job: id.clone(), epoch, worker: me.owner.clone() };
            client.record(node, (begin, end), seen);
            // The registry's requester has named its worker, and nobody else gets that job.
            let may_decline = epoch == 1 && job["protocol"] != "registry";
            if may_decline && client.dice.roll(6) == 0 {
                decline(&mut client, &me.key, id, epoch).await;
            } else {
                let echo = job["input"]["echo"].as_str().unwrap_or_default().to_owned();
                report(&mut client, me, id, epoch, &echo).await;
            }
        }
    }
}

async fn decline(client: &mut Client, key: &str, job: String, epoch: u64) {
    let path = format!("/v1/jobs/{job}/decline");
    let operation = Operation::Decline { job, epoch };
    let request = Request::new(operation, client.fresh_key(), path).bearer(key).with_key();
    let request = request.json(&json!({"epoch": epoch, "reason": "not this one"}));
    expect_done(client, &request).await;
}

async fn report(client: &mut Client, me: &crate::kit::Agent, job: String, epoch: u64, echo: &str) {
    let path = format!("/v1/jobs/{job}/result");
    let operation = Operation::Report { job, epoch, worker: me.owner.clone() };
    let request = Request::new(operation, client.fresh_key(), path).bearer(&me.key);
    let request = request.json(&json!({"epoch": epoch, "ok": true, "output": {"echo": echo}}));
    let request = if client.dice.roll(2) == 0 { request.with_key() } else { request };
    match client.dice.roll(4) {
        0 if request.sends_key => drop(client.run_everywhere(&request).await),
        _ => expect_done(client, &request).await,
    }
}

async fn expect_done(client: &mut Client, request: &Request) {
    if let Some(reply) = client.run(request).await.filter(|reply| !reply.is_done()) {
        let text = format!("{} was refused at {}: {}", request.path, reply.node, reply.text);
        client.round.history.violation(text);
    }
}
