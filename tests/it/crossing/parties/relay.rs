//! Relay agents: messages in conversations, and open inboxes.

use std::sync::Mutex;

use rialto_core::price_step::PriceStep;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::registry::trace;
use crate::crossing::party::{
    Doing, End, Ended, Found, Given, Order, Posed, Protocol, Refused, Repeated, Requester, Saying,
    Sent, Terms, Ticket, WAITS, Worker,
};
use crate::crossing::raw::{items, members, raw, text};
use crate::kit::{Reply, TestHub, Worker as Endpoint, eventually};
use crate::openclaw::kit::fresh_id;
use crate::relay::kit::{Peer, envelope, registration};

const MESSAGES: &str = "/relay/messages";

pub struct Relay;

impl Protocol for Relay {
    fn id(&self) -> &'static str {
        "relay"
    }

    fn price_step(&self) -> PriceStep {
        PriceStep::FINEST
    }

    fn price(&self) -> &'static str {
        "0"
    }

    fn words(&self, end: End, _: bool) -> &'static str {
        match end {
            End::Done => "reply",
            End::Offline => WAITS,
            _ => "error ADAPTATION_FAILED",
        }
    }

    fn hires_its_own(&self) -> bool {
        // Relay agents send each other messages, and no jobs.
        false
    }

    fn sayings(&self) -> &'static [Saying] {
        &[Saying::Declines, Saying::Fails, Saying::Offline]
    }

    fn worker<'a>(&'a self, hub: &'a TestHub, seat: u8, _: Terms) -> Doing<'a, Box<dyn Worker>> {
        Box::pin(async move {
            let peer = hub.join(&format!("w{seat}@chorus")).await;
            let inbox = hub.inbox(&peer).await;
            // An open inbox makes the agent online; messages are read from the history.
            let open = tokio::spawn(async move { drop(inbox.rest().await) });
            let member = Member::new(peer, None);
            *member.open.lock().expect("no panic") = Some(open);
            Box::new(member) as Box<dyn Worker>
        })
    }

    fn requester<'a>(&'a self, hub: &'a TestHub, seat: u8) -> Doing<'a, Box<dyn Requester>> {
        Box::pin(async move {
            let peer = hub.join(&format!("r{seat}@chorus")).await;
            Box::new(Member::new(peer, None)) as Box<dyn Requester>
        })
    }

    fn find<'a>(&'a self, hub: &'a TestHub, worker: &'a dyn Worker) -> Doing<'a, Found> {
        Box::pin(async move {
            let page = hub.get("/relay/agents?limit=200", None).await.expect(200).text;
            let native = Some(worker.native());
            let is_it = |entry: &String| {
                text(entry, "/native_id").as_deref() == native
                    || text(entry, "/agent_id").as_deref() == native
            };
            let entry = items(&page, "/data").into_iter().find(is_it);
            let entry = entry.unwrap_or_else(|| panic!("{} is not in {page}", worker.native()));
            Found {
                alias: text(&entry, "/agent_id").expect("an address"),
                skill: worker.skill().to_owned(),
                // The relay has no prices; the envelope names the budget.
                price: "0".to_owned(),
                entry,
            }
        })
    }
}

/// An agent with a relay address.
pub(super) struct Member {
    peer: Peer,
    name: String,
    /// Its open inbox.
    open: Mutex<Option<JoinHandle<()>>>,
    /// Its endpoint.
    called: Option<Endpoint>,
    /// Conversations it has answered.
    answered: Mutex<Vec<String>>,
}

impl Drop for Member {
    fn drop(&mut self) {
        Worker::leave(self);
    }
}

impl Member {
    /// An agent with an endpoint, or one that reads its inbox.
    pub(super) fn new(peer: Peer, called: Option<Endpoint>) -> Self {
        let name = peer.id.split('@').next().unwrap_or_default().to_owned();
        Self { peer, name, open: Mutex::default(), called, answered: Mutex::default() }
    }

    /// Everything it sent and received, oldest first.
    async fn history(&self, hub: &TestHub) -> Vec<String> {
        let path = "/relay/agent/messages?limit=500";
        let page = hub.get(path, Some(&self.peer.key)).await.expect(200);
        items(&page.text, "/data")
    }

    /// The next message of a conversation.
    async fn answer(&self, hub: &TestHub, given: &Given, words: &str) -> Sent {
        let mut reply = envelope(&self.peer.id, words);
        reply["conversation_id"] = given.id.as_str().into();
        reply["turn_number"] = 2.into();
        let body = json!({"receiver_id": given.also[0], "envelope": reply}).to_string();
        let reply = self.post(hub, &body).await;
        self.answered.lock().expect("no panic").push(given.id.clone());
        let bytes = format!("POST {MESSAGES}\n{body}");
        let members = members(&raw(&body, "/envelope").expect("an envelope"));
        Sent { bytes, members, taken: reply.status < 300, answer: reply.text }
    }

