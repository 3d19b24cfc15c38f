//! Registration: registering, updating and unregistering an agent, and its keys.

use std::sync::Arc;

use super::key::{Holder, Key, KeyHash};
use super::{Agent, AgentState, Liveness, presence, probation, status, suspension};
use crate::alias::{Digest, Protocol};
use crate::answer::Answer;
use crate::command::{Actor, ProfileUpdate, Registration, UpdateCard};
use crate::draft::Draft;
use crate::event::Event;
use crate::id::{AgentId, OwnerId};
use crate::job::{acceptance, end, open};
use crate::ledger::accounts;
use crate::owner::Owner;
use crate::refusal::Refusal;
use crate::time::Millis;

/// How long the old key stays valid after a rotation, so that a running agent can switch over.
pub const OLD_KEY_TTL: Millis = Millis::minutes(10);

/// Registers a new agent or updates a registered one.
pub fn register(draft: &mut Draft<'_>, order: Registration) -> Result<Answer, Refusal> {
    let known = draft.world.agent_by_alias(order.home, &order.native_id);
    let returned = known.and_then(|id| draft.agent(id)).is_some_and(|agent| !agent.active);
    let old_card = known.and_then(|id| draft.full_agent(id)).map(|agent| agent.card.clone());
    let (id, new) = match known {
        Some(id) => (update(draft, &order, id)?, false),
        None => (create(draft, &order)?, true),
    };
    // An agent that registers as unavailable must not be assigned work before its status is known.
    match order.status {
        Some(told) => status::update_status(draft, id, told)?,
        // The protocol of an agent that it calls has fetched the card.
        None if old_card.is_some_and(|card| card != order.card) => {
            presence::record_reached(draft, id)
        }
        None => presence::record_activity(draft, id),
    }
    if let Some(hash) = order.key.filter(|_| new || order.rotate_key) {
        issue_key(draft, Holder::Agent(id), hash, !new);
    }
    open::dispatch_queue(draft);
    Ok(answer(draft, id, new, returned))
}

fn create(draft: &mut Draft<'_>, order: &Registration) -> Result<AgentId, Refusal> {
    let owner = match draft.owner_by_name(&order.owner) {
        Some(Owner::ISSUANCE) => return Err(Refusal::OwnerTaken),
        Some(owner) if has_had_agents(draft, owner) && !may_act_for(draft, order.actor, owner) => {
            return Err(Refusal::OwnerTaken);
        }
        _ => accounts::open_with_welcome_grant(draft, &order.owner)?.0,
    };
    if draft.owner(owner).is_some_and(|owner| owner.suspended) && order.actor != Actor::Operator {
        return Err(Refusal::Suspended);
    }
    let max = draft.world.rules.agents_per_owner_max;
    if draft.world.agent_count(owner) >= max {
        return Err(Refusal::TooManyAgents { max });
    }
    let aliases = order.aliases.iter().map(|(protocol, name)| (*protocol, name.as_str()));
    let names = std::iter::once((order.home, order.native_id.as_str())).chain(aliases);
    if names.clone().any(|(protocol, name)| draft.world.agent_by_alias(protocol, name).is_some()) {
        return Err(Refusal::IdTaken);
    }
    // Ids of the same owner may be confusable with each other.
    let like =
        draft.world.confusable_agent(order.home, &order.native_id).and_then(|id| draft.agent(id));
    if like.is_some_and(|like| like.owner != owner) {
        return Err(Refusal::NameConfusable);
    }
    let id = draft.next.agent;
    draft.next.agent = id.next();
    for (protocol, name) in names {
        draft.add_alias(protocol, name.to_owned(), id);
    }
    let probation = probation::deadline_for(draft, order.actor);
    draft.put_agent(Agent { probation, ..profile(order, id, owner, draft.now) });
    draft.add_event(Event::AgentRegistered { agent: id, owner });
    Ok(id)
}

fn update(draft: &mut Draft<'_>, order: &Registration, id: AgentId) -> Result<AgentId, Refusal> {
    let old = draft.agent(id).cloned().ok_or(Refusal::NoSuchAgent)?;
    // An alias the hub gave to an agent of another protocol cannot be registered.
    if old.home != order.home || old.native_id != order.native_id {
        return Err(Refusal::IdTaken);
    }
    match order.actor {
        // Whether it is the same owner is checked below.
        Actor::Operator | Actor::OpenRegistration | Actor::Owner => {}
        Actor::Anonymous => return Err(Refusal::IdTaken),
        Actor::Agent(by) if by == id => {}
        // After unregistering, only the id's own former key brings it back.
        Actor::Agent(_) if old.active && may_act_for(draft, order.actor, old.owner) => {}
        Actor::Agent(_) => return Err(Refusal::NotAuthenticated),
    }
    if draft.owner(old.owner).is_none_or(|owner| owner.name != order.owner) {
        return Err(Refusal::IdentityMismatch);
    }
    if order.actor != Actor::Operator {
        suspension::ensure_not_suspended(draft, id)?;
    }
    let agent = profile(order, id, old.owner, old.registered_at);
    let came_as = changed_original_name(&old, &agent);
    let changed_at = if is_same_profile(&old, &agent) { old.changed_at } else { Some(draft.now) };
    let Agent { suspended, secret_generation, old_secrets, blocked, .. } = old;
    let kept = Agent {
        changed_at,
        suspended,
        secret_generation,
        old_secrets,
        blocked,
        original_name: came_as,
        ..agent
    };
    draft.put_agent(kept);
    draft.add_event(Event::AgentUpdated { agent: id });
    Ok(id)
}

