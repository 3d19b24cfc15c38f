//! Registry agents: jobs with budgets, and workers that poll.

use rialto_core::money::Credits;
use rialto_core::price_step::PriceStep;
use serde_json::{Value, json};

use crate::crossing::party::{
    Doing, End, Ended, Found, Given, Order, Posed, Protocol, Refused, Repeated, Requester, Saying,
    Sent, Terms, Ticket, Worker,
};
use crate::crossing::raw::{items, members, raw, text};
use crate::kit::{Agent, Reply, TestHub, eventually};
use crate::openclaw::kit::fresh_id;

pub struct Registry;

impl Protocol for Registry {
    fn id(&self) -> &'static str {
        "registry"
    }

    fn price_step(&self) -> PriceStep {
        PriceStep { decimals: 2, minimum: Credits::ZERO }
    }

    fn price(&self) -> &'static str {
        "0.15"
    }

    fn words(&self, end: End, _: bool) -> &'static str {
        match end {
            End::Done => "SUCCESS",
            End::Refused => "FAILURE SKILL_MISMATCH",
            End::Declined | End::Failed | End::TimedOut => "FAILURE EXECUTION_ERROR",
            End::Cancelled => "FAILURE",
            End::Offline => "503 AGENT_OFFLINE",
            End::BudgetTooLow => "402 BUDGET_INSUFFICIENT",
            End::TooFewCredits => "402 TRANSFER_FAILED",
            End::Unfit => "400 INVALID_REQUEST",
        }
    }

    fn sayings(&self) -> &'static [Saying] {
        &[Saying::Refuses, Saying::Fails, Saying::Offline]
    }

    fn worker<'a>(
        &'a self,
        hub: &'a TestHub,
        seat: u8,
        terms: Terms,
    ) -> Doing<'a, Box<dyn Worker>> {
        Box::pin(async move {
            let (name, owner) = (format!("w{seat}"), format!("workers-{seat}"));
            let price: Value = serde_json::from_str(terms.price).expect("a number");
            let schema = if terms.strict { json!({"n": "number"}) } else { json!({}) };
            let skill = json!({"skill_name": "work", "cost_per_call": price,
                "input_schema": schema});
            let body = json!({"agent_name": name, "owner_id": owner, "skills": [skill]});
            let agent = hub.enrol(&body, None).await;
            Box::new(Polling { agent, name }) as Box<dyn Worker>
        })
    }

    fn requester<'a>(&'a self, hub: &'a TestHub, seat: u8) -> Doing<'a, Box<dyn Requester>> {
        Box::pin(async move {
            let agent = hub.orchestrator(&format!("buyers-{seat}")).await;
            Box::new(Orchestrator(agent)) as Box<dyn Requester>
        })
    }

    fn find<'a>(&'a self, hub: &'a TestHub, worker: &'a dyn Worker) -> Doing<'a, Found> {
        Box::pin(async move {
            let skill = worker.skill();
            let path = format!("/registry/discover?skill={skill}&limit=200");
            let page = hub.get(&path, None).await.expect(200);
            let is_it = |entry: &String| {
                let named = |at| text(entry, at).as_deref() == Some(worker.native());
                named("/native_id") || named("/agent_id")
            };
            let entry = items(&page.text, "/agents").into_iter().find(is_it);
            let entry =
                entry.unwrap_or_else(|| panic!("{} is not in {}", worker.native(), page.text));
            Found {
                alias: text(&entry, "/agent_id").expect("an id"),
                skill: skill.to_owned(),
                price: raw(&entry, "/skill/cost_per_call").expect("a price"),
                entry,
            }
        })
    }
}

/// A worker that polls.
struct Polling {
    agent: Agent,
    name: String,
}

impl Polling {
    async fn report(&self, hub: &TestHub, body: &str) -> Sent {
        let reply = hub.post_text("/registry/results", Some(&self.agent.key), body).await;
        let bytes = format!("POST /registry/results\n{body}");
        Sent { bytes, members: members(body), taken: reply.status == 200, answer: reply.text }
    }

    async fn done(&self, hub: &TestHub, given: &Given, cost: &str) -> Sent {
        let body = format!(
            r#"{{"job_id":"{}","agent_id":"{}","status":"SUCCESS","output_data":{},"execution_cost":{cost},"execution_time_ms":12}}"#,
            given.id,
            self.agent.id,
            self.output()
        );
        self.report(hub, &body).await
    }
}

