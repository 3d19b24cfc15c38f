//! Compares two worlds that must look the same to readers.

use rialto_core::agent::Desk;
use rialto_core::agent::presence::Presence;
use rialto_core::changes::Changes;
use rialto_core::message::inbox::Mailbox;
use rialto_core::world::World;

/// Panics unless readers of the hub see exactly what was just committed.
pub fn has_what_was_committed(shown: &World, model: &World, changes: &Changes) {
    assert_eq!(shown.next, model.next, "counters");
    for id in changes.agents.keys().chain(changes.desks.keys()) {
        assert_eq!(shown.agent(*id), model.agent(*id), "an agent");
        assert_eq!(shown.desk(*id), model.desk(*id), "an agent state");
    }
    for id in changes.mailboxes.keys() {
        assert_eq!(shown.mailbox(*id), model.mailbox(*id), "an inbox");
    }
    for id in changes.owners.keys() {
        assert_eq!(shown.owner(*id), model.owner(*id), "an account");
    }
    for id in changes.jobs.keys() {
        assert_eq!(shown.job(*id), model.job(*id), "a job");
    }
    for id in changes.pushes.keys() {
        assert_eq!(shown.push(*id), model.push(*id), "a delivery");
    }
    assert_eq!(shown.next_timer(), model.next_timer(), "the next timer");
    assert_eq!(shown.next_push(), model.next_push(), "the next delivery");
    let online = (shown.online_count(), shown.next_offline());
    assert_eq!(online, (model.online_count(), model.next_offline()), "who is online");
}

/// Panics unless readers of the hub see exactly what the model has committed.
pub fn is_what_is_committed(shown: &World, model: &World) {
    assert_eq!(shown.next, model.next, "counters");
    rows(shown, model, |one, other| one == other);
    for agent in model.agents() {
        assert_eq!(shown.mailbox(agent.id), model.mailbox(agent.id), "an inbox");
    }
    let online = (shown.online_count(), shown.next_offline());
    assert_eq!(online, (model.online_count(), model.next_offline()), "who is online");
    assert_eq!(shown.footprint(), model.footprint(), "memory that rows take");
    assert!(shown.memories().eq(model.memories()), "saved answers");
}

/// Panics unless a restarted hub has the same state as before. Last-seen times that were not
/// written may be lost, and so may positions that were presented and not acknowledged.
pub fn is_remembered(before: &World, after: &World) {
    assert_eq!(after.next, before.next, "counters");
    rows(before, after, |old, new| {
        let Presence { seen, unreachable, .. } = new.presence;
        let presence = Presence { seen, unreachable, ..old.presence };
        Desk { presence, ..old.clone() } == *new
    });
    for agent in before.agents() {
        let (old, new) = (before.mailbox(agent.id), after.mailbox(agent.id));
        let Mailbox { presented, messages_waiting, work_waiting, .. } = new;
        let known = Mailbox { presented, messages_waiting, work_waiting, ..old };
        assert_eq!(known, new, "an inbox");
        assert!(presented <= old.presented, "presented, but was not");
        assert!(messages_waiting >= old.messages_waiting, "a waiting message was lost");
        let seen = |world: &World| world.desk(agent.id).map(|desk| desk.presence.seen);
        assert!(seen(after) <= seen(before), "seen, but was not");
    }
    assert_eq!(after.next_push(), before.next_push(), "the next delivery");
}

fn rows(one: &World, other: &World, same: impl Fn(&Desk, &Desk) -> bool) {
    assert_eq!(one.agents().len(), other.agents().len(), "how many agents");
    for agent in other.agents() {
        assert_eq!(one.agent(agent.id), Some(agent), "an agent");
        let desks = one.desk(agent.id).zip(other.desk(agent.id));
        assert!(desks.is_some_and(|(one, other)| same(one, other)), "{desks:?} differ");
        let name = other.name_of(agent.id, agent.home);
        assert_eq!(one.name_of(agent.id, agent.home), name, "a name");
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
    assert!(one.queue().map(|job| job.id).eq(other.queue().map(|job| job.id)), "the queue");
    assert_eq!(one.next_timer(), other.next_timer(), "the next timer");
    assert_eq!(one.pushes().count(), other.pushes().count(), "how many deliveries");
    for push in other.pushes() {
        assert_eq!(one.push(push.notice), Some(push), "a delivery");
    }
}
