//! openclaw agents: collaborations with responders that find their own work.

use rialto_core::price_step::PriceStep;
use serde_json::{Value, json};

use super::registry::trace;
use crate::crossing::party::{
    Doing, End, Ended, Found, Given, Order, Posed, Protocol, Refused, Repeated, Requester, Saying,
    Sent, Terms, Ticket, Worker,
};
use crate::crossing::raw::{items, members, raw, text};
use crate::kit::{Reply, TestHub, eventually};
use crate::openclaw::kit::{Hub, capability, fresh_id, with};

const COLLABORATIONS: &str = "/openclaw/collaborations";

pub struct Openclaw;

/// An identity with one capability.
fn identity(hub: &TestHub, name: &str, terms: Terms) -> Value {
    let price: Value = serde_json::from_str(terms.price).expect("a number");
    let schema = json!({"type": "object", "properties": {"n": {"type": "number"}},
        "required": ["n"]});
    let schemas = if terms.strict { json!({"work": schema}) } else { json!({}) };
    let mode = if terms.asked_first { "ask" } else { "auto" };
    json!({
        "agent_id": fresh_id(), "agent_name": name, "agent_type": "autonomous_content_node",
        "version": "1.0.0", "response_mode": mode,
        "capabilities": {
            "advertised_capabilities": [capability("work", json!({"price": price}))],
            "input_schemas": schemas, "output_schemas": {},
        },
        "status": {"current_status": "idle", "status_timestamp": Hub::stamp_of(hub)},
    })
}

/// Publishes an identity; returns its id and key.
async fn publish(hub: &TestHub, identity: &Value) -> (String, String) {
    let reply = hub.post("/openclaw/identity", None, identity).await.expect(201);
    (reply.str("/agent_id"), reply.str("/api_key"))
}

impl Protocol for Openclaw {
    fn id(&self) -> &'static str {
        "openclaw"
    }

    fn price_step(&self) -> PriceStep {
        PriceStep::FINEST
    }

    fn price(&self) -> &'static str {
        "0.123457"
    }

    fn words(&self, end: End, begun: bool) -> &'static str {
        match end {
            End::Done => "completed",
            // An accepted request cannot be rejected any more.
            End::Refused | End::Declined if begun => "failed EXECUTION_ERROR",
            End::Refused => "rejected capability_not_available",
            End::Declined => "rejected policy_violation",
            End::Failed => "failed EXECUTION_ERROR",
            End::TimedOut => "failed DEADLINE_EXCEEDED",
            End::Cancelled => "cancelled",
            End::Offline | End::TooFewCredits => "rejected resource_exhausted",
            End::BudgetTooLow => "rejected policy_violation",
            End::Unfit => "rejected invalid_input",
        }
    }

    fn sayings(&self) -> &'static [Saying] {
        use Saying::*;
        &[Refuses, Declines, Fails, Offline, Strict]
    }

    fn worker<'a>(
        &'a self,
        hub: &'a TestHub,
        seat: u8,
        terms: Terms,
    ) -> Doing<'a, Box<dyn Worker>> {
        Box::pin(async move {
            let name = format!("chimera-w{seat}");
            let (id, key) = publish(hub, &identity(hub, &name, terms)).await;
            Box::new(Node { id, key, name }) as Box<dyn Worker>
        })
    }

    fn requester<'a>(&'a self, hub: &'a TestHub, seat: u8) -> Doing<'a, Box<dyn Requester>> {
        Box::pin(async move {
            let name = format!("chimera-r{seat}");
            let mut identity = identity(hub, &name, Terms::at("0"));
            let asking = json!([capability("asking", json!({}))]);
            identity["capabilities"]["advertised_capabilities"] = asking;
            let (id, key) = publish(hub, &identity).await;
            Box::new(Node { id, key, name }) as Box<dyn Requester>
        })
    }

    fn find<'a>(&'a self, hub: &'a TestHub, worker: &'a dyn Worker) -> Doing<'a, Found> {
        Box::pin(async move {
            let skill = worker.skill();
            let path = format!("/openclaw/agents?capability={skill}&limit=200");
            let page = hub.get(&path, None).await.expect(200);
            let native = Some(worker.native());
            let is_it = |entry: &String| {
                text(entry, "/native_id").as_deref() == native
                    || text(entry, "/agent_id").as_deref() == native
            };
            let entry = items(&page.text, "/agents").into_iter().find(is_it);
            let entry =
                entry.unwrap_or_else(|| panic!("{} is not in {}", worker.native(), page.text));
            let listed = items(&entry, "/capabilities/advertised_capabilities");
            let mut listed = listed.iter();
            let listed = listed.find(|one| text(one, "/capability_id").as_deref() == Some(skill));
            Found {
                alias: text(&entry, "/agent_id").expect("an id"),
                skill: skill.to_owned(),
                price: listed.and_then(|one| raw(one, "/price")).unwrap_or_else(|| "0".to_owned()),
                entry,
            }
        })
    }
}

