//! Signed orders of agents that have only a key; native to `AWAY`.

use uuid::Uuid;

use super::{AWAY, LIFE, Scene, credits, enrolment, skill};
use crate::alias::Digest;
use crate::answer::Answer;
use crate::command::{Command, Enrol};
use crate::price_step::Grain;
use crate::id::{AgentId, JobId};
use crate::job::{Cause, State};
use crate::notice::News;
use crate::refusal::Refusal;
use crate::signed_order::*;
use crate::time::Millis;

/// How long an offer is valid, in tests.
pub const STANDS: Millis = Millis::minutes(5);

/// The answer to a signed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    pub by: AgentId,
    pub job: Option<JobId>,
    pub state: Option<State>,
    pub repeated: bool,
}

/// An offer for a request.
pub fn offer(request: &str, price: &str) -> Deed {
    let (valid_for, eta) = (STANDS, Millis::seconds(1));
    Deed::Offer(MakeOffer { request: named(request), price: credits(price), valid_for, eta })
}

/// Accepts an offer.
pub fn accept(offer: &str) -> Deed {
    let (offer, binding) = (named(offer), Binding::Named);
    Deed::Accept(TakeOffer { offer, payment_proof: None, binding })
}

/// Sends the final result.
pub fn result(request: &str) -> Deed {
    let (request, output) = (named(request), "{}".to_owned());
    Deed::Result(GiveResult { request, output, last: true })
}

/// Sends a part of the result.
pub fn part(request: &str) -> Deed {
    let (request, output) = (named(request), "{}".to_owned());
    Deed::Result(GiveResult { request, output, last: false })
}

/// Reports a failure; or, from the requester, cancels the request.
pub fn failure(request: &str) -> Deed {
    let (request, text) = (named(request), "it broke".to_owned());
    Deed::Fail(GiveUp { request, cause: Cause::Execution, refused: false, text })
}

/// Declines without starting.
pub fn refusal(request: &str) -> Deed {
    let (request, text) = (named(request), "too busy".to_owned());
    Deed::Fail(GiveUp { request, cause: Cause::Offline, refused: true, text })
}

/// The same, naming the counterparty.
pub fn with(other: AgentId, mut deed: Deed) -> Deed {
    let named = match &mut deed {
        Deed::Offer(order) => &mut order.request,
        Deed::Accept(order) => &mut order.offer,
        Deed::Result(order) => &mut order.request,
        Deed::Fail(order) => &mut order.request,
        other => panic!("{other:?} names nothing"),
    };
    named.with = Some(other);
    deed
}

fn named(id: &str) -> Named {
    Named { id: id.to_owned(), with: None }
}

/// How a signer is registered with its first order.
pub fn newcomer(native: &str) -> Enrol {
    Enrol { home: AWAY, ..enrolment(native, native, &[]) }
}

/// The text of a signer's order.
pub fn words(native: &str, id: &str) -> String {
    format!("{native} says {id}")
}

impl Scene {
    /// A signed order.
    pub fn signed(&self, native: &str, id: &str, deed: Deed) -> Signed {
        let content = Digest::of(&[format!("{deed:?}").as_bytes()]);
        let known = self.world.agent_named(AWAY, native).is_some();
        Signed {
            home: AWAY,
            native: native.to_owned(),
            newcomer: (!known).then(|| Box::new(newcomer(native))),
            id: id.to_owned(),
            content,
            body: words(native, id),
            deed,
        }
    }

    /// Runs a signed order.
    pub fn hear(&mut self, order: Signed) -> Result<Heard, Refusal> {
        match self.run(Command::Signed(Box::new(order)))? {
            Answer::Heard { by, job, state, repeated } => Ok(Heard { by, job, state, repeated }),
            other => panic!("{other:?}"),
        }
    }

    /// Signs and runs an order; returns the state of its job afterwards.
    pub fn sign(&mut self, native: &str, id: &str, deed: Deed) -> Result<State, Refusal> {
        let order = self.signed(native, id, deed);
        let heard = self.hear(order)?;
        assert!(!heard.repeated, "{native} used {id} before");
        Ok(heard.state.expect("the order has a job"))
    }

    /// A signer introduces itself with its skills.
    pub fn hello(&mut self, native: &str, skills: &[(&str, &str)]) -> AgentId {
        let skills = skills.iter().map(|(name, price)| skill(name, price)).collect();
        self.amend(native, Profile { skills: Some(skills), ..Profile::default() })
    }

    /// A signer updates its profile.
    pub fn amend(&mut self, native: &str, profile: Profile) -> AgentId {
        let id = format!("hello-{}", self.fresh());
        let order = self.signed(native, &id, Deed::Introduce(Box::new(profile)));
        self.hear(order).expect("any signer may introduce itself").by
    }

    /// A job request with defaults.
    pub fn question(&mut self, skill: &str, to: Whom, budget: Option<&str>) -> Ask {
        Ask {
            uuid: Uuid::from_u128(u128::from(self.fresh()) << 64),
            skill: skill.to_owned(),
            input: "{}".to_owned(),
            to,
            budget: budget.map(credits),
            grain: Grain::FINE,
            unfit: Vec::new(),
            other_currency: false,
            timeout: LIFE,
            meta: "{}".to_owned(),
            is_bound: true,
        }
    }

    /// Requests the skill `sum` of one agent, or returns the refusal.
    pub fn try_request(
        &mut self,
        native: &str,
        id: &str,
        to: AgentId,
        budget: Option<&str>,
    ) -> Result<JobId, Refusal> {
        let order = self.question("sum", Whom::Agent(to), budget);
        let order = self.signed(native, id, Deed::Ask(Box::new(order)));
        self.hear(order).map(|heard| heard.job.expect("a request opens a job"))
    }

    /// Requests the skill `sum` of one agent.
    pub fn request(&mut self, native: &str, id: &str, to: AgentId, budget: Option<&str>) -> JobId {
        self.try_request(native, id, to, budget).expect("it can be invited")
    }

    /// Requests `sum` of the best agents that offer it.
    pub fn request_all(&mut self, native: &str, id: &str, budget: Option<&str>) -> JobId {
        let order = self.question("sum", Whom::Best { max: 8 }, budget);
        let order = self.signed(native, id, Deed::Ask(Box::new(order)));
        self.hear(order).expect("an agent offers it").job.expect("a request opens a job")
    }

    /// The messages an agent got, in order.
    pub fn heard(&self, agent: AgentId) -> Vec<String> {
        let body = |news| match news {
            News::Message { body, .. } => Some(body),
            _ => None,
        };
        self.told(agent).into_iter().filter_map(body).collect()
    }
}
