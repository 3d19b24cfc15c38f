//! agora agents: keys that sign envelopes, and inboxes.

use rialto_core::price_step::PriceStep;
use rialto_engine::clock::Clock;
use rialto_protocols::agora::MessageType;
use rialto_protocols::kit::ed25519::PublicKey;
use serde_json::{Value, json};

use super::registry::trace;
use crate::agora::kit::{Key, Said, fresh_id};
use crate::crossing::party::{
    Doing, End, Ended, Found, Given, Order, Posed, Protocol, Refused, Repeated, Requester, Saying,
    Sent, Terms, Ticket, Worker,
};
use crate::crossing::raw::{items, members, raw, text};
use crate::kit::{Reply, TestHub, eventually};

const ENVELOPES: &str = "/agora/envelopes";

pub struct Agora;

impl Protocol for Agora {
    fn id(&self) -> &'static str {
        "agora"
    }

    fn price_step(&self) -> PriceStep {
        PriceStep::FINEST
    }

    fn price(&self) -> &'static str {
        "0.000001"
    }

    fn words(&self, end: End, _: bool) -> &'static str {
        match end {
            End::Done => "RESULT success",
            End::Refused => "ERROR 404",
            End::Declined => "ERROR 401",
            End::Failed => "ERROR 500",
            End::TimedOut => "ERROR 408",
            End::Cancelled => "FAILED",
            End::Offline => "ERROR 503",
            End::BudgetTooLow | End::TooFewCredits => "ERROR 402",
            End::Unfit => "ERROR 400",
        }
    }

    fn sayings(&self) -> &'static [Saying] {
        &[Saying::Refuses, Saying::Declines, Saying::Fails, Saying::Offline]
    }

    fn worker<'a>(
        &'a self,
        hub: &'a TestHub,
        seat: u8,
        terms: Terms,
    ) -> Doing<'a, Box<dyn Worker>> {
        Box::pin(async move {
            let price: Value = serde_json::from_str(terms.price).expect("a number");
            let capability = json!({"resource": resource("work"), "price": price});
            let name = format!("w{seat}");
            let profile = json!({"name": name, "capabilities": [capability]});
            let agent = Signer::new(seat, name, profile);
            agent.token(hub).await;
            Box::new(agent) as Box<dyn Worker>
        })
    }

    fn requester<'a>(&'a self, hub: &'a TestHub, seat: u8) -> Doing<'a, Box<dyn Requester>> {
        Box::pin(async move {
            let name = format!("r{seat}");
            let agent = Signer::new(seat, name.clone(), json!({"name": name}));
            agent.token(hub).await;
            Box::new(agent) as Box<dyn Requester>
        })
    }

    fn find<'a>(&'a self, hub: &'a TestHub, worker: &'a dyn Worker) -> Doing<'a, Found> {
        Box::pin(async move {
            let skill = resource(worker.skill());
            let path = format!("/agora/agents?resource={skill}&limit=200");
            let page = hub.get(&path, None).await.expect(200).text;
            let native = Some(worker.native());
            let is_it = |entry: &String| {
                text(entry, "/native_id").as_deref() == native
                    || text(entry, "/id").as_deref() == native
            };
            let entry = items(&page, "/agents").into_iter().find(is_it);
            let entry = entry.unwrap_or_else(|| panic!("{} is not in {page}", worker.native()));
            let listed = items(&entry, "/capabilities");
            let listed = listed.iter().find(|one| text(one, "/resource").as_ref() == Some(&skill));
            Found {
                alias: text(&entry, "/id").expect("a key"),
                price: listed.and_then(|one| raw(one, "/price")).unwrap_or_else(|| "0".to_owned()),
                skill,
                entry,
            }
        })
    }
}

/// A common skill name in this protocol's form (section 5).
fn resource(skill: &str) -> String {
    format!("agora:{skill}:v1")
}

/// A key and its profile.
#[derive(Clone)]
struct Signer {
    key: Key,
    name: String,
    profile: Value,
}

impl Signer {
    fn new(seat: u8, name: String, profile: Value) -> Self {
        Self { key: Key::of(seat), name, profile }
    }

    /// An envelope with the hub's current time.
    fn sign(&self, hub: &TestHub, kind: MessageType, payload: &str, to: Option<PublicKey>) -> Said {
        let draft = rialto_protocols::agora::UnsignedEnvelope {
            id: &fresh_id(kind.as_str()),
            timestamp: hub.clock.now(),
            kind,
            payload,
            recipient: to,
            hub: None,
            bridge: None,
        };
        let signed = self.key.composer.sign(&draft).expect("a payload");
        Said { id: draft.id.to_owned(), text: signed.text }
    }

