//! A2A agents: clients that send messages, and agents with a server of their own.

use rialto_core::price_step::PriceStep;
use serde_json::json;

use super::a2a_server::{ServedTask, Server};
use super::registry::trace;
use crate::crossing::party::{
    Doing, End, Ended, Found, Given, Order, Posed, Protocol, Refused, Repeated, Requester, Saying,
    Sent, Terms, Ticket, WAITS, Worker,
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

    fn sayings(&self) -> &'static [Saying] {
        // An agent with a server counts as online until a call fails.
        &[Saying::Declines, Saying::Fails]
    }

    fn worker<'a>(
        &'a self,
        hub: &'a TestHub,
        seat: u8,
        terms: Terms,
    ) -> Doing<'a, Box<dyn Worker>> {
        Box::pin(
            async move { Box::new(Hired::register(hub, seat, terms).await) as Box<dyn Worker> },
        )
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
#[derive(Clone)]
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

/// The skill of all workers.
const SKILL: &str = "plan";

/// An agent with a server of its own.
pub struct Hired {
    client: Client,
    pub server: Server,
    price: &'static str,
}

impl Hired {
    /// A worker at a hub.
    pub async fn register(hub: &TestHub, seat: u8, terms: Terms) -> Self {
        let name = format!("w{seat}");
        let server = Server::start(&name, SKILL).await;
        let client = Client { name, key: String::new() };
        let mut hired = Self { client, server, price: terms.price };
        hired.client.key = hired.register_card(hub, None).await;
        hired
    }

    /// Registers the card, and shows in it that the price is its owner's; returns the key.
    async fn register_card(&self, hub: &TestHub, key: Option<&str>) -> String {
        let body = json!({"card_url": self.server.card_url(), "name": self.client.name,
            "prices": {SKILL: self.price}});
        let reply = hub.post(AGENTS, key, &body).await;
        assert!(reply.status < 300, "{}", reply.text);
        let key = reply.str("/api_key");
        if reply.at("/proven") == true {
            return key;
        }
        let proof = json!([reply.at("/proof")]);
        self.server.change_card(|card| card["capabilities"]["extensions"] = proof);
        assert_eq!(self.refresh(hub, &key).await.at("/proven"), true);
        key
    }

    async fn refresh(&self, hub: &TestHub, key: &str) -> Reply {
        let path = format!("{AGENTS}/{}/refresh", self.client.name);
        hub.call("POST", &path, Some(key), None).await.expect(200)
    }

    /// Its server is there again, and the hub is told so.
    pub async fn come_back(&self, hub: &TestHub) {
        self.server.be_away(false);
        self.refresh(hub, &self.client.key).await;
    }
}

/// A task as its worker sees it.
fn given(task: ServedTask) -> Given {
    let message = raw(&task.params, "/message").expect("a message");
    let hire = raw(&message, &format!("/metadata/{HIRE}")).expect("the hub's metadata");
    Given {
        id: text(&hire, "/job").expect("an id"),
        also: vec![task.id],
        input: input_of(&message),
        price: text(&hire, "/price"),
        bytes: task.params,
    }
}

/// The only part of a message as JSON.
fn input_of(message: &str) -> String {
    let part = raw(message, "/parts/0").expect("a part");
    let words = || json!({"text": text(&part, "/text").expect("a text")}).to_string();
    raw(&part, "/data").unwrap_or_else(words)
}

impl Worker for Hired {
    fn home(&self) -> &'static dyn Protocol {
        &A2a
    }

    fn native(&self) -> &str {
        &self.client.name
    }

    fn name(&self) -> &str {
        &self.client.name
    }

    fn owner(&self) -> String {
        self.client.owner()
    }

    fn skill(&self) -> &'static str {
        SKILL
    }

    fn output(&self) -> &'static str {
        r#"{"way":["à pied"],"km":12.50}"#
    }

    fn waiting<'a>(&'a self, _: &'a TestHub) -> Doing<'a, Vec<Given>> {
        Box::pin(async { self.server.open_tasks().into_iter().map(given).collect() })
    }

    fn deliver<'a>(&'a self, _: &'a TestHub, given: &'a Given) -> Doing<'a, Sent> {
        Box::pin(async move {
            let parts = format!(r#"[{{"data":{}}}]"#, self.output());
            let artifact = self.server.artifact(&given.also[0], &parts);
            sent(vec![artifact, self.server.state(&given.also[0], "TASK_STATE_COMPLETED", None)])
        })
    }

    fn say<'a>(
        &'a self,
        _: &'a TestHub,
        given: &'a Given,
        saying: Saying,
        text: &'a str,
    ) -> Doing<'a, Sent> {
        Box::pin(async move {
            let state = match saying {
                Saying::Declines => "TASK_STATE_REJECTED",
                Saying::Fails => "TASK_STATE_FAILED",
                other => panic!("a2a workers cannot send {other:?}"),
            };
            sent(vec![self.server.state(&given.also[0], state, Some(text))])
        })
    }

    fn leave(&self) {
        self.server.be_away(true);
    }

    fn register_again<'a>(&'a self, hub: &'a TestHub, name: &'a str) -> Doing<'a, ()> {
        Box::pin(async move {
            let key = &self.client.key;
            let path = format!("{AGENTS}/{}", self.client.name);
            hub.call("DELETE", &path, Some(key), None).await.expect(200);
            self.server.change_card(|card| card["name"] = name.into());
            assert_eq!(&self.register_card(hub, Some(key)).await, key);
        })
    }

    fn as_requester(&self) -> Box<dyn Requester + '_> {
        Box::new(self.client.clone())
    }

    fn trace<'a>(&'a self, hub: &'a TestHub, id: &'a str) -> Doing<'a, String> {
        Box::pin(trace(hub, &self.client.key, id))
    }
}

/// Events that a server sent; a stream has no answers. Their members are those of the task.
fn sent(events: Vec<String>) -> Sent {
    let last = events.last().and_then(|event| raw(event, "/statusUpdate")).expect("a status");
    let mut all = members(&last);
    for (name, _) in &mut all {
        if name == "/taskId" {
            "/id".clone_into(name);
        }
    }
    let artifacts = events.iter().filter_map(|event| raw(event, "/artifactUpdate/artifact"));
    let artifacts: Vec<String> = artifacts.collect();
    if !artifacts.is_empty() {
        all.extend(members(&format!(r#"{{"artifacts":[{}]}}"#, artifacts.join(","))));
    }
    Sent { bytes: events.join("\n"), members: all, taken: true, answer: String::new() }
}
