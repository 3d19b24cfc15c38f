//! Signed orders: each is executed at most once, and the first accepted one registers its signer.
//!
//! In protocols whose agents sign their orders, there is no separate registration: the key is the
//! agent. A key's first accepted order registers it in the same command. A refused order changes
//! nothing, so it may be sent again.

#[cfg(test)]
mod tests;

use uuid::Uuid;

use crate::agent::Skill;
use crate::agent::presence::Availability;
use crate::agent::registration;
use crate::agent::suspension;
use crate::alias::{ClaimTarget, Digest, Protocol, claim};
use crate::answer::Answer;
use crate::command::{Registration, UnfitAgent};
use crate::draft::{Draft, OriginalText};
use crate::id::AgentId;
use crate::job::{Cause, Job, offer, request, signed_result};
use crate::message;
use crate::money::Credits;
use crate::price_step::PriceStep;
use crate::refusal::Refusal;
use crate::time::Millis;

/// An order and its signer.
#[derive(Clone, Debug)]
pub struct SignedEnvelope {
    pub home: Protocol,
    /// The signer's native id in that protocol.
    pub native_id: String,
    /// How to register the signer, unless it was registered when the order came in.
    pub registration: Option<Box<Registration>>,
    /// The signer's own id for the order, never used twice.
    pub id: String,
    /// Digest of the signed content and its receiver, to tell a repeat from a second order.
    pub content: Digest,
    /// The order as received, for readers of the same protocol.
    pub body: String,
    pub order: SignedOrder,
}

/// What an order asks for.
#[derive(Clone, Debug)]
pub enum SignedOrder {
    RequestJob(Box<JobRequest>),
    Offer(MakeOffer),
    Accept(AcceptOffer),
    Result(SendResult),
    Fail(AbandonJob),
    SendMessage {
        to: AgentId,
    },
    UpdateProfile(Box<ProfileUpdate>),
    /// Only records the order.
    RecordOnly,
}

/// Requests work.
#[derive(Clone, Debug)]
pub struct JobRequest {
    pub uuid: Uuid,
    pub skill: String,
    pub input: String,
    pub to: RequestTarget,
    pub budget: Option<Credits>,
    /// The price step of the requester's protocol.
    pub price_step: PriceStep,
    /// Agents that cannot use the input, and why.
    pub unfit_agents: Vec<UnfitAgent>,
    /// The budget is in a currency that cannot be paid with.
    pub other_currency: bool,
    /// How long the job may take, from when the order is executed.
    pub timeout: Millis,
    pub meta: String,
    /// Whether the signed bytes name this hub or the worker. Only then are credits held for it.
    pub is_bound: bool,
}

/// Which agents are invited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestTarget {
    Agent(AgentId),
    /// The best agents that offer the skill.
    Best {
        max: usize,
    },
}

/// A job or an offer by the id one of its parties gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalRef {
    pub id: String,
    /// The other party, if given.
    pub counterparty: Option<AgentId>,
}

/// Makes an offer.
#[derive(Clone, Debug)]
pub struct MakeOffer {
    pub request: ExternalRef,
    pub price: Credits,
    pub valid_for: Millis,
    pub eta: Millis,
}

/// Accepts an agent's offer.
#[derive(Clone, Debug)]
pub struct AcceptOffer {
    pub offer: ExternalRef,
    pub payment_proof: Option<String>,
    pub binding: PaymentBinding,
}

/// What shows that an order to pay was meant for this hub. Another hub may know the same keys, and
/// anyone who sees a signed order can submit it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaymentBinding {
    /// The signed bytes name this hub or the payee.
    NamesHub,
    /// They name neither. The signer has read its inbox here up to this position.
    ReadUpTo(u64),
}

/// Sends a result, or a part of it.
#[derive(Clone, Debug)]
pub struct SendResult {
    pub request: ExternalRef,
    /// JSON text.
    pub output: String,
    pub is_final: bool,
}

