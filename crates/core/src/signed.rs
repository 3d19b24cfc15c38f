//! Signed orders: each is executed at most once, and the first accepted one registers its signer.
//!
//! Where agents sign what they say, there is nothing to register first: the key is the agent. The
//! first order of a key that is accepted enrols it, in the same step; one that is refused leaves
//! nothing behind, so it may be given again.

#[cfg(test)]
mod tests;

use uuid::Uuid;

use crate::agent::Skill;
use crate::agent::enrol;
use crate::agent::presence::Stance;
use crate::agent::suspension;
use crate::alias::{Digest, Protocol, Target, claim};
use crate::answer::Answer;
use crate::command::{Enrol, Unfit};
use crate::draft::{Draft, Said};
use crate::grain::Grain;
use crate::id::AgentId;
use crate::job::{Cause, Job, ask, offer, reply};
use crate::message;
use crate::money::Credits;
use crate::refusal::Refusal;
use crate::time::Millis;

/// An order and who signed it.
#[derive(Clone, Debug)]
pub struct Signed {
    pub home: Protocol,
    /// The signer's name there.
    pub native: String,
    /// How to enrol the signer, unless it was known when the order came in.
    pub newcomer: Option<Box<Enrol>>,
    /// The signer's own name for the order, never used twice.
    pub id: String,
    /// Of what was signed and for whom, to tell a repeat from a second order.
    pub content: Digest,
    /// The order as it came, for readers of the same protocol.
    pub body: String,
    pub deed: Deed,
}

/// What is ordered.
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
    /// Nothing but to be remembered.
    Nothing,
}

/// Ask for work.
#[derive(Clone, Debug)]
pub struct Ask {
    pub uuid: Uuid,
    pub skill: String,
    pub input: String,
    pub to: Whom,
    pub budget: Option<Credits>,
    /// How finely the requester counts.
    pub grain: Grain,
    /// Who could not use the input, and why.
    pub unfit: Vec<Unfit>,
    /// The budget is in something that cannot be paid with.
    pub other_currency: bool,
    /// How long it may take, from when the order is taken.
    pub timeout: Millis,
    pub meta: String,
    /// Whether the signed bytes name this hub or the worker. Only then is money held for it.
    pub is_bound: bool,
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    Agent(AgentId),
    /// The best of those who offer the skill.
    Best {
        max: usize,
    },
}

/// A job or an offer by the name one of its parties gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub id: String,
    /// The other party, if it was said.
    pub with: Option<AgentId>,
}

/// Name a price.
#[derive(Clone, Debug)]
pub struct MakeOffer {
    pub request: Named,
    pub price: Credits,
    pub valid_for: Millis,
    pub eta: Millis,
}

/// Take somebody's price.
#[derive(Clone, Debug)]
pub struct TakeOffer {
    pub offer: Named,
    pub payment_proof: Option<String>,
    pub binding: Binding,
}

/// What shows that an order to pay was given for this hub. Another hub may know the same keys, and
/// whoever sees a signed order can post it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// The signed bytes name this hub or the payee.
    Named,
    /// They name neither. The signer has read its inbox here up to this position.
    ReadTo(u64),
}

/// Hand over what was made, or a part of it.
#[derive(Clone, Debug)]
pub struct GiveResult {
    pub request: Named,
    /// JSON text.
    pub output: String,
    pub last: bool,
}

/// Say that nothing comes of a job, as either party.
#[derive(Clone, Debug)]
pub struct GiveUp {
    pub request: Named,
    pub cause: Cause,
    /// It was never begun, so nobody is to blame.
    pub refused: bool,
    pub text: String,
}

/// What a signer says about itself; what it leaves out stays as it was.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub name: Option<String>,
    pub skills: Option<Vec<Skill>>,
    pub endpoint: Option<String>,
    pub stance: Option<Stance>,
}

/// Takes an order, or tells again how it was taken.
pub fn take(draft: &mut Draft<'_>, order: Signed) -> Result<Answer, Refusal> {
    let Signed { home, native, newcomer, id, content, body, deed } = order;
    let name = claim::signed(home, &native, &id);
    if let Some(target) = draft.claimed(name) {
        return again(draft, home, &native, content, target);
    }
    let by = signer(draft, home, &native, newcomer, &deed)?;
    draft.said = Some(Said { by, words: home, body });
    let job = match deed {
        Deed::Ask(order) => Some(ask::ask(draft, by, &id, *order)?),
        Deed::Offer(order) => Some(offer::propose(draft, by, &id, order)?),
        Deed::Accept(order) => Some(offer::take(draft, by, order)?),
        Deed::Result(order) => Some(reply::result(draft, by, order, content)?),
        Deed::Fail(order) => Some(reply::give_up(draft, by, order)?),
        Deed::Write { to } => {
            message::pass_on(draft, to)?;
            None
        }
        Deed::Introduce(profile) => {
            // A profile has no recipient, so notices that follow from it do not carry its text.
            draft.said = None;
            enrol::amend(draft, by, *profile)?;
            None
        }
        Deed::Nothing => None,
    };
    let (job, state) = (job.as_ref().map(|job| job.id), job.as_ref().map(|job: &Job| job.state));
    draft.claim(name, Target::Heard { content, job, state });
    Ok(Answer::Heard { by, job, state, repeated: false })
}

/// The first answer again, when the same was said.
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

/// The signer's agent; one that is not known yet is enrolled.
fn signer(
    draft: &mut Draft<'_>,
    home: Protocol,
    native: &str,
    newcomer: Option<Box<Enrol>>,
    deed: &Deed,
) -> Result<AgentId, Refusal> {
    let Some(id) = draft.world.agent_named(home, native) else {
        let order = newcomer.ok_or(Refusal::NotAuthenticated)?;
        return enrol::arrive(draft, &order);
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
