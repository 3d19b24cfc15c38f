//! A2A agents: clients that send messages.

use rialto_core::price_step::PriceStep;
use serde_json::json;

use super::registry::trace;
use crate::crossing::party::{
    Doing, End, Ended, Found, Order, Posed, Protocol, Refused, Repeated, Requester, Saying, Terms,
    Ticket, WAITS, Worker,
};
use crate::crossing::raw::{items, members, raw, text};
use crate::kit::{Reply, TestHub, eventually};
use crate::openclaw::kit::fresh_id;

const AGENTS: &str = "/a2a/agents";
/// The member of the metadata that is about hiring.
const HIRE: &str = "urn:rialto:a2a:hire:v1";

pub struct A2a;

impl Protocol for A2a {
    fn id(&self) -> &'static str {
        "a2a"
    }

    fn price_step(&self) -> PriceStep {
        PriceStep::FINEST
    }

    fn price(&self) -> &'static str {
        "0.987654"
    }

    fn words(&self, end: End, _: bool) -> &'static str {
        match end {
            End::Done => "TASK_STATE_COMPLETED",
            End::Refused | End::Declined => "TASK_STATE_REJECTED",
            End::Failed | End::TimedOut => "TASK_STATE_FAILED",
            End::Cancelled => "TASK_STATE_CANCELED",
            End::Offline => WAITS,
            End::BudgetTooLow => "refused BUDGET_TOO_LOW",
            End::TooFewCredits => "refused TOO_FEW_CREDITS",
            End::Unfit => "refused INPUT_MISFIT",
        }
    }

    fn works(&self) -> bool {
        false
    }

    fn sayings(&self) -> &'static [Saying] {
        &[]
    }

    fn worker<'a>(&'a self, _: &'a TestHub, _: u8, _: Terms) -> Doing<'a, Box<dyn Worker>> {
        panic!("an agent of a2a cannot work yet")
    }

    fn requester<'a>(&'a self, hub: &'a TestHub, seat: u8) -> Doing<'a, Box<dyn Requester>> {
        Box::pin(async move {
            let name = format!("r{seat}");
            let reply = hub.post(AGENTS, None, &json!({"name": name})).await.expect(201);
            Box::new(Client { name, key: reply.str("/api_key") }) as Box<dyn Requester>
        })
    }

    fn find<'a>(&'a self, hub: &'a TestHub, worker: &'a dyn Worker) -> Doing<'a, Found> {
        Box::pin(async move {
            let (home, skill) = (worker.home().id(), worker.skill());
            let path = format!("{AGENTS}?skill={skill}&protocol={home}&limit=200");
            let page = hub.get(&path, None).await.expect(200).text;
            for entry in items(&page, "/agents") {
                let alias = text(&entry, "/name").expect("a name");
                // Only the card has the native id.
                let card = hub.get(&format!("{AGENTS}/{alias}"), None).await.expect(200).text;
                let trust = trust(&card);
                if text(&trust, "/nativeId").as_deref() == Some(worker.native()) {
                    let price = text(&entry, "/price").expect("a price");
                    return Found { alias, skill: skill.to_owned(), price, entry: trust };
                }
            }
            panic!("{} is not in {page}", worker.native())
        })
    }
}

/// What a card says about where its agent is from.
fn trust(card: &str) -> String {
    let all = items(card, "/capabilities/extensions");
    let is_it = |one: &&String| text(one, "/uri").as_deref() == Some("urn:rialto:a2a:trust:v1");
    let found = all.iter().find(is_it).and_then(|one| raw(one, "/params"));
    found.unwrap_or_else(|| panic!("nothing about trust in {card}"))
}

/// A client with a key.
struct Client {
    name: String,
    key: String,
}

impl Client {
    /// A JSON-RPC call; its request and its answer.
    async fn call(
        &self,
        hub: &TestHub,
        agent: &str,
        method: &str,
        params: &str,
    ) -> (String, Reply) {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let reply = self.post(hub, agent, &body, None).await;
        (body, reply)
    }

    async fn post(&self, hub: &TestHub, agent: &str, body: &str, repeat: Option<&str>) -> Reply {
        let bearer = format!("Bearer {}", self.key);
        let headers = [("authorization", bearer.as_str()), ("a2a-version", "1.0")];
        let repeat = repeat.map(|key| ("idempotency-key", key));
        let headers: Vec<_> = headers.into_iter().chain(repeat).collect();
        hub.send("POST", &format!("{AGENTS}/{agent}"), &headers, body.as_bytes()).await
    }

    /// Its task as the hub shows it.
    async fn task(&self, hub: &TestHub, agent: &str, id: &str) -> String {
        let (_, reply) = self.call(hub, agent, "GetTask", &json!({"id": id}).to_string()).await;
        raw(&reply.text, "/result").unwrap_or_else(|| panic!("no task: {}", reply.text))
    }
}