/// Ends a job without a result, as either party.
#[derive(Clone, Debug)]
pub struct AbandonJob {
    pub request: ExternalRef,
    pub cause: Cause,
    /// The job was never started, so it counts as no one's failure.
    pub refused: bool,
    pub text: String,
}

/// What a signer reports about itself. Omitted fields stay as they were.
#[derive(Clone, Debug, Default)]
pub struct ProfileUpdate {
    pub name: Option<String>,
    pub skills: Option<Vec<Skill>>,
    pub endpoint: Option<String>,
    pub availability: Option<Availability>,
}

/// Executes an order, or returns its first answer.
pub fn execute(draft: &mut Draft<'_>, order: SignedEnvelope) -> Result<Answer, Refusal> {
    let SignedEnvelope {
        home,
        native_id: native,
        registration: new_agent,
        id,
        content,
        body,
        order: signed_order,
    } = order;
    let name = claim::signed_order(home, &native, &id);
    if let Some(target) = draft.claim_target(name) {
        return repeat_answer(draft, home, &native, content, target);
    }
    let by = find_or_register_signer(draft, home, &native, new_agent, &signed_order)?;
    draft.original = Some(OriginalText { by, protocol: home, body });
    let job = match signed_order {
        SignedOrder::RequestJob(order) => Some(request::open_request(draft, by, &id, *order)?),
        SignedOrder::Offer(order) => Some(offer::make_signed_offer(draft, by, &id, order)?),
        SignedOrder::Accept(order) => Some(offer::accept_signed_offer(draft, by, order)?),
        SignedOrder::Result(order) => {
            Some(signed_result::submit_result(draft, by, order, content)?)
        }
        SignedOrder::Fail(order) => Some(signed_result::abandon_job(draft, by, order)?),
        SignedOrder::SendMessage { to } => {
            message::forward(draft, to)?;
            None
        }
        SignedOrder::UpdateProfile(profile) => {
            // A profile has no recipient, so notices that follow from it do not carry its text.
            draft.original = None;
            registration::update_profile(draft, by, *profile)?;
            None
        }
        SignedOrder::RecordOnly => None,
    };
    let (job, state) = (job.as_ref().map(|job| job.id), job.as_ref().map(|job: &Job| job.state));
    draft.add_claim(name, ClaimTarget::SignedOrder { content, job, state });
    Ok(Answer::SignedOrder { by, job, state, repeated: false })
}

/// The first answer again, if the content is the same.
fn repeat_answer(
    draft: &Draft<'_>,
    home: Protocol,
    native: &str,
    content: Digest,
    target: ClaimTarget,
) -> Result<Answer, Refusal> {
    let by = draft.world.agent_by_alias(home, native).ok_or(Refusal::NotAuthenticated)?;
    match target {
        ClaimTarget::SignedOrder { content: first, job, state } if first == content => {
            Ok(Answer::SignedOrder { by, job, state, repeated: true })
        }
        _ => Err(Refusal::SameIdOtherContent),
    }
}

/// The signer's agent. An unknown signer is registered.
fn find_or_register_signer(
    draft: &mut Draft<'_>,
    home: Protocol,
    native: &str,
    new_agent: Option<Box<Registration>>,
    signed_order: &SignedOrder,
) -> Result<AgentId, Refusal> {
    let Some(id) = draft.world.agent_by_alias(home, native) else {
        let order = new_agent.ok_or(Refusal::NotAuthenticated)?;
        return registration::register_on_first_order(draft, &order);
    };
    let agent = draft.agent(id).filter(|agent| agent.home == home);
    let agent = agent.ok_or(Refusal::NotAuthenticated)?;
    // An unregistered agent returns only by updating its profile.
    if !agent.active && !matches!(signed_order, SignedOrder::UpdateProfile(_)) {
        return Err(Refusal::NotAuthenticated);
    }
    suspension::ensure_not_suspended(draft, id)?;
    Ok(id)
}
