//! Signed orders of agents that have only a key; native to `AWAY`.

use uuid::Uuid;

use super::{AWAY, JOB_LIFETIME, TestHub, credits, registration, skill};
use crate::alias::Digest;
use crate::answer::Answer;
use crate::command::{Command, Registration};
use crate::id::{AgentId, JobId};
use crate::job::{Cause, State};
use crate::notice::NoticeKind;
use crate::price_step::PriceStep;
use crate::refusal::Refusal;
use crate::signed_order::*;
use crate::time::Millis;

/// How long an offer is valid, in tests.
pub const OFFER_VALIDITY: Millis = Millis::minutes(5);

/// The answer to a signed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedOrderAnswer {
    pub by: AgentId,
    pub job: Option<JobId>,
    pub state: Option<State>,
    pub repeated: bool,
}

/// An offer for a request.
pub fn offer(request: &str, price: &str) -> SignedOrder {
    let (valid_for, eta) = (OFFER_VALIDITY, Millis::seconds(1));
    SignedOrder::Offer(MakeOffer { request: named(request), price: credits(price), valid_for, eta })
}

/// Accepts an offer.
pub fn accept(offer: &str) -> SignedOrder {
    let (offer, binding) = (named(offer), PaymentBinding::NamesHub);
    SignedOrder::Accept(AcceptOffer { offer, payment_proof: None, binding })
}

/// Sends the final result.
pub fn result(request: &str) -> SignedOrder {
    let (request, output) = (named(request), "{}".to_owned());
    SignedOrder::Result(SendResult { request, output, is_final: true })
}

/// Sends a part of the result.
pub fn partial_result(request: &str) -> SignedOrder {
    let (request, output) = (named(request), "{}".to_owned());
    SignedOrder::Result(SendResult { request, output, is_final: false })
}

/// Reports a failure; or, from the requester, cancels the request.
pub fn failure(request: &str) -> SignedOrder {
    let (request, text) = (named(request), "it broke".to_owned());
    SignedOrder::Fail(AbandonJob { request, cause: Cause::Execution, refused: false, text })
}

/// Declines without starting.
pub fn refusal(request: &str) -> SignedOrder {
    let (request, text) = (named(request), "too busy".to_owned());
    SignedOrder::Fail(AbandonJob { request, cause: Cause::Offline, refused: true, text })
}

/// The same, naming the counterparty.
pub fn with_counterparty(other: AgentId, mut signed_order: SignedOrder) -> SignedOrder {
    let named = match &mut signed_order {
        SignedOrder::Offer(order) => &mut order.request,
        SignedOrder::Accept(order) => &mut order.offer,
        SignedOrder::Result(order) => &mut order.request,
        SignedOrder::Fail(order) => &mut order.request,
        other => panic!("{other:?} names nothing"),
    };
    named.counterparty = Some(other);
    signed_order
}

fn named(id: &str) -> ExternalRef {
    ExternalRef { id: id.to_owned(), counterparty: None }
}

/// How a signer is registered with its first order.
pub fn signer_registration(native: &str) -> Registration {
    Registration { home: AWAY, ..registration(native, native, &[]) }
}

/// The text of a signer's order.
pub fn envelope_text(native: &str, id: &str) -> String {
    format!("{native} says {id}")
}

impl TestHub {
    /// A signed order.
    pub fn sign_order(&self, native: &str, id: &str, signed_order: SignedOrder) -> SignedEnvelope {
        let content = Digest::of(&[format!("{signed_order:?}").as_bytes()]);
        let known = self.world.agent_by_alias(AWAY, native).is_some();
        SignedEnvelope {
            home: AWAY,
            native_id: native.to_owned(),
            registration: (!known).then(|| Box::new(signer_registration(native))),
            id: id.to_owned(),
            content,
            body: envelope_text(native, id),
            order: signed_order,
        }
    }

    /// Runs a signed order.
    pub fn run_signed(&mut self, order: SignedEnvelope) -> Result<SignedOrderAnswer, Refusal> {
        match self.run(Command::ExecuteSigned(Box::new(order)))? {
            Answer::SignedOrder { by, job, state, repeated } => {
                Ok(SignedOrderAnswer { by, job, state, repeated })
            }
            other => panic!("{other:?}"),
        }
    }

    /// Signs and runs an order; returns the state of its job afterwards.
    pub fn sign_and_run(
        &mut self,
        native: &str,
        id: &str,
        signed_order: SignedOrder,
    ) -> Result<State, Refusal> {
        let order = self.sign_order(native, id, signed_order);
        let heard = self.run_signed(order)?;
        assert!(!heard.repeated, "{native} used {id} before");
        Ok(heard.state.expect("the order has a job"))
    }

    /// A signer introduces itself with its skills.
    pub fn introduce(&mut self, native: &str, skills: &[(&str, &str)]) -> AgentId {
        let skills = skills.iter().map(|(name, price)| skill(name, price)).collect();
        self.update_profile(
            native,
            ProfileUpdate { skills: Some(skills), ..ProfileUpdate::default() },
        )
    }

    /// A signer updates its profile.
    pub fn update_profile(&mut self, native: &str, profile: ProfileUpdate) -> AgentId {
        let id = format!("hello-{}", self.next_number());
        let order = self.sign_order(native, &id, SignedOrder::UpdateProfile(Box::new(profile)));
        self.run_signed(order).expect("any signer may introduce itself").by
    }

    /// A job request with defaults.
    pub fn job_request(
        &mut self,
        skill: &str,
        to: RequestTarget,
        budget: Option<&str>,
    ) -> JobRequest {
        JobRequest {
            uuid: Uuid::from_u128(u128::from(self.next_number()) << 64),
            skill: skill.to_owned(),
            input: "{}".to_owned(),
            to,
            budget: budget.map(credits),
            price_step: PriceStep::FINEST,
            unfit_agents: Vec::new(),
            other_currency: false,
            timeout: JOB_LIFETIME,
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
        let order = self.job_request("sum", RequestTarget::Agent(to), budget);
        let order = self.sign_order(native, id, SignedOrder::RequestJob(Box::new(order)));
        self.run_signed(order).map(|heard| heard.job.expect("a request opens a job"))
    }

    /// Requests the skill `sum` of one agent.
    pub fn request(&mut self, native: &str, id: &str, to: AgentId, budget: Option<&str>) -> JobId {
        self.try_request(native, id, to, budget).expect("it can be invited")
    }

    /// Requests `sum` of the best agents that offer it.
    pub fn request_all(&mut self, native: &str, id: &str, budget: Option<&str>) -> JobId {
        let order = self.job_request("sum", RequestTarget::Best { max: 8 }, budget);
        let order = self.sign_order(native, id, SignedOrder::RequestJob(Box::new(order)));
        self.run_signed(order).expect("an agent offers it").job.expect("a request opens a job")
    }

    /// The messages an agent got, in order.
    pub fn messages_to(&self, agent: AgentId) -> Vec<String> {
        let body = |news| match news {
            NoticeKind::Message { body, .. } => Some(body),
            _ => None,
        };
        self.notices_to(agent).into_iter().filter_map(body).collect()
    }
}
