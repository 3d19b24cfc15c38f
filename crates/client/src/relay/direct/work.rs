//! An agent's own workshop behind the receive endpoint: an envelope is a job, and the reply to it
//! carries what came of it.
//!
//! The protocol's reply is `{"status":"ok"}`, and a receiver may say more (D13): a peer has no inbox
//! to which a result could be sent, so it is in the reply. `reply` is its text, as a message of the
//! agent would say it (B19), and `output` is the result itself where that is more than a text.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use rialto_core::money::Credits;
use rialto_protocols::kit::ijson;
use rialto_protocols::kit::object::Object;
use rialto_protocols::relay::envelope::Invalid;
use rialto_protocols::relay::wish::Wish;
use rialto_protocols::relay::{Bad, Code, Envelope, skill, spoken};

use super::super::once::{self, Name};
use super::BODY_BYTES_MAX;
use super::receiver::{self, Answer, Received, refuse};
use super::serve::unread;
use crate::agent::direct::bench::{Bench, Place, lock};
use crate::agent::direct::door::{Answering, Endpoint};
use crate::agent::direct::ongoing::Ongoing;
use crate::agent::direct::scope::Scope;
use crate::agent::direct::shelf::Shelf;
use crate::agent::{Job, Outcome, Refused, Skill};
use crate::endpoint::{self, NoBody, is_encoded};
use crate::{clock, fresh};

/// Where envelopes are posted.
const PATH: &str = "/receive";
/// Where an envelope stands in a request.
const AT: &str = "/envelope";

/// The endpoint of an agent that its peers call.
pub(crate) struct Works(Arc<Desk>);

struct Desk {
    bench: Arc<Bench>,
    turns: Mutex<Shelf<Name, Ongoing<Answer>>>,
}

/// The endpoint at which a workshop is asked in this protocol.
pub(crate) fn endpoint(bench: &Arc<Bench>) -> impl Endpoint + use<> {
    Works(Arc::new(Desk { bench: Arc::clone(bench), turns: Mutex::default() }))
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
                let said = Answer::unusable(405, "envelopes are sent with POST");
                return endpoint::Answer { allow: Some("POST"), ..said.into() };
            }
            match body {
                _ if head.uri.path().trim_end_matches('/') != PATH => {
                    Answer::unusable(404, "envelopes are sent to /receive")
                }
                Ok(_) if is_encoded(&head.headers) => {
                    Answer::unusable(415, "send the body without Content-Encoding")
                }
                Ok(body) if body.len() > BODY_BYTES_MAX => unread(NoBody::TooLong),
                Ok(body) => match receiver::read(&head.headers, &body) {
                    Ok(received) => self.0.take(received).await,
                    Err(invalid) => unusable(&invalid),
                },
                Err(why) => unread(why),
            }
            .into()
        })
    }
}

impl From<Answer> for endpoint::Answer {
    fn from(Answer { status, body }: Answer) -> Self {
        Self::new(status, body)
    }
}

impl Desk {
    /// Takes a good envelope as a job, or as a repeat of one.
    async fn take(self: &Arc<Self>, received: Received) -> Answer {
        let turn = once::name(&received.sender_id, &received.contents);
        if let Some(known) = turn.and_then(|turn| self.known(turn)) {
            return known.wait().await;
        }
        let (job, place) = match self.job(&received) {
            Ok(job) => job,
            Err(answer) => return answer,
        };
        let ongoing = Ongoing::new();
        // Somebody may have said the same meanwhile.
        if let Some(known) = turn.and_then(|turn| self.begin(turn, &ongoing)) {
            return known.wait().await;
        }
        let (desk, told) = (Arc::clone(self), ongoing.clone());
        self.bench.run(async move {
            let _seat = place.seat().await;
            let answer = said(desk.bench.shop().work(job).await);
            if let Some(turn) = turn {
                lock(&desk.turns).end(&turn, answer.body.len(), clock::now());
            }
            told.end(answer);
        });
        ongoing.wait().await
    }

    fn known(&self, turn: Name) -> Option<Ongoing<Answer>> {
        lock(&self.turns).get(&turn, clock::now())
    }

    /// Remembers a turn, unless it was taken before.
    fn begin(&self, turn: Name, ongoing: &Ongoing<Answer>) -> Option<Ongoing<Answer>> {
        let (mut turns, now) = (lock(&self.turns), clock::now());
        let known = turns.get(&turn, now);
        if known.is_none() {
            turns.begin(turn, ongoing.clone(), now);
        }
        known
    }

    /// The job of an envelope and its place in the queue, or why it is none.
    fn job(&self, received: &Received) -> Result<(Job, Place), Answer> {
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
        let id = match &received.trace_id {
            Some(id) => id.clone(),
            None => fresh::id().map_err(|error| cannot(&error.to_string()))?.to_string(),
        };
        let job = Job {
            id: Scope::of("relay", &received.sender_id, &id).job_id().to_string(),
            turn: 0,
            skill: skill.name.clone(),
            input,
            requester: received.sender_id.clone(),
            budget,
            deadline: None,
            time_limit: Duration::MAX,
        };
        let place = self.bench.place().ok_or_else(|| cannot("there is too much to do now"))?;
        Ok((job, place))
    }

    /// The skill that is named, or the only one there is.
    fn skill(&self, named: Option<&str>) -> Result<&Skill, Answer> {
        let shop = self.bench.shop();
        let names =
            || shop.skills().map(|skill| skill.name.as_str()).collect::<Vec<_>>().join(", ");
        if let Some(name) = named {
            let unknown = || cannot(&format!("{}: there are {}", Refused::NoSkill, names()));
            return shop.skill(name).ok_or_else(unknown);
        }
        let mut all = shop.skills();
        let only = all.next().filter(|_| all.next().is_none());
        let several = || cannot(&format!("add \"skill\" to the envelope, one of {}", names()));
        only.or_else(|| shop.skill(skill::MESSAGE)).ok_or_else(several)
    }
}

/// Why an envelope is no job, and what would make it one.
fn reason(why: &Refused) -> String {
    match why {
        Refused::BudgetTooLow { price } => {
            let price = price.text(2);
            format!("costs {price} credits: add \"budget\": {price} to the envelope")
        }
        Refused::NoSkill | Refused::Unfit(_) => why.to_string(),
    }
}

/// The reply to an envelope that was a job.
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
    Answer { status: 200, body: body.into() }
}

fn unusable(Invalid { bad, code }: &Invalid) -> Answer {
    refuse(*code, &bad.message())
}

fn cannot(detail: &str) -> Answer {
    refuse(Code::AdaptationFailed, detail)
}