/// A published agent.
#[derive(Clone)]
struct Node {
    id: String,
    key: String,
    name: String,
}

impl Node {
    async fn post(&self, hub: &TestHub, path: &str, body: &str) -> Reply {
        hub.post_text(path, Some(&self.key), body).await
    }

    async fn tell(&self, hub: &TestHub, path: &str, body: &str) -> Sent {
        let reply = self.post(hub, path, body).await;
        Sent {
            bytes: format!("POST {path}\n{body}"),
            members: members(body),
            taken: reply.status == 200,
            answer: reply.text,
        }
    }

    /// The members that every message about a collaboration has.
    fn about(&self, hub: &TestHub, given: &Given) -> Value {
        let [collaboration, correlation] = &given.also[..] else { panic!("{given:?}") };
        json!({"collaboration_id": collaboration, "request_id": given.id,
            "responder_agent_id": self.id, "correlation_id": correlation,
            "timestamp": Hub::stamp_of(hub)})
    }

    async fn result(&self, hub: &TestHub, given: &Given, body: &str) -> Sent {
        self.tell(hub, &format!("{COLLABORATIONS}/{}/result", given.also[0]), body).await
    }
}

impl Worker for Node {
    fn home(&self) -> &'static dyn Protocol {
        &Openclaw
    }

    fn native(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn owner(&self) -> String {
        format!("openclaw:{}", self.id)
    }

    fn skill(&self) -> &'static str {
        "work"
    }

    fn output(&self) -> &'static str {
        r#"{"r":1.50,"list":[null,"“x”"]}"#
    }

    fn waiting<'a>(&'a self, hub: &'a TestHub) -> Doing<'a, Vec<Given>> {
        Box::pin(async move {
            let path = format!("{COLLABORATIONS}?role=responder&limit=100");
            let page = hub.get(&path, Some(&self.key)).await.expect(200);
            let open = ["running", "awaiting_response"].map(|state| Some(state.to_owned()));
            let given = |row: String| {
                let request = raw(&row, "/request").expect("a request");
                let id = text(&request, "/request_id").expect("an id");
                let own = text(&row, "/collaboration_id").unwrap_or_else(|| id.clone());
                let correlation = text(&request, "/correlation_id").expect("an id");
                Given {
                    id,
                    also: vec![own, correlation],
                    input: raw(&request, "/input_data").expect("an input"),
                    price: raw(&request, "/budget"),
                    bytes: request,
                }
            };
            let rows = items(&page.text, "/collaborations").into_iter();
            rows.filter(|row| open.contains(&text(row, "/state"))).map(given).collect()
        })
    }

    fn deliver<'a>(&'a self, hub: &'a TestHub, given: &'a Given) -> Doing<'a, Sent> {
        Box::pin(async move {
            let about = self.about(hub, given).to_string();
            let body = format!(
                r#"{},"result_status":"completed","output_data":{}}}"#,
                about.trim_end_matches('}'),
                self.output()
            );
            self.result(hub, given, &body).await
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
            let about = self.about(hub, given);
            let code = match saying {
                Saying::Refuses => "capability_not_available",
                Saying::Declines => "policy_violation",
                Saying::Fails => {
                    let failed = json!({"result_status": "failed",
                        "error": {"code": "EXECUTION_ERROR", "message": text}});
                    return self.result(hub, given, &with(&about, failed).to_string()).await;
                }
                other => panic!("openclaw workers cannot send {other:?}"),
            };
            let no = json!({"response_status": "rejected", "collaboration_id": null,
                "rejection_reason": {"code": code, "message": text}});
            let path = format!("{COLLABORATIONS}/{}/response", given.id);
            self.tell(hub, &path, &with(&about, no).to_string()).await
        })
    }

    fn register_again<'a>(&'a self, hub: &'a TestHub, name: &'a str) -> Doing<'a, ()> {
        Box::pin(async move {
            let path = format!("/openclaw/agents/{}", self.id);
            let gone = hub.call("DELETE", &path, Some(&self.key), None).await;
            assert!(gone.status < 300, "{}", gone.text);
            let mut identity = identity(hub, &format!("chimera-{name}"), Terms::at("1"));
            identity["agent_id"] = self.id.as_str().into();
            let reply = hub.post("/openclaw/identity", Some(&self.key), &identity).await;
            assert!(reply.status < 300, "{}", reply.text);
        })
    }

    fn as_requester(&self) -> Box<dyn Requester + '_> {
        Box::new(self.clone())
    }

    fn trace<'a>(&'a self, hub: &'a TestHub, id: &'a str) -> Doing<'a, String> {
        Box::pin(trace(hub, &self.key, id))
    }
}