    /// Sends HELLO and gets a token; an old one may have expired.
    async fn token(&self, hub: &TestHub) -> String {
        let hub_key = hub.get("/agora", None).await.expect(200).str("/hub");
        let mut profile = self.profile.clone();
        profile["inbox"] = true.into();
        let hub_key = PublicKey::parse(&hub_key).expect("a key");
        let hello = self.sign(hub, MessageType::Hello, &profile.to_string(), Some(hub_key));
        hub.post_text(ENVELOPES, None, &hello.text).await.expect(200).str("/payload/inbox_token")
    }

    /// Every received envelope, oldest first.
    async fn letters(&self, hub: &TestHub, token: &str) -> Vec<String> {
        let page = hub.get("/agora/messages?after=0&limit=200", Some(token)).await.expect(200);
        let letters = items(&page.text, "/messages").into_iter();
        letters.filter_map(|letter| raw(&letter, "/envelope")).collect()
    }

    async fn state(&self, hub: &TestHub, token: &str, id: &str) -> String {
        let reply = hub.get(&format!("/agora/requests/{id}"), Some(token)).await;
        text(&reply.text, "/state").unwrap_or_default()
    }

    async fn tell(&self, hub: &TestHub, said: &Said) -> Reply {
        hub.post_text(ENVELOPES, None, &said.text).await
    }

    async fn answer(&self, hub: &TestHub, kind: MessageType, payload: &str) -> Sent {
        let said = self.sign(hub, kind, payload, None);
        let reply = self.tell(hub, &said).await;
        let bytes = format!("POST {ENVELOPES}\n{}", said.text);
        let members = members(&said.text);
        Sent { bytes, members, taken: reply.status == 202, answer: reply.text }
    }

    /// Sends a request; returns the envelope and the answer.
    async fn ask(&self, hub: &TestHub, of: &Found, order: &Order) -> (Said, String, Reply) {
        let Order { input, budget, .. } = order;
        let payload = format!(
            r#"{{"resource":"{}","params":{input},"budget":{{"max":{budget}}}{}}}"#,
            of.skill,
            order.more()
        );
        let request =
            self.sign(hub, MessageType::Request, &payload, PublicKey::parse(&of.alias).ok());
        let path = format!("/agora/agents/{}", of.alias);
        let reply = hub.post_text(&path, None, &request.text).await;
        (request, path, reply)
    }

    /// The envelopes about a request, of these types.
    async fn about(&self, hub: &TestHub, id: &str, kinds: &[&str]) -> String {
        let token = self.token(hub).await;
        let is_it = |letter: &String| {
            let kind = text(letter, "/type").unwrap_or_default();
            text(letter, "/payload/request_id").as_deref() == Some(id) && kinds.contains(&&*kind)
        };
        let mut found = None;
        eventually(async || {
            found = self.letters(hub, &token).await.into_iter().find(is_it);
            found.is_some()
        })
        .await;
        found.expect("an envelope")
    }
}

fn refused(reply: &Reply, bytes: String) -> Refused {
    let code = raw(&reply.text, "/payload/code").unwrap_or_default();
    Refused { words: format!("{} {code}", text(&reply.text, "/type").unwrap_or_default()), bytes }
}

impl Worker for Signer {
    fn home(&self) -> &'static dyn Protocol {
        &Agora
    }

    fn native(&self) -> &str {
        self.key.did()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn owner(&self) -> String {
        self.key.owner()
    }

    fn skill(&self) -> &'static str {
        "work"
    }

    fn output(&self) -> &'static str {
        r#"{"sky":"clear ☀","t":[21.5]}"#
    }

    fn waiting<'a>(&'a self, hub: &'a TestHub) -> Doing<'a, Vec<Given>> {
        Box::pin(async move {
            let token = self.token(hub).await;
            let mut all = Vec::new();
            for letter in self.letters(hub, &token).await {
                let id = text(&letter, "/id").expect("an id");
                let open = || self.state(hub, &token, &id);
                if text(&letter, "/type").as_deref() != Some("REQUEST")
                    || ["COMPLETED", "FAILED"].contains(&open().await.as_str())
                {
                    continue;
                }
                all.push(Given {
                    also: Vec::new(),
                    input: raw(&letter, "/payload/params").expect("params"),
                    price: raw(&letter, "/payload/budget/max"),
                    bytes: letter,
                    id,
                });
            }
            all
        })
    }

    fn deliver<'a>(&'a self, hub: &'a TestHub, given: &'a Given) -> Doing<'a, Sent> {
        Box::pin(async move {
            let payload = format!(
                r#"{{"request_id":"{}","status":"success","data":{}}}"#,
                given.id,
                self.output()
            );
            self.answer(hub, MessageType::Result, &payload).await
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
                Saying::Refuses => 404,
                Saying::Declines => 401,
                Saying::Fails => 500,
                other => panic!("agora workers cannot send {other:?}"),
            };
            let payload = json!({"request_id": given.id, "code": code, "message": text});
            self.answer(hub, MessageType::Error, &payload.to_string()).await
        })
    }

    fn register_again<'a>(&'a self, hub: &'a TestHub, name: &'a str) -> Doing<'a, ()> {
        Box::pin(async move {
            let capability = json!({"resource": resource("work"), "price": 1});
            let profile = json!({"name": name, "capabilities": [capability]});
            Self { profile, ..self.clone() }.token(hub).await;
        })
    }

    fn as_requester(&self) -> Box<dyn Requester + '_> {
        Box::new(self.clone())
    }

    fn trace<'a>(&'a self, hub: &'a TestHub, id: &'a str) -> Doing<'a, String> {
        Box::pin(async move { trace(hub, &self.token(hub).await, id).await })
    }
}