    async fn post(&self, hub: &TestHub, body: &str) -> Reply {
        hub.post_text(MESSAGES, Some(&self.peer.key), body).await
    }

    /// Every job it was sent and every message about it, oldest first.
    async fn came(&self, hub: &TestHub) -> Vec<String> {
        match &self.called {
            Some(endpoint) => endpoint.got().into_iter().map(|got| got.body).collect(),
            None => self.history(hub).await,
        }
    }

    fn received(&self, message: &str) -> bool {
        text(message, "/receiver_id").as_deref() == Some(&self.peer.id)
    }
}

impl Worker for Member {
    fn home(&self) -> &'static dyn Protocol {
        &Relay
    }

    fn native(&self) -> &str {
        &self.peer.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn owner(&self) -> String {
        format!("relay:{}", self.peer.id)
    }

    fn skill(&self) -> &'static str {
        "message"
    }

    fn output(&self) -> &'static str {
        r#"{"text":"„erledigt“"}"#
    }

    fn waiting<'a>(&'a self, hub: &'a TestHub) -> Doing<'a, Vec<Given>> {
        Box::pin(async move {
            let history = self.came(hub).await;
            // Its own last message is not in the history, so the worker remembers it; an unassigned
            // job shows as another message.
            let answered = self.answered.lock().expect("no panic").clone();
            let talk = |message: &str| text(message, "/envelope/conversation_id");
            let over = |id: &String| {
                let said = history.iter().filter(|one| talk(one).as_ref() == Some(id)).count();
                said > 1 || answered.contains(id)
            };
            let work = |message: &String| {
                let mine = self.called.is_some() || self.received(message);
                let id = talk(message).filter(|id| mine && !over(id))?;
                let words = text(message, "/envelope/original_text")?;
                let structured = raw(&words, "").filter(|json| json.starts_with('{'));
                Some(Given {
                    also: vec![text(message, "/envelope/sender_id")?],
                    input: structured.unwrap_or_else(|| json!({"text": words}).to_string()),
                    price: raw(message, "/job/price"),
                    bytes: given(message)?,
                    id,
                })
            };
            history.iter().filter_map(work).collect()
        })
    }

    fn deliver<'a>(&'a self, hub: &'a TestHub, given: &'a Given) -> Doing<'a, Sent> {
        Box::pin(async move {
            let words = text(self.output(), "/text").expect("a text");
            self.answer(hub, given, &words).await
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
            // A message that cannot be read was never started (B16).
            let code = match saying {
                Saying::Declines => "INVALID_ENVELOPE",
                Saying::Fails => "ADAPTATION_FAILED",
                other => panic!("relay workers cannot send {other:?}"),
            };
            let words = json!({"status": "error", "error_code": code, "detail": text});
            self.answer(hub, given, &words.to_string()).await
        })
    }

    fn leave(&self) {
        if let Some(open) = self.open.lock().ok().and_then(|mut open| open.take()) {
            open.abort();
        }
    }

    fn register_again<'a>(&'a self, hub: &'a TestHub, _: &'a str) -> Doing<'a, ()> {
        Box::pin(async move {
            let key = Some(&*self.peer.key);
            let path = format!("/relay/agents/{}", self.peer.id);
            let gone = hub.call("DELETE", &path, key, None).await;
            assert!(gone.status < 300, "{}", gone.text);
            let reply = hub.post("/relay/register", key, &registration(&self.peer.id)).await;
            assert!(reply.status < 300, "{}", reply.text);
        })
    }

    fn moves_to<'a>(&'a self, hub: &'a TestHub, url: &'a str) -> Doing<'a, ()> {
        Box::pin(async move {
            let mut body = registration(&self.peer.id);
            body["endpoint"] = url.into();
            hub.post("/relay/register", Some(&self.peer.key), &body).await.expect(200);
        })
    }

    fn as_requester(&self) -> Box<dyn Requester + '_> {
        Box::new(Member::new(self.peer.clone(), None))
    }

    fn trace<'a>(&'a self, hub: &'a TestHub, id: &'a str) -> Doing<'a, String> {
        Box::pin(trace(hub, &self.peer.key, id))
    }
}

/// The envelope of a message and the hub's members beside it, as an endpoint receives them.
fn given(message: &str) -> Option<String> {
    let envelope = raw(message, "/envelope")?;
    let beside = ["job", "bridge", "meta"]
        .into_iter()
        .filter_map(|name| Some(format!(",\"{name}\":{}", raw(message, &format!("/{name}"))?)));
    Some(format!("{{\"envelope\":{envelope}{}}}", beside.collect::<String>()))
}