fn profile(
    order: &Registration,
    id: AgentId,
    owner: OwnerId,
    registered_at: crate::time::Timestamp,
) -> Agent {
    Agent {
        id,
        owner,
        home: order.home,
        native_id: order.native_id.clone(),
        name: order.name.clone(),
        original_name: None,
        endpoint: order.endpoint.clone(),
        liveness: order.liveness,
        skills: order.skills.clone(),
        terms: order.terms,
        card: order.card.clone(),
        registered_at,
        changed_at: None,
        probation: None,
        active: true,
        suspended: false,
        secret_generation: 1,
        old_secrets: Vec::new(),
        blocked: Vec::new(),
    }
}

/// Whether a registration repeats what others see of an agent.
fn is_same_profile(old: &Agent, new: &Agent) -> bool {
    let shown = |agent: &Agent| {
        let Agent { active, terms, liveness, .. } = *agent;
        (active, terms, liveness)
    };
    shown(old) == shown(new)
        && old.name == new.name
        && old.skills == new.skills
        && old.endpoint == new.endpoint
        && old.card == new.card
}

/// The name an agent first registered with, if its current name differs.
fn changed_original_name(old: &Agent, new: &Agent) -> Option<String> {
    let first = old.original_name();
    (first != new.name).then(|| first.to_owned())
}

/// Registers the signer of a first order.
pub fn register_on_first_order(
    draft: &mut Draft<'_>,
    order: &Registration,
) -> Result<AgentId, Refusal> {
    let id = create(draft, order)?;
    presence::record_activity(draft, id);
    if !order.skills.is_empty() {
        open::dispatch_queue(draft);
    }
    Ok(id)
}

/// Updates an agent's profile, and registers it again if it had left.
pub fn update_profile(
    draft: &mut Draft<'_>,
    id: AgentId,
    profile: ProfileUpdate,
) -> Result<(), Refusal> {
    let old = draft.full_agent(id).cloned().ok_or(Refusal::NoSuchAgent)?;
    let mut agent = old.clone();
    agent.active = true;
    if let Some(name) = profile.name {
        agent.name = name;
        agent.original_name = changed_original_name(&old, &agent);
    }
    if let Some(mut skills) = profile.skills {
        // An agent is in the index once per skill, so the first price named counts.
        let mut known = std::collections::BTreeSet::new();
        skills.retain(|skill| known.insert(skill.name.clone()));
        agent.skills = skills;
    }
    if let Some(endpoint) = profile.endpoint {
        agent.endpoint = Some(endpoint);
        agent.liveness = Liveness::ByEndpoint;
    }
    // Before the activity is recorded: waiting jobs are assigned at the current price.
    let changed = agent != old;
    if changed {
        draft.put_agent(Agent { changed_at: Some(draft.now), ..agent });
        draft.add_event(Event::AgentUpdated { agent: id });
    }
    let mut returns = false;
    if let Some(availability) = profile.availability {
        let presence = &mut draft.agent_state_mut(id).presence;
        let before = std::mem::replace(&mut presence.availability, availability);
        presence.until = None;
        returns = availability.accepts_work() && !before.accepts_work();
    }
    presence::record_activity(draft, id);
    if returns {
        acceptance::retry_deferred_jobs_of(draft, id)?;
    }
    // An agent that can do more than before, or is available again, may fit a queued job.
    match (changed, returns) {
        (true, _) => open::dispatch_queue(draft),
        (false, true) => open::dispatch_ready_queue(draft),
        (false, false) => {}
    }
    Ok(())
}

/// Adds aliases in protocols that were introduced after the agent registered. An alias it has
/// stays.
pub fn add_aliases(
    draft: &mut Draft<'_>,
    id: AgentId,
    aliases: Vec<(Protocol, String)>,
) -> Result<Answer, Refusal> {
    draft.agent(id).ok_or(Refusal::NoSuchAgent)?;
    for (protocol, name) in aliases {
        let free = draft.world.agent_by_alias(protocol, &name).is_none();
        if free && draft.world.alias_of(id, protocol).is_none() {
            draft.add_alias(protocol, name, id);
        }
    }
    Ok(Answer::Done)
}