impl Requester for Signer {
    fn native(&self) -> &str {
        self.key.did()
    }

    fn owner(&self) -> String {
        self.key.owner()
    }

    fn hire<'a>(
        &'a self,
        hub: &'a TestHub,
        of: &'a Found,
        order: &'a Order,
    ) -> Doing<'a, Result<Ticket, Refused>> {
        Box::pin(async move {
            let (request, path, reply) = self.ask(hub, of, order).await;
            let mut bytes =
                format!("POST {path}\n{}\n→ {}\n{}", request.text, reply.status, reply.text);
            if reply.status != 202 {
                return Err(refused(&reply, bytes));
            }
            let uuid = reply.header("rialto-job").expect("the hub's own id").to_owned();
            // A priced agent of another protocol answers with an OFFER.
            if reply.str("/payload/state") == "NEGOTIATING" {
                let offer = self.about(hub, &request.id, &["OFFER"]).await;
                let id = text(&offer, "/id").expect("an id");
                let accept = json!({"offer_id": id}).to_string();
                let accept = self.sign(hub, MessageType::Accept, &accept, None);
                let reply = self.tell(hub, &accept).await;
                bytes = format!(
                    "{bytes}\n← {offer}\nPOST {ENVELOPES}\n{}\n→ {}\n{}",
                    accept.text, reply.status, reply.text
                );
                if reply.status != 202 {
                    return Err(refused(&reply, bytes));
                }
            }
            let members = members(&request.text);
            let body = request.text.into_bytes();
            Ok(Ticket { id: request.id, uuid, path, body, members, bytes })
        })
    }

    fn repeat<'a>(&'a self, hub: &'a TestHub, ticket: &'a Ticket) -> Doing<'a, Repeated> {
        Box::pin(async move {
            let body = String::from_utf8(ticket.body.clone()).expect("text");
            let reply = hub.post_text(&ticket.path, None, &body).await.expect(202);
            let uuid = reply.header("rialto-job").map(str::to_owned);
            Repeated { id: reply.str("/payload/request_id"), uuid }
        })
    }

    fn ended<'a>(&'a self, hub: &'a TestHub, ticket: &'a Ticket) -> Doing<'a, Ended> {
        Box::pin(async move {
            let end = self.about(hub, &ticket.id, &["RESULT", "ERROR"]).await;
            let kind = text(&end, "/type").unwrap_or_default();
            let code = raw(&end, "/payload/code").or_else(|| text(&end, "/payload/status"));
            Ended {
                words: format!("{kind} {}", code.unwrap_or_default()),
                detail: text(&end, "/payload/message").unwrap_or_default(),
                id: text(&end, "/payload/request_id").unwrap_or_default(),
                output: raw(&end, "/payload/data"),
                bytes: end,
            }
        })
    }

    fn call_off<'a>(
        &'a self,
        hub: &'a TestHub,
        of: &'a Found,
        order: &'a Order,
    ) -> Doing<'a, Option<Ended>> {
        Box::pin(async move {
            // A REQUEST can be withdrawn until work starts; free work starts at once.
            let (request, _, reply) = self.ask(hub, of, order).await;
            if reply.expect(202).str("/payload/state") == "PROCESSING" {
                return None;
            }
            let payload = json!({"request_id": request.id, "code": 500, "message": "never mind"});
            let sent = self.answer(hub, MessageType::Error, &payload.to_string()).await;
            assert!(sent.taken, "{}", sent.answer);
            let words = text(&sent.answer, "/payload/state").unwrap_or_default();
            let id = text(&sent.answer, "/payload/request_id").unwrap_or_default();
            Some(Ended { words, detail: String::new(), id, output: None, bytes: sent.answer })
        })
    }

    fn trace<'a>(&'a self, hub: &'a TestHub, id: &'a str) -> Doing<'a, String> {
        Box::pin(async move { trace(hub, &self.token(hub).await, id).await })
    }

    fn pose<'a>(&'a self, hub: &'a TestHub, whom: &'a Found) -> Doing<'a, Posed> {
        Box::pin(async move {
            let payload = json!({"resource": whom.skill, "params": {}}).to_string();
            let own = self.sign(hub, MessageType::Request, &payload, None);
            let text = own.text.replace(self.key.did(), &whom.alias);
            let spoke = hub.post_text(ENVELOPES, None, &text).await;
            Posed { spoke: refused(&spoke, spoke.text.clone()), took: None }
        })
    }
}