/// A refusal: by the recipient, or by the hub.
fn refused(reply: &Reply) -> Refused {
    let code = text(&reply.text, "/data/receiver_response/error_code");
    let words = match (code, text(&reply.text, "/error/code")) {
        (Some(code), _) => format!("error {code}"),
        (None, code) => format!("{} {}", reply.status, code.unwrap_or_default()),
    };
    Refused { words, bytes: reply.text.clone() }
}

impl Requester for Member {
    fn native(&self) -> &str {
        &self.peer.id
    }

    fn owner(&self) -> String {
        format!("relay:{}", self.peer.id)
    }

    fn hire<'a>(
        &'a self,
        hub: &'a TestHub,
        of: &'a Found,
        order: &'a Order,
    ) -> Doing<'a, Result<Ticket, Refused>> {
        Box::pin(async move {
            let (id, Order { input, budget, .. }) = (fresh_id(), order);
            let body = format!(
                r#"{{"receiver_id":"{}","envelope":{{"chorus_version":"0.4","sender_id":"{}","original_text":"please","sender_culture":"en","conversation_id":"{id}","turn_number":1,"skill":"{}","input":{input},"budget":{budget}{}}}}}"#,
                of.alias,
                self.peer.id,
                of.skill,
                order.more()
            );
            let reply = self.post(hub, &body).await;
            let bytes = format!("POST {MESSAGES}\n{body}\n→ {}\n{}", reply.status, reply.text);
            let Some(uuid) = reply.header("rialto-job").map(str::to_owned) else {
                return Err(Refused { bytes, ..refused(&reply) });
            };
            // The request is the envelope; the recipient is outside of it.
            let members = members(&raw(&body, "/envelope").expect("an envelope"));
            let path = MESSAGES.to_owned();
            Ok(Ticket { id, uuid, path, body: body.into_bytes(), members, bytes })
        })
    }

    fn repeat<'a>(&'a self, hub: &'a TestHub, ticket: &'a Ticket) -> Doing<'a, Repeated> {
        Box::pin(async move {
            let body = String::from_utf8(ticket.body.clone()).expect("text");
            let reply = self.post(hub, &body).await;
            assert!(reply.status < 300, "{} {}", reply.status, reply.text);
            let uuid = reply.header("rialto-job").map(str::to_owned);
            Repeated { id: ticket.id.clone(), uuid }
        })
    }

    fn ended<'a>(&'a self, hub: &'a TestHub, ticket: &'a Ticket) -> Doing<'a, Ended> {
        Box::pin(async move {
            let is_it = |message: &String| {
                let talk = text(message, "/envelope/conversation_id");
                self.received(message) && talk.as_deref() == Some(&ticket.id)
            };
            let mut found = None;
            eventually(async || {
                found = self.history(hub).await.into_iter().find(is_it);
                found.is_some()
            })
            .await;
            let message = found.expect("a reply");
            let said = text(&message, "/envelope/original_text").expect("a text");
            let code = text(&said, "/error_code");
            let failed = text(&said, "/status").as_deref() == Some("error");
            let words = match failed {
                true => format!("error {}", code.unwrap_or_default()),
                false => "reply".to_owned(),
            };
            let structured = raw(&said, "").filter(|json| json.starts_with('{'));
            let plain = || Value::from(said.as_str());
            let output = structured.unwrap_or_else(|| json!({"text": plain()}).to_string());
            Ended {
                words,
                detail: text(&said, "/detail").unwrap_or_default(),
                id: text(&message, "/envelope/conversation_id").unwrap_or_default(),
                output: (!failed).then_some(output),
                bytes: given(&message).expect("an envelope"),
            }
        })
    }

    fn call_off<'a>(
        &'a self,
        _: &'a TestHub,
        _: &'a Found,
        _: &'a Order,
    ) -> Doing<'a, Option<Ended>> {
        Box::pin(async { None })
    }

    fn trace<'a>(&'a self, hub: &'a TestHub, id: &'a str) -> Doing<'a, String> {
        Box::pin(trace(hub, &self.peer.key, id))
    }

    fn pose<'a>(&'a self, hub: &'a TestHub, whom: &'a Found) -> Doing<'a, Posed> {
        Box::pin(async move {
            let body =
                json!({"receiver_id": self.peer.id, "envelope": envelope(&whom.alias, "hi")});
            let spoke = self.post(hub, &body.to_string()).await;
            let took = hub.post("/relay/register", None, &registration(&whom.alias)).await;
            Posed { spoke: refused(&spoke), took: Some(refused(&took)) }
        })
    }
}
