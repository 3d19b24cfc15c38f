//! Connects the agent's handlers to the receive endpoint: an envelope becomes a job, and the reply
//! contains its result.
//!
//! The protocol's reply is `{"status":"ok"}`, and a receiver may add more (D13). A peer has no
//! inbox for a result, so the result is in the reply. `reply` is its text, as a message of the
//! agent would say it (B19), and `output` is the result itself if it is more than a text.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::kit::ijson;
use rialto_protocols::kit::object::Object;
use rialto_protocols::relay::envelope::Invalid;
use rialto_protocols::relay::wish::Wish;
use rialto_protocols::relay::{Bad, Code, Envelope, reply, skill, spoken};

use super::BODY_BYTES_MAX;
use super::receiver::{self, Received, refuse};
use super::serve::unread;
use super::envelope_record::{Name, Turn};
use crate::agent::direct::worker_pool::{Bench, Place, lock};
use crate::agent::direct::router::{Answering, Endpoint};
use crate::agent::direct::journal::{Entry, Journal};
use crate::agent::direct::shared_result::Ongoing;
use crate::agent::direct::request_key::Scope;
use crate::agent::direct::bounded_cache::{LIFE, Shelf};
use crate::agent::{Job, Outcome, Refused, Skill};
use crate::http_server::{Answer, NoBody, is_encoded};
use crate::{clock, ids};

/// The path for envelopes.
const PATH: &str = "/receive";
/// The path of the envelope within a request.
const AT: &str = "/envelope";

/// The `Retry-After` of a refusal for lack of capacity.
const BACK_AFTER_S: u32 = 5;

/// The relay endpoint of an agent that its peers call.
pub(crate) struct Works(Arc<Desk>);

struct Desk {
    bench: Arc<Bench>,
    turns: Mutex<Shelf<Scope, Turn>>,
    journal: Journal,
}

/// Creates the relay endpoint for these handlers.
pub(crate) fn endpoint(
    bench: &Arc<Bench>,
    (journal, before): (Journal, Vec<Entry>),
) -> impl Endpoint + use<> {
    let mut turns = Shelf::default();
    for entry in &before {
        if let Some(turn) = Turn::found(entry) {
            let since = Timestamp(entry.until.0.saturating_sub(LIFE.0));
            turns.keep(Scope(entry.scope), turn, entry.bytes(), since);
        }
    }
    Works(Arc::new(Desk { bench: Arc::clone(bench), turns: Mutex::new(turns), journal }))
}

impl Endpoint for Works {
    fn name(&self) -> &'static str {
        "relay"
    }

    fn path(&self) -> &'static str {
        PATH
    }

    fn answer<'a>(&'a self, head: &'a Parts, body: Result<Bytes, NoBody>) -> Answering<'a> {
        Box::pin(async move {
            if head.method != Method::POST {
                let said = receiver::Answer::unusable(405, "envelopes are sent with POST");
                return Answer { allow: Some("POST"), ..said.into() };
            }
            match body {
                _ if head.uri.path().trim_end_matches('/') != PATH => {
                    receiver::Answer::unusable(404, "envelopes are sent to /receive").into()
                }
                Ok(_) if is_encoded(&head.headers) => {
                    receiver::Answer::unusable(415, "send the body without Content-Encoding").into()
                }
                Ok(body) if body.len() > BODY_BYTES_MAX => unread(NoBody::TooLong).into(),
                Ok(body) => match receiver::read(&head.headers, &body) {
                    Ok(received) => self.0.take(received).await,
                    Err(invalid) => unusable(&invalid),
                },
                Err(why) => unread(why).into(),
            }
        })
    }
}

impl From<receiver::Answer> for Answer {
    fn from(receiver::Answer { status, body }: receiver::Answer) -> Self {
        Self::new(status, body)
    }
}

impl Desk {
    /// Handles a valid envelope as a new job or as a repeat.
    async fn take(self: &Arc<Self>, received: Received) -> Answer {
        let name = Name::of(&received);
        let known = name.and_then(|name| lock(&self.turns).get(&name.scope, clock::now()));
        if let (Some(name), Some(known)) = (name, known) {
            if !known.is(name) {
                return other();
            }
            if !known.is_left {
                return known.answer.wait().await;
            }
        }
        let (job, place) = match self.job(&received, name) {
            Ok(job) => job,
            Err(answer) => return answer,
        };
        let Some(name) = name else {
            let ongoing = Ongoing::new();
            self.begin(None, ongoing.clone(), job, place);
            return ongoing.wait().await;
        };
        let turn = Turn::new(name);
        let before = {
            let (mut turns, now) = (lock(&self.turns), clock::now());
            let before = turns.get(&name.scope, now).filter(|turn| !turn.is_left);
            if before.is_none() {
                turns.begin(name.scope, turn.clone(), now);
            }
            before
        };
        // The same envelope may have arrived in the meantime.
        match before {
            Some(before) if before.is(name) => before.answer.wait().await,
            Some(_) => other(),
            None => {
                self.begin(Some(name), turn.answer.clone(), job, place);
                turn.answer.wait().await
            }
        }
    }

