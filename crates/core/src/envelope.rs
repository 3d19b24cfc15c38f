//! Envelopes: a command, and what proves its author. Both are plain data, so an envelope can travel
//! to the node that decides it (see `encoding`).
//!
//! In protocols whose agents sign their orders, there is no separate registration: the key is the
//! agent. A key's first accepted order registers it in the same command. A refused order changes
//! nothing, so it may be sent again. An accepted one is executed at most once.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::agent::key_limits::KeyUse;
use crate::agent::{registration, suspension};
use crate::alias::{ClaimTarget, Digest, Protocol, claim};
use crate::answer::Answer;
use crate::command::{Command, OfferTerms, Registration};
use crate::decide;
use crate::draft::{Draft, OriginalText};
use crate::id::AgentId;
use crate::idempotency::Idempotency;
use crate::refusal::Refusal;

/// A command on its way to be decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    pub proof: Proof,
    /// What makes the request repeatable, if its caller gave a key.
    pub idempotency: Option<Idempotency>,
    pub command: Command,
}

/// What proves the author of a command. The encoding counts the variants, so a new one is the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Proof {
    /// The credential of the author that the command names was checked before. Also for the hub's
    /// own commands.
    Credential,
    /// The author signed the command.
    Signature(Box<Signature>),
    /// The author signed the command for a market, which publishes the result.
    Market(Box<MarketSubmission>),
    /// The same as `Credential`, and the credential was this key. The limits of the key bind what
    /// the command spends.
    Key(KeyUse),
}

/// A signer and its order. The order is executed once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
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
}

/// An order to a market. It is executed once, and its result is published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarketSubmission {
    pub market: Protocol,
    /// Its unique id.
    pub id: String,
    /// How to register the requester of a job, if it is unknown.
    pub registration: Option<Box<Registration>>,
    /// How the market replies, in its own format.
    pub reply: String,
}

impl From<Command> for Envelope {
    fn from(command: Command) -> Self {
        Self { proof: Proof::Credential, idempotency: None, command }
    }
}

impl Envelope {
    /// A signed command.
    pub fn signed(signature: Signature, command: Command) -> Self {
        let proof = Proof::Signature(Box::new(signature));
        Self { proof, idempotency: None, command }
    }

    /// A command to a market.
    pub fn for_market(submission: MarketSubmission, command: Command) -> Self {
        Self { proof: Proof::Market(Box::new(submission)), idempotency: None, command }
    }
}

/// Executes a signed command, or returns its first answer.
pub fn execute_signed(
    draft: &mut Draft<'_>,
    signature: Signature,
    mut command: Command,
) -> Result<Answer, Refusal> {
    let name = claim::signed_order(signature.home, &signature.native_id, &signature.id);
    if let Some(target) = draft.claim_target(name) {
        return repeat_answer(draft, &signature, target);
    }
    // An unregistered agent returns only by updating its profile.
    let may_return = matches!(command, Command::UpdateProfile { .. });
    let by = find_or_register_signer(draft, &signature, may_return)?;
    if !complete(&mut command, by, &signature) {
        return Err(Refusal::NotAuthenticated);
    }
    let Signature { home, content, body, .. } = signature;
    draft.original = Some(OriginalText { by, protocol: home, body });
    let (job, state) = match decide::execute(draft, command)? {
        Answer::Job { job, .. } => (Some(job.id), Some(job.state)),
        _ => (None, None),
    };
    draft.add_claim(name, ClaimTarget::SignedOrder { content, job, state });
    Ok(Answer::SignedOrder { by, job, state, repeated: false })
}

/// Completes a command with what only its signature says: the author, the author's own id for it,
/// and the digest of its content. Returns false for a command that no agent can sign.
fn complete(command: &mut Command, signer: AgentId, signature: &Signature) -> bool {
    match command {
        Command::RequestJob(order) => (order.by, order.id) = (signer, signature.id.clone()),
        Command::Offer { by, terms: OfferTerms::Invited { name, .. }, .. } => {
            (*by, *name) = (signer, signature.id.clone());
        }
        Command::AcceptOffer(order) => order.by = signer,
        Command::ReportResult(report) => {
            (report.by, report.content) = (signer, signature.content);
        }
        Command::AbandonJob(order) => order.by = signer,
        Command::UpdateProfile { agent, .. } => *agent = signer,
        Command::Forward { .. } | Command::RecordOnly => {}
        _ => return false,
    }
    true
}

/// The first answer again, if the content is the same.
fn repeat_answer(
    draft: &Draft<'_>,
    signature: &Signature,
    target: ClaimTarget,
) -> Result<Answer, Refusal> {
    let signer = draft.world.agent_by_alias(signature.home, &signature.native_id);
    let by = signer.ok_or(Refusal::NotAuthenticated)?;
    match target {
        ClaimTarget::SignedOrder { content, job, state } if content == signature.content => {
            Ok(Answer::SignedOrder { by, job, state, repeated: true })
        }
        _ => Err(Refusal::SameIdOtherContent),
    }
}

/// The signer's agent. An unknown signer is registered.
fn find_or_register_signer(
    draft: &mut Draft<'_>,
    signature: &Signature,
    may_return: bool,
) -> Result<AgentId, Refusal> {
    let Some(id) = draft.world.agent_by_alias(signature.home, &signature.native_id) else {
        let order = signature.registration.as_ref().ok_or(Refusal::NotAuthenticated)?;
        return registration::register_on_first_order(draft, order);
    };
    let agent = draft.agent(id).filter(|agent| agent.home == signature.home);
    let agent = agent.ok_or(Refusal::NotAuthenticated)?;
    if !agent.active && !may_return {
        return Err(Refusal::NotAuthenticated);
    }
    suspension::ensure_not_suspended(draft, id)?;
    Ok(id)
}
