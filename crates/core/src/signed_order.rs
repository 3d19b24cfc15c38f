//! Signed orders: each is executed at most once, and the first accepted one registers its signer.
//!
//! In protocols whose agents sign their orders, there is no separate registration: the key is the
//! agent. A key's first accepted order registers it in the same command. A refused order changes
//! nothing, so it may be sent again.

#[cfg(test)]
mod tests;

use uuid::Uuid;

use crate::agent::Skill;
use crate::agent::registration;
use crate::agent::presence::Stance;
use crate::agent::suspension;
use crate::alias::{Digest, Protocol, Target, claim};
use crate::answer::Answer;
use crate::command::{Enrol, Unfit};
use crate::draft::{Draft, Said};
use crate::price_step::Grain;
use crate::id::AgentId;
use crate::job::{Cause, Job, request, offer, signed_result};
use crate::message;
use crate::money::Credits;
use crate::refusal::Refusal;
use crate::time::Millis;

/// An order and its signer.
#[derive(Clone, Debug)]
pub struct Signed {
    pub home: Protocol,
    /// The signer's native id in that protocol.
    pub native: String,
    /// How to register the signer, unless it was registered when the order came in.
    pub newcomer: Option<Box<Enrol>>,
    /// The signer's own id for the order, never used twice.
    pub id: String,
    /// Digest of the signed content and its receiver, to tell a repeat from a second order.
    pub content: Digest,
    /// The order as received, for readers of the same protocol.
    pub body: String,
    pub deed: Deed,
}

/// What an order asks for.
#[derive(Clone, Debug)]
pub enum Deed {
    Ask(Box<Ask>),
    Offer(MakeOffer),
    Accept(TakeOffer),
    Result(GiveResult),
    Fail(GiveUp),
    Write {
        to: AgentId,
    },
    Introduce(Box<Profile>),
    /// Only records the order.
    Nothing,
}

/// Requests work.
#[derive(Clone, Debug)]
pub struct Ask {
    pub uuid: Uuid,
    pub skill: String,
    pub input: String,
    pub to: Whom,
    pub budget: Option<Credits>,
    /// The price step of the requester's protocol.
    pub grain: Grain,
    /// Agents that cannot use the input, and why.
    pub unfit: Vec<Unfit>,
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
pub enum Whom {
    Agent(AgentId),
    /// The best agents that offer the skill.
    Best {
        max: usize,
    },
}

/// A job or an offer by the id one of its parties gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub id: String,
    /// The other party, if given.
    pub with: Option<AgentId>,
}

/// Makes an offer.
#[derive(Clone, Debug)]
pub struct MakeOffer {
    pub request: Named,
    pub price: Credits,
    pub valid_for: Millis,
    pub eta: Millis,
}

/// Accepts an agent's offer.
#[derive(Clone, Debug)]
pub struct TakeOffer {
    pub offer: Named,
    pub payment_proof: Option<String>,
    pub binding: Binding,
}

/// What shows that an order to pay was meant for this hub. Another hub may know the same keys, and
/// anyone who sees a signed order can submit it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// The signed bytes name this hub or the payee.
    Named,
    /// They name neither. The signer has read its inbox here up to this position.
    ReadTo(u64),
}

/// Sends a result, or a part of it.
#[derive(Clone, Debug)]
pub struct GiveResult {
    pub request: Named,
    /// JSON text.
    pub output: String,
    pub last: bool,
}

/// Ends a job without a result, as either party.
#[derive(Clone, Debug)]
pub struct GiveUp {
    pub request: Named,
    pub cause: Cause,
    /// The job was never started, so it counts as no one's failure.
    pub refused: bool,
    pub text: String,
}

/// What a signer reports about itself. Omitted fields stay as they were.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub name: Option<String>,
    pub skills: Option<Vec<Skill>>,
    pub endpoint: Option<String>,
    pub stance: Option<Stance>,
}

/// Executes an order, or returns its first answer.
pub fn take(draft: &mut Draft<'_>, order: Signed) -> Result<Answer, Refusal> {
    let Signed { home, native, newcomer, id, content, body, deed } = order;
    let name = claim::signed(home, &native, &id);
    if let Some(target) = draft.claimed(name) {
        return again(draft, home, &native, content, target);
    }
    let by = signer(draft, home, &native, newcomer, &deed)?;
    draft.said = Some(Said { by, words: home, body });
    let job = match deed {
        Deed::Ask(order) => Some(request::ask(draft, by, &id, *order)?),
        Deed::Offer(order) => Some(offer::propose(draft, by, &id, order)?),
        Deed::Accept(order) => Some(offer::take(draft, by, order)?),
        Deed::Result(order) => Some(signed_result::result(draft, by, order, content)?),
        Deed::Fail(order) => Some(signed_result::give_up(draft, by, order)?),
        Deed::Write { to } => {
            message::pass_on(draft, to)?;
            None
        }
        Deed::Introduce(profile) => {
            // A profile has no recipient, so notices that follow from it do not carry its text.
            draft.said = None;
            registration::amend(draft, by, *profile)?;
            None
        }
        Deed::Nothing => None,
    };
    let (job, state) = (job.as_ref().map(|job| job.id), job.as_ref().map(|job: &Job| job.state));
    draft.claim(name, Target::Heard { content, job, state });
    Ok(Answer::Heard { by, job, state, repeated: false })
}

/// The first answer again, if the content is the same.
fn again(
    draft: &Draft<'_>,
    home: Protocol,
    native: &str,
    content: Digest,
    target: Target,
) -> Result<Answer, Refusal> {
    let by = draft.world.agent_named(home, native).ok_or(Refusal::NotAuthenticated)?;
    match target {
        Target::Heard { content: first, job, state } if first == content => {
            Ok(Answer::Heard { by, job, state, repeated: true })
        }
        _ => Err(Refusal::SameIdOtherContent),
    }
}

/// The signer's agent. An unknown signer is registered.
fn signer(
    draft: &mut Draft<'_>,
    home: Protocol,
    native: &str,
    newcomer: Option<Box<Enrol>>,
    deed: &Deed,
) -> Result<AgentId, Refusal> {
    let Some(id) = draft.world.agent_named(home, native) else {
        let order = newcomer.ok_or(Refusal::NotAuthenticated)?;
        return registration::arrive(draft, &order);
    };
    let agent = draft.agent(id).filter(|agent| agent.home == home);
    let agent = agent.ok_or(Refusal::NotAuthenticated)?;
    // An unregistered agent returns only by updating its profile.
    if !agent.active && !matches!(deed, Deed::Introduce(_)) {
        return Err(Refusal::NotAuthenticated);
    }
    suspension::refuse(draft, id)?;
    Ok(id)
}
