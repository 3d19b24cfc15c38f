//! Cards of agents with a server of their own are fetched again: at intervals, on request, and when
//! a call shows that something changed (R93).

use std::sync::Arc;

use rialto_core::agent::Agent;
use rialto_core::alias::Digest;
use rialto_core::answer::Answer;
use rialto_core::command::{Command, UpdateCard};
use rialto_core::id::AgentId;
use rialto_core::refusal::Refusal;
use rialto_engine::Failure;

use super::card_fetch::{self, FetchError, Terms};
use super::credentials::origin_of;
use super::{FetchProblem, RemoteAgent, agent_content, card_with, has_same_text};
use crate::a2a::A2aContext;

/// How often a card is written when it was changed meanwhile.
const ATTEMPTS_MAX: usize = 3;
/// The longest text of a problem that is kept, in characters.
const PROBLEM_MAX: usize = 512;

/// A card that was fetched again.
pub struct Refreshed {
    pub agent: Arc<Agent>,
    pub remote: RemoteAgent,
    /// Whether it has another content than before.
    pub is_changed: bool,
}

/// Why a card was not renewed.
#[derive(Debug)]
pub enum RefreshError {
    /// The agent has left, or has no server of its own any more.
    Gone,
    /// The old card stays.
    Unusable(String),
    Failed(Failure),
}

impl From<Failure> for RefreshError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(Refusal::NoSuchAgent) => Self::Gone,
            other => Self::Failed(other),
        }
    }
}

/// Fetches the card of an agent again. A card that cannot be used leaves the old one, and is kept as
/// a problem.
pub async fn refresh(context: &A2aContext, id: AgentId) -> Result<Refreshed, RefreshError> {
    let mut attempt = 1;
    loop {
        match try_refresh(context, id).await {
            Err(RefreshError::Failed(Failure::Refused(Refusal::SameIdOtherContent)))
                if attempt < ATTEMPTS_MAX =>
            {
                attempt += 1;
            }
            ended => return ended,
        }
    }
}

async fn try_refresh(context: &A2aContext, id: AgentId) -> Result<Refreshed, RefreshError> {
    let engine = &context.engine;
    let agent = engine.with_world(|world| world.agent(id).cloned()).ok_or(RefreshError::Gone)?;
    let known = RemoteAgent::of(&agent).ok_or(RefreshError::Gone)?;
    let fetched = card_fetch::fetch(context, &known.card_url).await.map_err(FetchError::into_text);
    let renewed = fetched.and_then(|fetched| {
        let sealed = known.auth.clone();
        let credentials =
            sealed.as_ref().and_then(|sealed| sealed.open(engine.hub_secret(), &agent.native_id));
        let terms = Terms {
            name: &agent.native_id,
            card_url: &known.card_url,
            asks: &known.asks,
            credentials: credentials.as_ref(),
            sealed,
        };
        let remote = card_fetch::remote_agent(context, &fetched, terms)?;
        let is_elsewhere = |origin: String| Some(origin) != origin_of(&remote.interface.url);
        if remote.auth.as_ref().is_some_and(|auth| is_elsewhere(auth.origin.clone())) {
            let text = "has an interface at another origin than the one that the credentials are \
                        for; register it again";
            return Err(text.to_owned());
        }
        Ok((fetched, remote))
    });
    match renewed {
        Ok((fetched, remote)) => {
            let content = agent_content(&fetched.card, &remote);
            let is_changed = !remote.has_same_card(&known)
                || content.skills != agent.skills
                || content.name != agent.name
                || !has_same_text(&content.card, &agent.card);
            let order = UpdateCard {
                agent: id,
                known: Digest::of(&[agent.card.as_bytes()]),
                name: content.name,
                skills: content.skills,
                card: content.card,
                is_changed,
                is_reached: true,
            };
            let agent = update(context, order).await?;
            Ok(Refreshed { agent, remote, is_changed })
        }
        Err(text) => {
            let text: String = text.chars().take(PROBLEM_MAX).collect();
            let problem = Some(FetchProblem { at: engine.now(), text: text.clone() });
            let remote = RemoteAgent { problem, ..known };
            let order = UpdateCard {
                agent: id,
                known: Digest::of(&[agent.card.as_bytes()]),
                name: agent.name.clone(),
                skills: agent.skills.clone(),
                card: card_with(&agent, &remote),
                is_changed: false,
                is_reached: false,
            };
            update(context, order).await?;
            Err(RefreshError::Unusable(text))
        }
    }
}

async fn update(context: &A2aContext, order: UpdateCard) -> Result<Arc<Agent>, RefreshError> {
    match context.engine.run(Command::UpdateCard(Box::new(order))).await? {
        Answer::Agent { agent, .. } => Ok(agent),
        _ => Err(RefreshError::Failed(Failure::Fault)),
    }
}