impl Worker for Polling {
    fn home(&self) -> &'static dyn Protocol {
        &Registry
    }

    fn native(&self) -> &str {
        &self.agent.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn owner(&self) -> String {
        self.agent.owner.clone()
    }

    fn skill(&self) -> &'static str {
        "work"
    }

    fn output(&self) -> &'static str {
        r#"{"answer":"grün","n":2.50}"#
    }

    fn waiting<'a>(&'a self, hub: &'a TestHub) -> Doing<'a, Vec<Given>> {
        Box::pin(async move {
            let path = format!("/registry/agents/{}/jobs", self.agent.id);
            let page = hub.get(&path, Some(&self.agent.key)).await.expect(200);
            let given = |job: String| Given {
                id: text(&job, "/job_id").expect("an id"),
                also: Vec::new(),
                input: raw(&job, "/input_data").expect("an input"),
                price: raw(&job, "/budget"),
                bytes: job,
            };
            items(&page.text, "/jobs").into_iter().map(given).collect()
        })
    }

    fn deliver<'a>(&'a self, hub: &'a TestHub, given: &'a Given) -> Doing<'a, Sent> {
        Box::pin(async move {
            let cost = given.price.as_deref().expect("a budget");
            self.done(hub, given, cost).await
        })
    }

    fn deliver_for<'a>(
        &'a self,
        hub: &'a TestHub,
        given: &'a Given,
        cost: &'a str,
    ) -> Doing<'a, Option<Sent>> {
        Box::pin(async move { Some(self.done(hub, given, cost).await) })
    }

    fn register_again<'a>(&'a self, hub: &'a TestHub, name: &'a str) -> Doing<'a, ()> {
        Box::pin(async move {
            let (key, path) =
                (Some(&*self.agent.key), format!("/registry/agents/{}", self.agent.id));
            hub.call("DELETE", &path, key, None).await.expect(200);
            let skill = json!({"skill_name": "work", "cost_per_call": 1});
            let body = json!({"agent_id": self.agent.id, "agent_name": name,
                "owner_id": self.agent.owner, "skills": [skill]});
            let reply = hub.post("/registry/register", key, &body).await;
            assert!(reply.status < 300, "{}", reply.text);
        })
    }

    fn as_requester(&self) -> Box<dyn Requester + '_> {
        Box::new(Orchestrator(self.agent.clone()))
    }

    fn trace<'a>(&'a self, hub: &'a TestHub, id: &'a str) -> Doing<'a, String> {
        Box::pin(trace(hub, &self.agent.key, id))
    }

    fn colleague<'a>(&'a self, hub: &'a TestHub) -> Doing<'a, Option<Box<dyn Requester>>> {
        Box::pin(async move {
            let body = json!({"agent_name": "mate", "owner_id": self.agent.owner, "skills": []});
            let mate = hub.enrol(&body, Some(&self.agent.key)).await;
            Some(Box::new(Orchestrator(mate)) as Box<dyn Requester>)
        })
    }

    fn say<'a>(
        &'a self,
        hub: &'a TestHub,
        given: &'a Given,
        saying: Saying,
        text: &'a str,
    ) -> Doing<'a, Sent> {
        Box::pin(async move {
            let code = match saying {
                Saying::Refuses => "SKILL_MISMATCH",
                Saying::Fails => "EXECUTION_ERROR",
                other => panic!("registry workers cannot send {other:?}"),
            };
            let body = json!({"job_id": given.id, "agent_id": self.agent.id, "status": "FAILURE",
                "execution_cost": 0, "execution_time_ms": 3, "error_code": code,
                "error_message": text});
            self.report(hub, &body.to_string()).await
        })
    }
}

/// The trace of a job, for the holder of this key.
pub async fn trace(hub: &TestHub, key: &str, id: &str) -> String {
    hub.get(&format!("/v1/jobs/{id}/trace"), Some(key)).await.expect(200).text
}

/// A refusal.
fn refused(reply: &Reply) -> Refused {
    let code = text(&reply.text, "/error_code").unwrap_or_default();
    Refused { words: format!("{} {code}", reply.status), bytes: reply.text.clone() }
}

/// A requester with a budget.
struct Orchestrator(Agent);

impl Orchestrator {
    async fn post(&self, hub: &TestHub, path: &str, body: &str) -> Reply {
        hub.post_text(path, Some(&self.0.key), body).await
    }