/// A refusal: by the agent, as a message, or an error of the hub.
fn refused(reply: &Reply) -> Refused {
    let said = text(&reply.text, &format!("/result/message/metadata/{HIRE}/refused"));
    let code = text(&reply.text, "/error/details/0/reason");
    let words = match (said, code) {
        (Some(code), _) => format!("refused {code}"),
        (None, code) => format!("{} {}", reply.status, code.unwrap_or_default()),
    };
    Refused { words, bytes: reply.text.clone() }
}

/// The end of a task.
fn end(task: String) -> Ended {
    let part = raw(&task, "/artifacts/0/parts/0");
    let output = part.and_then(|part| {
        let words = text(&part, "/text").map(|words| json!({"text": words}).to_string());
        raw(&part, "/data").or(words)
    });
    Ended {
        words: text(&task, "/status/state").expect("a state"),
        detail: text(&task, "/status/message/parts/0/text").unwrap_or_default(),
        id: text(&task, "/id").expect("an id"),
        output,
        bytes: task,
    }
}

/// The agent that a ticket's path names.
fn agent_of(ticket: &Ticket) -> &str {
    ticket.path.rsplit('/').next().unwrap_or_default()
}

impl Requester for Client {
    fn native(&self) -> &str {
        &self.name
    }

    fn owner(&self) -> String {
        format!("a2a:{}", self.name)
    }

    fn hire<'a>(
        &'a self,
        hub: &'a TestHub,
        of: &'a Found,
        order: &'a Order,
    ) -> Doing<'a, Result<Ticket, Refused>> {
        Box::pin(async move {
            let (message, Order { input, budget, .. }) = (fresh_id(), order);
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"message":{{"messageId":"{message}","role":"ROLE_USER","parts":[{{"data":{input}}}],"metadata":{{"{HIRE}":{{"skill":"{}","budget":"{budget}"}}{}}}}},"configuration":{{"returnImmediately":true}}}}}}"#,
                of.skill,
                order.more()
            );
            let path = format!("{AGENTS}/{}", of.alias);
            let reply = self.post(hub, &of.alias, &body, Some(&message)).await;
            let bytes = format!("POST {path}\n{body}\n→ {}\n{}", reply.status, reply.text);
            let Some(uuid) = reply.header("rialto-job").map(str::to_owned) else {
                return Err(Refused { bytes, ..refused(&reply) });
            };
            let id = reply.str("/result/task/id");
            let members = members(&raw(&body, "/params").expect("parameters"));
            Ok(Ticket { id, uuid, path, body: body.into_bytes(), members, bytes })
        })
    }

    fn repeat<'a>(&'a self, hub: &'a TestHub, ticket: &'a Ticket) -> Doing<'a, Repeated> {
        Box::pin(async move {
            let body = String::from_utf8(ticket.body.clone()).expect("text");
            let key = text(&body, "/params/message/messageId");
            let reply = self.post(hub, agent_of(ticket), &body, key.as_deref()).await.expect(200);
            assert_eq!(reply.header("idempotency-replayed"), Some("true"), "{}", reply.text);
            let uuid = reply.header("rialto-job").map(str::to_owned);
            Repeated { id: reply.str("/result/task/id"), uuid }
        })
    }

    fn ended<'a>(&'a self, hub: &'a TestHub, ticket: &'a Ticket) -> Doing<'a, Ended> {
        Box::pin(async move {
            let live = ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"];
            let mut task = String::new();
            eventually(async || {
                task = self.task(hub, agent_of(ticket), &ticket.id).await;
                text(&task, "/status/state").is_some_and(|state| !live.contains(&state.as_str()))
            })
            .await;
            end(task)
        })
    }

    fn call_off<'a>(
        &'a self,
        hub: &'a TestHub,
        of: &'a Found,
        order: &'a Order,
    ) -> Doing<'a, Option<Ended>> {
        Box::pin(async move {
            let ticket = self.hire(hub, of, order).await.expect("a task");
            let params = json!({"id": ticket.id}).to_string();
            let (_, reply) = self.call(hub, &of.alias, "CancelTask", &params).await;
            let task = raw(&reply.text, "/result");
            Some(end(task.unwrap_or_else(|| panic!("no task: {}", reply.text))))
        })
    }

    fn trace<'a>(&'a self, hub: &'a TestHub, id: &'a str) -> Doing<'a, String> {
        Box::pin(trace(hub, &self.key, id))
    }

    /// No message names its sender, so the only thing done in the name of an agent is to remove it.
    fn pose<'a>(&'a self, hub: &'a TestHub, whom: &'a Found) -> Doing<'a, Posed> {
        Box::pin(async move {
            let path = format!("{AGENTS}/{}", whom.alias);
            let spoke = hub.call("DELETE", &path, Some(&self.key), None).await;
            let took = hub.post(AGENTS, None, &json!({"name": whom.alias})).await;
            Posed { spoke: refused(&spoke), took: Some(refused(&took)) }
        })
    }
}