    /// Works in a separate task: a caller that disconnects may come back for the answer.
    fn begin(self: &Arc<Self>, name: Option<Name>, told: Ongoing<Answer>, job: Job, place: Place) {
        let desk = Arc::clone(self);
        self.bench.run(async move {
            let _seat = place.seat().await;
            let id = job.id.clone();
            let begun = name.map_or(Ok(()), |name| desk.journal.write(&name.begun(clock::now())));
            let outcome = match begun {
                Ok(()) => desk.bench.shop().work(job).await,
                Err(error) => {
                    Outcome::Declined(format!("the journal cannot be written: {}", error.kind()))
                }
            };
            let may_come_again = matches!(outcome, Outcome::Declined(_));
            let answer = said(outcome);
            let kept = name.map_or(Ok(()), |name| match may_come_again {
                true => desk.journal.forget(name.scope.0),
                false => desk.journal.write(&name.over(&answer, clock::now())),
            });
            if kept.is_ok() {
                desk.bench.put_away(&id);
            }
            if let Some(Name { scope, .. }) = name {
                let mut turns = lock(&desk.turns);
                match may_come_again {
                    true => turns.forget(&scope),
                    false => turns.end(&scope, answer.body.len(), clock::now()),
                }
            }
            told.end(answer);
        });
    }

    /// The job of an envelope and its queue slot, or the refusal.
    fn job(&self, received: &Received, name: Option<Name>) -> Result<(Job, Place), Answer> {
        let text = &received.contents.envelope;
        let wrong = |bad: Bad| unusable(&bad.into());
        let json = ijson::read(text.as_bytes()).map_err(|bad| wrong(bad.into()))?;
        let wish = Wish::read(&json).map_err(wrong)?;
        let envelope = Envelope::read(&json, AT).map_err(|invalid| unusable(&invalid))?;
        let skill = self.skill(wish.skill)?;
        let shape = skill.input.as_ref().map_or("{}", |schema| schema.text()).to_owned();
        let shaped = rialto_core::agent::Skill { input: shape, ..skill::message() };
        let input = wish.input(&envelope, Some(&shaped));
        let budget = wish.budget.unwrap_or(Credits::ZERO);
        let refused = |why: Refused| cannot(&reason(&why));
        self.bench.shop().takes(&skill.name, budget, &input).map_err(refused)?;
        let id = match name {
            Some(name) => name.scope.job_id(),
            None => ids::id().map_err(|error| cannot(&error.to_string()))?,
        };
        let job = Job {
            id: id.to_string(),
            turn: 0,
            skill: skill.name.clone(),
            input,
            requester: received.sender_id.clone(),
            budget,
            deadline: None,
            time_limit: Duration::MAX,
        };
        let place = self.bench.place().ok_or_else(full)?;
        Ok((job, place))
    }

    /// The requested skill, or the only one there is.
    fn skill(&self, named: Option<&str>) -> Result<&Skill, Answer> {
        let shop = self.bench.shop();
        let names =
            || shop.skills().map(|skill| skill.name.as_str()).collect::<Vec<_>>().join(", ");
        if let Some(name) = named {
            let unknown = || cannot(&format!("{}; its skills are {}", Refused::NoSkill, names()));
            return shop.skill(name).ok_or_else(unknown);
        }
        let mut all = shop.skills();
        let only = all.next().filter(|_| all.next().is_none());
        let several = || {
            cannot(&format!(
                "the agent has several skills; add \"skill\" to the envelope, one of {}",
                names()
            ))
        };
        only.or_else(|| shop.skill(skill::MESSAGE)).ok_or_else(several)
    }
}

/// Why an envelope is not a valid job, and how to fix it.
fn reason(why: &Refused) -> String {
    match why {
        Refused::BudgetTooLow { price } => {
            let price = price.text(2);
            format!("the skill costs {price} credits; add \"budget\": {price} to the envelope")
        }
        Refused::NoSkill | Refused::Unfit(_) => why.to_string(),
    }
}

/// The reply to an envelope whose job has ended.
fn said(outcome: Outcome) -> Answer {
    let output = match outcome {
        Outcome::Done(output) => output,
        Outcome::Failed(why) | Outcome::Declined(why) | Outcome::Unfit(why) => return cannot(&why),
    };
    let text = spoken::text_of(&output);
    let structured = (text == output).then_some(output.as_str());
    let reply = Object::new().text("status", "ok").text("reply", &text);
    let body = reply.maybe_raw("output", structured).finish();
    if body.len() > BODY_BYTES_MAX {
        return cannot(&format!("the result has more than {BODY_BYTES_MAX} bytes"));
    }
    Answer::new(200, body)
}

fn unusable(Invalid { bad, code }: &Invalid) -> Answer {
    refuse(*code, &bad.message()).into()
}

/// The same `webhook-id` was used for another envelope.
fn other() -> Answer {
    refuse(Code::InvalidEnvelope, "this webhook-id was used for another envelope").into()
}

/// A reply that contains an error is still a reply: the envelope was delivered (R40, D13). The
/// code's own status, 500, is for a hub's receive endpoint. If an agent sent it, a hub would treat
/// the agent as unreachable, keep the message and retry it seven times (R45), always with the same
/// result.
fn cannot(detail: &str) -> Answer {
    Answer::new(200, reply::error(Code::AdaptationFailed, detail))
}

/// At capacity: the delivery may be retried.
fn full() -> Answer {
    let body = reply::error(Code::AdaptationFailed, "the agent is at capacity");
    Answer { retry_after_seconds: Some(BACK_AFTER_S), ..Answer::new(503, body) }
}