    fn end(&self, reply: Reply) -> Ended {
        Ended {
            words: words(&reply),
            detail: text(&reply.text, "/error_message").unwrap_or_default(),
            id: text(&reply.text, "/job_id").unwrap_or_default(),
            output: raw(&reply.text, "/output_data"),
            bytes: reply.text,
        }
    }
}

/// The status of a job, and its error code.
fn words(reply: &Reply) -> String {
    let status = text(&reply.text, "/status").unwrap_or_default();
    let code = text(&reply.text, "/error_code").unwrap_or_default();
    format!("{status} {code}").trim().to_owned()
}

impl Requester for Orchestrator {
    fn native(&self) -> &str {
        &self.0.id
    }

    fn owner(&self) -> String {
        self.0.owner.clone()
    }

    fn hire<'a>(
        &'a self,
        hub: &'a TestHub,
        of: &'a Found,
        order: &'a Order,
    ) -> Doing<'a, Result<Ticket, Refused>> {
        Box::pin(async move {
            let (id, Order { input, budget, .. }) = (fresh_id(), order);
            let path = format!("/registry/agents/{}/jobs", of.alias);
            let body = format!(
                r#"{{"job_id":"{id}","orchestrator_id":"{}","skill_name":"{}","input_data":{input},"budget":{budget},"currency":"chorus_credits_v1","callback_url":null{}}}"#,
                self.0.id,
                of.skill,
                order.more()
            );
            let reply = self.post(hub, &path, &body).await;
            let bytes = format!("POST {path}\n{body}\n→ {}\n{}", reply.status, reply.text);
            if ![200, 202].contains(&reply.status) {
                return Err(Refused { bytes, ..refused(&reply) });
            }
            let uuid = reply.header("rialto-job").expect("the hub's own id").to_owned();
            let members = members(&body);
            Ok(Ticket { id, uuid, path, body: body.into_bytes(), members, bytes })
        })
    }

    fn repeat<'a>(&'a self, hub: &'a TestHub, ticket: &'a Ticket) -> Doing<'a, Repeated> {
        Box::pin(async move {
            let body = String::from_utf8(ticket.body.clone()).expect("text");
            let reply = self.post(hub, &ticket.path, &body).await;
            assert!(reply.status < 300, "{} {}", reply.status, reply.text);
            let uuid = reply.header("rialto-job").map(str::to_owned);
            Repeated { id: reply.str("/job_id"), uuid }
        })
    }

    fn ended<'a>(&'a self, hub: &'a TestHub, ticket: &'a Ticket) -> Doing<'a, Ended> {
        Box::pin(async move {
            let path = format!("/registry/jobs/{}", ticket.id);
            let mut last = None;
            eventually(async || {
                let reply = hub.get(&path, Some(&self.0.key)).await;
                let over = words(&reply) != "PENDING";
                last = Some(reply);
                over
            })
            .await;
            self.end(last.expect("an answer"))
        })
    }

    fn call_off<'a>(
        &'a self,
        hub: &'a TestHub,
        of: &'a Found,
        order: &'a Order,
    ) -> Doing<'a, Option<Ended>> {
        Box::pin(async move {
            let ticket = self.hire(hub, of, order).await.expect("a job");
            let path = format!("/registry/jobs/{}/cancel", ticket.id);
            // A job that its worker has received cannot be cancelled.
            match self.post(hub, &path, "").await {
                reply if reply.status == 409 => None,
                reply => Some(self.end(reply.expect(200))),
            }
        })
    }

    fn trace<'a>(&'a self, hub: &'a TestHub, id: &'a str) -> Doing<'a, String> {
        Box::pin(trace(hub, &self.0.key, id))
    }

    fn pose<'a>(&'a self, hub: &'a TestHub, whom: &'a Found) -> Doing<'a, Posed> {
        Box::pin(async move {
            let job = json!({"orchestrator_id": whom.alias, "skill_name": whom.skill,
                "input_data": {}, "budget": 9});
            let path = format!("/registry/agents/{}/jobs", whom.alias);
            let spoke = self.post(hub, &path, &job.to_string()).await;
            let thief = json!({"agent_id": whom.alias, "agent_name": "thief",
                "owner_id": self.0.owner, "skills": []});
            let took = hub.post("/registry/register", None, &thief).await;
            Posed { spoke: refused(&spoke), took: Some(refused(&took)) }
        })
    }
}
