//! Compares two worlds that must look the same to readers.

use std::sync::Arc;

use rialto_core::agent::AgentState;
use rialto_core::agent::presence::Presence;
use rialto_core::changes::Changes;
use rialto_core::job::Job;
use rialto_core::message::inbox::Inbox;
use rialto_core::reputation::Score;
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_core::world::discover::DiscoveryQuery;

use crate::cast::SKILLS;

/// Panics unless readers of the hub see exactly what was just committed.
pub fn has_what_was_committed(shown: &World, model: &World, changes: &Changes) {
    has_the_changed_rows(shown, model, changes);
    for id in changes.jobs.keys() {
        assert_eq!(shown.job(*id), model.job(*id), "a job");
    }
    is_online_alike(shown, model);
}

/// Panics unless two worlds have the same rows where these changes are.
pub fn has_the_changed_rows(shown: &World, model: &World, changes: &Changes) {
    assert_eq!(shown.next, model.next, "counters");
    for id in changes.agents.keys().chain(changes.agent_states.keys()) {
        assert_eq!(shown.agent(*id), model.agent(*id), "an agent");
        assert_eq!(shown.agent_state(*id), model.agent_state(*id), "an agent state");
    }
    for id in changes.inboxes.keys() {
        assert_eq!(shown.inbox(*id), model.inbox(*id), "an inbox");
    }
    for id in changes.owners.keys() {
        assert_eq!(shown.owner(*id), model.owner(*id), "an account");
    }
    // A lane still has a job that has ended while it decides the next batch.
    let live = |job: &&Arc<Job>| !job.state.is_final();
    for id in changes.jobs.keys() {
        let jobs = (shown.job(*id).filter(live), model.job(*id).filter(live));
        assert_eq!(jobs.0, jobs.1, "a job");
    }
    for id in changes.deliveries.keys() {
        assert_eq!(shown.delivery(*id), model.delivery(*id), "a delivery");
    }
    assert_eq!(shown.next_timer_at(), model.next_timer_at(), "the next timer");
    assert_eq!(shown.next_delivery_at(), model.next_delivery_at(), "the next delivery");
}

/// Panics unless readers of the hub see exactly what the model has committed.
pub fn is_what_is_committed(shown: &World, model: &World) {
    has_the_rows(shown, model);
    is_online_alike(shown, model);
}

/// Panics unless two worlds have the same rows.
pub fn has_the_rows(shown: &World, model: &World) {
    assert_eq!(shown.next, model.next, "counters");
    rows(shown, model, |one, other| one == other);
    for agent in model.agents() {
        assert_eq!(shown.inbox(agent.id), model.inbox(agent.id), "an inbox");
    }
    assert_eq!(shown.footprint(), model.footprint(), "memory that rows take");
    assert!(shown.idempotency_entries().eq(model.idempotency_entries()), "saved answers");
}

/// Panics unless the same agents are online, in two worlds that were told the same time.
pub fn is_online_alike(shown: &World, model: &World) {
    let online = (shown.online_count(), shown.next_offline_at());
    assert_eq!(online, (model.online_count(), model.next_offline_at()), "who is online");
}

/// Panics unless a search finds the same agents, in two worlds that were told the same time.
pub fn is_found_alike(shown: &World, model: &World, now: Timestamp) {
    for skill in SKILLS {
        let query = DiscoveryQuery {
            skill,
            min_score: Score::MIN,
            max_price: None,
            min_jobs: 0,
            limit: 1_000,
            offset: 0,
        };
        let found = |world: &World| format!("{:?}", world.discover(&query, now));
        assert_eq!(found(shown), found(model), "agents with the skill {skill}");
        assert_eq!(shown.rotation(skill), model.rotation(skill), "whose turn it is for {skill}");
    }
}

/// Panics unless a restarted hub has the same state as before. Last-seen times that were not
/// written may be lost, and so may positions that were presented and not acknowledged.
pub fn is_remembered(before: &World, after: &World) {
    assert_eq!(after.next, before.next, "counters");
    rows(before, after, |old, new| {
        let Presence { last_seen: seen, unreachable, .. } = new.presence;
        let presence = Presence { last_seen: seen, unreachable, ..old.presence };
        AgentState { presence, ..old.clone() } == *new
    });
    for agent in before.agents() {
        let (old, new) = (before.inbox(agent.id), after.inbox(agent.id));
        let Inbox { presented, messages_waiting, work_waiting, .. } = new;
        let known = Inbox { presented, messages_waiting, work_waiting, ..old };
        assert_eq!(known, new, "an inbox");
        assert!(presented <= old.presented, "presented, but was not");
        assert!(messages_waiting >= old.messages_waiting, "a waiting message was lost");
        let seen = |world: &World| {
            world.agent_state(agent.id).map(|agent_state| agent_state.presence.last_seen)
        };
        assert!(seen(after) <= seen(before), "seen, but was not");
    }
    assert_eq!(after.next_delivery_at(), before.next_delivery_at(), "the next delivery");
}

fn rows(one: &World, other: &World, same: impl Fn(&AgentState, &AgentState) -> bool) {
    assert_eq!(one.agents().len(), other.agents().len(), "how many agents");
    for agent in other.agents() {
        assert_eq!(one.agent(agent.id), Some(agent), "an agent");
        let agent_states = one.agent_state(agent.id).zip(other.agent_state(agent.id));
        assert!(
            agent_states.is_some_and(|(one, other)| same(one, other)),
            "{agent_states:?} differ"
        );
        let name = other.alias_of(agent.id, agent.home);
        assert_eq!(one.alias_of(agent.id, agent.home), name, "a name");
        assert!(one.keys_of(agent.id).eq(other.keys_of(agent.id)), "keys");
    }
    assert_eq!(one.owners().count(), other.owners().count(), "how many owners");
    for owner in other.owners() {
        assert_eq!(one.owner(owner.id), Some(owner), "an account");
    }
    assert_eq!(one.live_jobs().count(), other.live_jobs().count(), "how many jobs");
    for job in other.live_jobs() {
        assert_eq!(one.job(job.id), Some(job), "a job");
    }
    assert!(
        one.queued_jobs().map(|job| job.id).eq(other.queued_jobs().map(|job| job.id)),
        "the queue"
    );
    assert_eq!(one.next_timer_at(), other.next_timer_at(), "the next timer");
    assert_eq!(one.deliveries().count(), other.deliveries().count(), "how many deliveries");
    for push in other.deliveries() {
        assert_eq!(one.delivery(push.notice), Some(push), "a delivery");
    }
}