/// Whether an owner has ever had an agent. An account that was only granted or paid credits belongs
/// to the first agent that registers under its name.
fn has_had_agents(draft: &Draft<'_>, owner: OwnerId) -> bool {
    draft.world.agent_count(owner) > 0
}

/// Whether the caller may add agents to an existing owner.
fn may_act_for(draft: &Draft<'_>, actor: Actor, owner: OwnerId) -> bool {
    match actor {
        Actor::Operator | Actor::OpenRegistration | Actor::Owner => true,
        Actor::Anonymous => false,
        Actor::Agent(by) => draft.agent(by).is_some_and(|by| by.active && by.owner == owner),
    }
}

/// Adds a key. With `retire_others`, the holder's other keys expire.
pub fn issue_key(draft: &mut Draft<'_>, holder: Holder, hash: KeyHash, retire_others: bool) {
    match holder {
        Holder::Agent(agent) => {
            if retire_others {
                expire_keys(draft, agent, OLD_KEY_TTL);
            }
            draft.add_event(Event::KeyIssued { agent });
        }
        Holder::Operator => {
            // When another operator key is set, the old one stops at once.
            let now = draft.now;
            let old: Vec<Arc<Key>> = draft.world.operator_keys().cloned().collect();
            for key in old.iter().filter(|key| retire_others && key.is_valid(now)) {
                draft.put_key(Key { valid_until: Some(now), ..Key::clone(key) });
            }
            draft.add_event(Event::OperatorKeyIssued);
        }
    }
    let id = draft.next.key;
    draft.next.key = id.next();
    draft.put_key(Key { id, hash, holder, valid_until: None });
}

/// Expires all keys of an agent, at once or after `lives`. A key that expires sooner stays as it
/// is.
pub fn expire_keys(draft: &mut Draft<'_>, agent: AgentId, lives: Millis) {
    let until = draft.now.plus(lives);
    let keys: Vec<Arc<Key>> = draft.world.keys_of(agent).cloned().collect();
    for key in keys {
        if key.valid_until.is_none_or(|old| old > until) {
            draft.put_key(Key { valid_until: Some(until), ..Key::clone(&key) });
        }
    }
}

/// Unregisters an agent. Its id stays reserved; its jobs fail and are refunded.
pub fn remove(draft: &mut Draft<'_>, id: AgentId, by_operator: bool) -> Result<Answer, Refusal> {
    let agent = draft.agent(id).filter(|agent| agent.active).ok_or(Refusal::NotFound)?.clone();
    draft.put_agent(Agent { active: false, ..agent });
    draft.add_event(Event::AgentRemoved { agent: id, by_operator });
    // Status and claimed reputation are kept only for registered agents.
    if draft.agent_state(id).is_some_and(|agent_state| {
        agent_state.status.is_some() || agent_state.claimed_reputation.is_some()
    }) {
        let agent_state = draft.agent_state_mut(id);
        (agent_state.status, agent_state.claimed_reputation) = (None, None);
    }
    end::handle_worker_left(draft, id)?;
    end::handle_requester_left(draft, id)?;
    Ok(Answer::Done)
}

/// The agent after this command.
pub fn agent_answer(draft: &Draft<'_>, id: AgentId) -> Answer {
    answer(draft, id, false, false)
}

fn answer(draft: &Draft<'_>, id: AgentId, new: bool, returned: bool) -> Answer {
    let agent = draft.agent(id).expect("the agent was just written").clone();
    let agent_state =
        draft.agent_state(id).cloned().unwrap_or_else(|| AgentState::new(id, draft.now));
    Answer::Agent { agent: Arc::new(agent), state: Arc::new(agent_state), new, returned }
}

/// Replaces what the agent's protocol keeps of it, if nothing else changed that since it was read.
pub fn update_card(draft: &mut Draft<'_>, order: UpdateCard) -> Result<Answer, Refusal> {
    let UpdateCard { agent: id, known, name, skills, card, is_changed, is_reached } = order;
    let old = draft.agent(id).filter(|agent| agent.active).cloned().ok_or(Refusal::NoSuchAgent)?;
    if Digest::of(&[old.card.as_bytes()]) != known {
        return Err(Refusal::SameIdOtherContent);
    }
    let offers_else = skills != old.skills;
    let is_changed = is_changed || offers_else || name != old.name;
    let changed_at = if is_changed { Some(draft.now) } else { old.changed_at };
    let mut agent = Agent { name, skills, card, changed_at, ..old.clone() };
    agent.original_name = changed_original_name(&old, &agent);
    draft.put_agent(agent);
    if is_changed {
        draft.add_event(Event::AgentUpdated { agent: id });
    }
    if is_reached {
        presence::record_reached(draft, id);
    }
    if offers_else {
        open::dispatch_queue(draft);
    }
    Ok(agent_answer(draft, id))
}
