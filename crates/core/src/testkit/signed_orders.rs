//! Signed orders of agents that have only a key; native to `AWAY`.

use uuid::Uuid;

use super::{AWAY, JOB_LIFETIME, TestHub, credits, registration, skill};
use crate::alias::Digest;
use crate::answer::Answer;
use crate::command::{
    AbandonJob, AcceptOffer, AcceptedOffer, Command, ExternalRef, JobRef, JobRequest, OfferTerms,
    PaymentBinding, ProfileUpdate, Registration, ReportResult, RequestTarget,
};
use crate::envelope::{Envelope, Signature};
use crate::id::{AgentId, JobId};
use crate::job::{Cause, State};
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::price_step::PriceStep;
use crate::refusal::Refusal;
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

/// A signed command, before it is put into an envelope.
#[derive(Clone, Debug)]
pub struct SignedCommand {
    pub signature: Signature,
    pub command: Command,
}

impl From<SignedCommand> for Envelope {
    fn from(signed: SignedCommand) -> Self {
        Self::signed(signed.signature, signed.command)
    }
}

/// The author of a signed command is set from its signature.
const SIGNER: AgentId = AgentId(0);

/// An offer for a request.
pub fn offer(request: &str, price: &str) -> Command {
    let (valid_for, eta) = (OFFER_VALIDITY, Millis::seconds(1));
    invited_offer(named(request), credits(price), valid_for, eta)
}

/// The same, with its terms.
pub fn invited_offer(
    request: ExternalRef,
    price: Credits,
    valid_for: Millis,
    eta: Millis,
) -> Command {
    let terms = OfferTerms::Invited { name: String::new(), valid_for, eta };
    Command::Offer { job: JobRef::Named(request), by: SIGNER, price, terms }
}

/// Accepts an offer.
pub fn accept(offer: &str) -> Command {
    accept_named(named(offer), PaymentBinding::NamesHub)
}

/// The same, with what binds it to this hub.
pub fn accept_named(offer: ExternalRef, binding: PaymentBinding) -> Command {
    let offer = AcceptedOffer::Named(offer);
    Command::AcceptOffer(Box::new(AcceptOffer { by: SIGNER, offer, payment_proof: None, binding }))
}

/// Sends the final result.
pub fn result(request: &str) -> Command {
    signed_result(named(request), true)
}

/// Sends a part of the result.
pub fn partial_result(request: &str) -> Command {
    signed_result(named(request), false)
}

/// Sends a result or a part of it.
pub fn signed_result(request: ExternalRef, is_final: bool) -> Command {
    Command::ReportResult(Box::new(ReportResult {
        job: JobRef::Named(request),
        by: SIGNER,
        epoch: None,
        ok: true,
        is_final,
        knows_work: false,
        no_response: false,
        output: Some("{}".to_owned()),
        cost: Credits::MAX,
        took: None,
        cause: None,
        text: None,
        meta: None,
        content: Digest([0; 16]),
    }))
}

/// Reports a failure; or, from the requester, cancels the request.
pub fn failure(request: &str) -> Command {
    abandon(named(request), Cause::Execution, false, "it broke")
}

/// Declines without starting.
pub fn refusal(request: &str) -> Command {
    abandon(named(request), Cause::Offline, true, "too busy")
}

/// Ends a job without a result.
pub fn abandon(request: ExternalRef, cause: Cause, refused: bool, text: &str) -> Command {
    let text = text.to_owned();
    Command::AbandonJob(Box::new(AbandonJob { by: SIGNER, request, cause, refused, text }))
}

/// Changes the signer's profile.
pub fn profile_update(profile: ProfileUpdate) -> Command {
    Command::UpdateProfile { agent: SIGNER, profile: Box::new(profile) }
}

/// The same, naming the counterparty.
pub fn with_counterparty(other: AgentId, mut command: Command) -> Command {
    let named = match &mut command {
        Command::Offer { job: JobRef::Named(request), .. } => request,
        Command::AcceptOffer(order) => match &mut order.offer {
            AcceptedOffer::Named(offer) => offer,
            other => panic!("{other:?} names nothing"),
        },
        Command::ReportResult(report) => match &mut report.job {
            JobRef::Named(request) => request,
            other => panic!("{other:?} names nothing"),
        },
        Command::AbandonJob(order) => &mut order.request,
        other => panic!("{other:?} names nothing"),
    };
    named.counterparty = Some(other);
    command
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
    pub fn sign_order(&self, native: &str, id: &str, command: Command) -> SignedCommand {
        let content = Digest::of(&[format!("{command:?}").as_bytes()]);
        let known = self.world.agent_by_alias(AWAY, native).is_some();
        let signature = Signature {
            home: AWAY,
            native_id: native.to_owned(),
            registration: (!known).then(|| Box::new(signer_registration(native))),
            id: id.to_owned(),
            content,
            body: envelope_text(native, id),
        };
        SignedCommand { signature, command }
    }

    /// Runs a signed order.
    pub fn run_signed(&mut self, order: SignedCommand) -> Result<SignedOrderAnswer, Refusal> {
        match self.run(order)? {
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
        command: Command,
    ) -> Result<State, Refusal> {
        let order = self.sign_order(native, id, command);
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
        let order = self.sign_order(native, &id, profile_update(profile));
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
            by: SIGNER,
            id: String::new(),
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
        let order = self.sign_order(native, id, Command::RequestJob(Box::new(order)));
        self.run_signed(order).map(|heard| heard.job.expect("a request opens a job"))
    }

    /// Requests the skill `sum` of one agent.
    pub fn request(&mut self, native: &str, id: &str, to: AgentId, budget: Option<&str>) -> JobId {
        self.try_request(native, id, to, budget).expect("it can be invited")
    }

    /// Requests `sum` of the best agents that offer it.
    pub fn request_all(&mut self, native: &str, id: &str, budget: Option<&str>) -> JobId {
        let order = self.job_request("sum", RequestTarget::Best { max: 8 }, budget);
        let order = self.sign_order(native, id, Command::RequestJob(Box::new(order)));
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