/// A refusal: of a request, or of any call.
fn refused(reply: &Reply) -> Refused {
    let answer = text(&reply.text, "/response_status");
    let code =
        text(&reply.text, "/rejection_reason/code").or_else(|| text(&reply.text, "/error/code"));
    let answer = answer.unwrap_or_else(|| reply.status.to_string());
    Refused { words: format!("{answer} {}", code.unwrap_or_default()), bytes: reply.text.clone() }
}

/// The answer to a request, or its outcome.
fn words(view: &str) -> String {
    let state = text(view, "/state").unwrap_or_default();
    let code = match state.as_str() {
        "rejected" => text(view, "/response/rejection_reason/code"),
        _ => text(view, "/result/error/code"),
    };
    format!("{state} {}", code.unwrap_or_default()).trim().to_owned()
}

impl Requester for Node {
    fn native(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> String {
        format!("openclaw:{}", self.id)
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
                r#"{{"request_id":"{id}","requester_agent_id":"{}","responder_agent_id":"{}","capability_id":"{}","input_data":{input},"budget":{budget},"priority":3,"correlation_id":"{}","timestamp":"{}"{}}}"#,
                self.id,
                of.alias,
                of.skill,
                fresh_id(),
                Hub::stamp_of(hub),
                order.more()
            );
            let reply = self.post(hub, COLLABORATIONS, &body).await;
            let bytes =
                format!("POST {COLLABORATIONS}\n{body}\n→ {}\n{}", reply.status, reply.text);
            let answer = text(&reply.text, "/response_status").unwrap_or_default();
            if reply.status != 200 || answer == "rejected" {
                return Err(Refused { bytes, ..refused(&reply) });
            }
            let uuid = reply.header("rialto-job").expect("the hub's own id").to_owned();
            let path = COLLABORATIONS.to_owned();
            let members = members(&body);
            Ok(Ticket { id, uuid, path, body: body.into_bytes(), members, bytes })
        })
    }

    fn repeat<'a>(&'a self, hub: &'a TestHub, ticket: &'a Ticket) -> Doing<'a, Repeated> {
        Box::pin(async move {
            let body = String::from_utf8(ticket.body.clone()).expect("text");
            let reply = self.post(hub, &ticket.path, &body).await.expect(200);
            assert_eq!(reply.str("/collaboration_id"), ticket.uuid, "{}", reply.text);
            let uuid = reply.header("rialto-job").map(str::to_owned);
            Repeated { id: reply.str("/request_id"), uuid }
        })
    }

    fn ended<'a>(&'a self, hub: &'a TestHub, ticket: &'a Ticket) -> Doing<'a, Ended> {
        Box::pin(async move {
            let path = format!("{COLLABORATIONS}/{}", ticket.uuid);
            let over = ["completed", "failed", "cancelled", "rejected"];
            let mut view = String::new();
            eventually(async || {
                view = hub.get(&path, Some(&self.key)).await.expect(200).text;
                text(&view, "/state").is_some_and(|state| over.contains(&state.as_str()))
            })
            .await;
            let said = raw(&view, "/result").or_else(|| raw(&view, "/response"));
            let said = said.expect("a result, or a rejection");
            let detail = text(&said, "/error/message");
            let detail = detail.or_else(|| text(&said, "/rejection_reason/message"));
            Ended {
                words: words(&view),
                detail: detail.unwrap_or_default(),
                id: text(&said, "/request_id").unwrap_or_default(),
                output: raw(&said, "/output_data"),
                bytes: said,
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
            let ticket = self.hire(hub, of, order).await.expect("a collaboration");
            let path = format!("{COLLABORATIONS}/{}/cancel", ticket.uuid);
            let body = json!({"reason": "changed my mind"}).to_string();
            self.post(hub, &path, &body).await.expect(200);
            Some(self.ended(hub, &ticket).await)
        })
    }

    fn trace<'a>(&'a self, hub: &'a TestHub, id: &'a str) -> Doing<'a, String> {
        Box::pin(trace(hub, &self.key, id))
    }

    fn pose<'a>(&'a self, hub: &'a TestHub, whom: &'a Found) -> Doing<'a, Posed> {
        Box::pin(async move {
            let request = json!({"request_id": fresh_id(), "requester_agent_id": whom.alias,
                "capability_id": whom.skill, "input_data": {}, "correlation_id": fresh_id(),
                "timestamp": Hub::stamp_of(hub)});
            let spoke = self.post(hub, COLLABORATIONS, &request.to_string()).await;
            let mut thief = identity(hub, "chimera-thief", Terms::at("0"));
            thief["agent_id"] = whom.alias.as_str().into();
            let took = hub.post("/openclaw/identity", None, &thief).await;
            Posed { spoke: refused(&spoke), took: Some(refused(&took)) }
        })
    }
}
