//! A snapshot of a world: everything visible of it, as text that can be compared.

use rialto_core::id::AgentId;
use rialto_core::reputation::Score;
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_core::world::discover::Wanted;

use super::HOME;

/// What is visible of a world at a moment, one line for each thing, in order.
pub fn picture(world: &World, now: Timestamp) -> Vec<String> {
    let mut lines = vec![format!("next {:?}", world.next)];
    let mut owners: Vec<_> = world.owners().collect();
    owners.sort_by_key(|owner| owner.id);
    for owner in owners {
        let agents: Vec<AgentId> = world.agents_of(owner.id).collect();
        let named = world.owner_named(&owner.name) == Some(owner.id);
        lines.push(format!("{owner:?} named {named} has {agents:?}"));
    }
    let mut agents: Vec<_> = world.agents().collect();
    agents.sort_by_key(|agent| agent.id);
    let mut skills: Vec<String> = Vec::new();
    for agent in agents {
        skills.extend(agent.skills.iter().map(|skill| skill.name.clone()));
        let keys: Vec<_> = world.keys_of(agent.id).collect();
        let found = world.agent_named(HOME, &agent.native);
        let work: Vec<_> = world.work_of(agent.id).map(|job| job.id).collect();
        let asked: Vec<_> = world.asked_by(agent.id).map(|job| job.id).collect();
        lines.push(format!("{agent:?} {found:?} {:?}", world.name_of(agent.id, HOME)));
        lines.push(format!("{:?} {keys:?} {work:?} {asked:?}", world.desk(agent.id)));
        lines.push(format!("{:?}", world.mailbox(agent.id)));
        lines.push(format!("online {}", world.is_online(agent.id, now)));
    }
    let mut jobs: Vec<_> = world.live_jobs().collect();
    jobs.sort_by_key(|job| job.id);
    lines.extend(jobs.iter().map(|job| {
        let found = world.job_by_uuid(job.uuid).map(|job| job.id);
        format!("{job:?} {found:?}")
    }));
    lines.push(format!("queue {:?}", world.queue().map(|job| job.id).collect::<Vec<_>>()));
    lines.push(format!("timers {:?}", world.due(Timestamp::NEVER).collect::<Vec<_>>()));
    lines.push(format!("due {:?} silent {:?}", world.next_timer(), world.next_offline()));
    let mut pushes: Vec<_> = world.pushes().collect();
    pushes.sort_by_key(|push| push.notice);
    lines.push(format!("pushes {pushes:?} {:?}", world.next_push()));
    let memories: Vec<_> = world.memories().collect();
    lines.push(format!("memories {memories:?}"));
    skills.sort();
    skills.dedup();
    for skill in skills {
        let (min_score, max_price) = (Score::MIN, None);
        let wanted =
            Wanted { skill: &skill, min_score, max_price, min_jobs: 0, limit: 1_000, offset: 0 };
        let (found, turn) = (world.discover(&wanted, now), world.turn(&skill));
        lines.push(format!("{skill} {:?} {found:?} {turn:?}", world.skills.prices(&skill)));
    }
    lines.push(format!("online {}", world.online_count()));
    lines
}
