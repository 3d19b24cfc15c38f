//! The strategies by their definitions: all candidates are listed, and one is picked. Every choice
//! of every test is compared with these.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::{Search, Selection, blocks, candidates, price_limit};
use crate::agent::Agent;
use crate::draft::Draft;
use crate::id::{AgentId, OwnerId};
use crate::job::readiness::{self, Readiness};
use crate::job::{Job, select};
use crate::world::skills::Candidate;
use crate::world::sorted_merge::visits;

/// Checks that the index gives the candidates and the choice that the definitions give.
pub fn check(draft: &Draft<'_>, job: &Job, ready: Readiness) {
    let all = all_candidates(draft, job, ready);
    assert_eq!(candidates(draft, job, ready).collect::<Vec<_>>(), all, "{job:?}");
    let search = Search { draft, job, ready, limit: price_limit(job) };
    match job.selection {
        Selection::Cheapest => assert_eq!(search.cheapest(), cheapest(draft, job, all), "{job:?}"),
        Selection::LeastOccupied => {
            let least =
                all.into_iter().min_by_key(|one| (assigned_job_count(draft, one.agent), one.agent));
            assert_eq!(search.least_occupied(), least, "{job:?}");
        }
        Selection::RoundRobin => {
            assert_eq!(search.next_in_rotation(), round_robin(draft, job, all), "{job:?}");
        }
        _ => {}
    }
    // Tests count what the choice itself reads.
    visits::take();
}

/// The possible workers, in discovery order: those the index lists as online, then those it does
/// not list.
fn all_candidates(draft: &Draft<'_>, job: &Job, ready: Readiness) -> Vec<Candidate> {
    let limit = price_limit(job);
    let only = job.request.alternative_skills.is_empty();
    let listed = job.skill_names().flat_map(|name| {
        let does =
            move |agent: &Agent| agent.skill_for(job).is_some_and(|skill| skill.name == name);
        let ranked = draft.world.skills.online_by_rank(name, Some(limit));
        ranked.filter(move |one| only || draft.agent(one.agent).is_some_and(does))
    });
    let arriving = draft.unindexed_agents().filter_map(|agent| {
        Some(Candidate { agent: agent.id, price: agent.skill_for(job)?.price })
    });
    let all = listed.filter(|one| !draft.has_written(one.agent)).chain(arriving);
    let priced = all.map(|one| {
        let agreed = job.agreed_price_with(one.agent).map(|agreed| agreed.price);
        let price = agreed.unwrap_or_else(|| job.payment.price_step.round_price(one.price));
        Candidate { price, ..one }
    });
    let fits = |one: &Candidate| {
        let declined = job.candidates.declined.contains(&one.agent);
        let shut_out = declined || blocks(draft, job, one.agent) || job.is_requested_by(one.agent);
        one.price <= limit
            && !shut_out
            && draft.is_online(one.agent)
            && readiness::can_start(draft, job, one.agent, ready)
    };
    priced.filter(fits).collect()
}

fn cheapest(draft: &Draft<'_>, job: &Job, all: Vec<Candidate>) -> Option<Candidate> {
    let by_offer = |agent| {
        let skill = draft.agent(agent).and_then(|agent| agent.skill_for(job));
        skill.is_some_and(|skill| skill.by_offer)
    };
    let affordable = all.into_iter().filter(|one| one.price <= job.max_payment());
    affordable.min_by_key(|one| (by_offer(one.agent), one.price, one.agent))
}

/// How many jobs are assigned to an agent, counted from the rows.
fn assigned_job_count(draft: &Draft<'_>, agent: AgentId) -> usize {
    let live = draft.world.live_jobs().map(|job| job.id);
    let changed = draft.changed_jobs().map(|job| job.id);
    let all: std::collections::BTreeSet<_> = live.chain(changed).collect();
    let holds = |job: &&Job| job.active_worker() == Some(agent);
    all.into_iter().filter_map(|id| draft.job(id)).filter(holds).count()
}

/// Owners in order of their first agent's registration; the one after the last served is next.
fn round_robin(
    draft: &Draft<'_>,
    job: &Job,
    mut all: Vec<Candidate>,
) -> Option<(OwnerId, Candidate)> {
    let first_of = |owner| draft.world.agents_of(owner).next();
    let mut round: BTreeMap<AgentId, (OwnerId, Vec<Candidate>)> = BTreeMap::new();
    all.sort_by_key(|one| one.agent);
    for one in all {
        let owner = draft.agent(one.agent)?.owner;
        let place = first_of(owner).unwrap_or(one.agent);
        round.entry(place).or_insert_with(|| (owner, Vec::new())).1.push(one);
    }
    let turn = draft.rotation(&job.request.skill);
    let last = turn.as_ref().and_then(|turn| first_of(turn.owner));
    let after = |last: AgentId| round.range((Bound::Excluded(last), Bound::Unbounded)).next();
    let (_, (owner, agents)) = last.and_then(after).or_else(|| round.first_key_value())?;
    let served = turn.as_ref().and_then(|turn| turn.agents.iter().find(|(o, _)| o == owner));
    let next = agents.iter().find(|one| served.is_none_or(|(_, last)| one.agent > *last));
    Some((*owner, *next.or(agents.first())?))
}

/// Checks that a waiting job which was not tried would not have found a worker.
pub fn check_not_servable(draft: &mut Draft<'_>, job: &Job, ready: Readiness) {
    let chosen = select::next_worker(draft, job, ready);
    assert!(chosen.is_err(), "not tried, but {chosen:?} could take it: {job:?}");
    if let Selection::Auction { .. } = job.selection {
        let invited = crate::job::offer::reopen_auction(draft, &mut job.clone());
        assert!(!invited, "not tried, but there are candidates: {job:?}");
    }
}
