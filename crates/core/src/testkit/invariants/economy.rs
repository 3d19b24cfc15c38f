//! Economic invariants: no requester pays more than the price it was shown, no score falls for a
//! missing response before the worker's grace period has passed, and no requester fills an inbox or
//! a queue.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Invariants, fold};
use crate::agent::AgentState;
use crate::changes::Changes;
use crate::id::{AgentId, JobId};
use crate::job::{Assignment, Cause, Job, Requester, Selection, State};
use crate::message::inbox::Inbox;
use crate::message::strangers_room;
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::reputation::{Outcome, Standing};
use crate::time::Timestamp;
use crate::world::World;

/// Shown prices and received jobs, kept from changed rows alone.
#[derive(Clone, Default)]
pub struct EconomyChecks {
    /// The price at which a worker was first chosen for a job.
    shown: BTreeMap<(JobId, AgentId), Credits>,
    /// Workers that were ever chosen for a job.
    chosen: BTreeSet<(JobId, AgentId)>,
    /// Which of them listed a price at that time.
    listed: BTreeSet<(JobId, AgentId)>,
    /// When the worker of an assignment received the job.
    in_hand: BTreeMap<(JobId, u32), Timestamp>,
    /// Each inbox after the last command.
    inboxes: BTreeMap<AgentId, Inbox>,
    /// Scores without free work for new owners and guests.
    pub ranking_standings: BTreeMap<AgentId, Standing>,
}

impl EconomyChecks {
    pub fn check(
        &mut self,
        before: &BTreeMap<JobId, Arc<Job>>,
        changes: &Changes,
        world: &World,
        now: Timestamp,
    ) {
        for job in changes.jobs.values() {
            let old = before.get(&job.id).map(|old| &**old);
            self.price(old, job, world);
            self.hands(old, job, world, now);
        }
        self.room(before, changes, world);
        for outcome in &changes.outcomes {
            let job = &changes.jobs[&outcome.job];
            let old = before.get(&outcome.job).map(|old| &**old);
            // A reassigned job shows the earlier assignment only in its previous row.
            let turn = |job: &Job| job.assignment.filter(|turn| turn.worker == outcome.subject);
            let turn = turn(job).or(old.and_then(turn)).expect("an outcome is about an assignment");
            silence((old, job), turn, outcome, world);
            self.weigh(job, turn, outcome, world);
        }
    }

    /// A requester never pays more than the agreed price, whatever the worker lists or offers
    /// later.
    fn price(&mut self, old: Option<&Job>, job: &Job, world: &World) {
        if matches!(job.selection, Selection::Invited { .. }) {
            return;
        }
        let named = |job: &Job| {
            job.candidates.offers.iter().filter(|one| Some(one.by) == job.worker()).count()
        };
        let chosen = job.intended_worker();
        if let Some(worker) = chosen {
            let key = (job.id, worker);
            let skill = world.agent(worker).and_then(|agent| agent.skill_for(job));
            let by_offers = job.selection.is_by_offers();
            let listed = skill
                .filter(|_| !by_offers)
                .map(|skill| job.payment.price_step.round_price(skill.price));
            let price = job.assignment.map(|turn| turn.price).or(listed);
            if let Some(price) = price.filter(|price| *price <= job.max_payment()) {
                self.shown.entry(key).or_insert(price);
            }
            // A worker that listed no price when it was chosen may have its first offer agreed.
            let priced = skill.is_some_and(|skill| !skill.by_offer);
            if !self.chosen.contains(&key) && priced {
                self.listed.insert(key);
            }
            self.chosen.insert(key);
            let bargained =
                old.is_some_and(|old| named(job) > named(old) && old.worker() == job.worker());
            if let (true, Some(turn), false) = (bargained, job.assignment, by_offers)
                && !self.listed.contains(&key)
            {
                self.shown.insert(key, turn.price);
            }
        }
        let Some(turn) = job.assignment else { return };
        let shown = self.shown.get(&(job.id, turn.worker));
        assert!(shown.is_some_and(|shown| turn.price <= *shown), "raised after agreement: {job:?}");
        // Rounding adds only the requester's price step.
        let rounded =
            turn.own.is_none_or(|own| job.payment.price_step.round_price(own) == turn.price);
        assert!(rounded || job.selection.is_by_offers(), "gained by rounding: {job:?}");
        let paid = job.result.as_ref().map_or(Credits::ZERO, |report| report.paid);
        assert!(paid <= turn.price, "paid more than was shown: {job:?}");
    }

    /// The time a worker received a job is written once and never changed.
    fn hands(&mut self, old: Option<&Job>, job: &Job, world: &World, now: Timestamp) {
        if old.is_none_or(|old| old.candidates.read_at != job.candidates.read_at) {
            assert!(
                job.candidates.read_at.is_none_or(|at| at == now),
                "read at another time: {job:?}"
            );
        }
        let Some(turn) = job.assignment else { return };
        assert!(
            turn.grace_period >= world.rules.grace_period,
            "less than the grace period: {job:?}"
        );
        let Some(at) = turn.received_at else { return };
        let since = *self.in_hand.entry((job.id, job.epoch)).or_insert(now);
        let asked_alone = matches!(job.selection, Selection::Invited { .. })
            && job.candidates.read_at == Some(at);
        assert!(at == since || asked_alone, "received at another time: {job:?}");
    }

    /// Inboxes that only received notices.
    fn grown(&self, changes: &Changes, world: &World) -> BTreeSet<AgentId> {
        let mut after: BTreeMap<AgentId, Inbox> = BTreeMap::new();
        for notice in &changes.notices {
            let Some(agent) = notice.to else { continue };
            let known = || self.inboxes.get(&agent).copied();
            let inbox = after.entry(agent).or_insert_with(|| known().unwrap_or(Inbox::new(agent)));
            inbox.receive(notice);
        }
        let same = |(agent, inbox): &(AgentId, Inbox)| {
            let now = world.inbox(*agent);
            (now.waiting_count(), now.work_waiting) == (inbox.waiting_count(), inbox.work_waiting)
        };
        after.into_iter().filter(same).map(|(agent, _)| agent).collect()
    }

    /// Work and invitations go only to inboxes with capacity, and no requester invites too many at
    /// a time.
    fn room(&mut self, before: &BTreeMap<JobId, Arc<Job>>, changes: &Changes, world: &World) {
        let max = world.rules.inbox_messages_max;
        let grown = self.grown(changes, world);
        for notice in &changes.notices {
            let (Some(agent), Some(job)) = (notice.to, notice.news.job()) else { continue };
            let inbox = self.inboxes.entry(agent).or_insert_with(|| Inbox::new(agent));
            // Resumed work, and work the agent offered for or started itself, was accepted before.
            let known = before.get(&job).is_some_and(|old| {
                old.intended_worker() == Some(agent) || old.candidates.read_at.is_some()
            });
            let row = changes.jobs.get(&job);
            let offered =
                |job: &Arc<Job>| job.candidates.offers.iter().any(|offer| offer.by == agent);
            let known = known || row.is_some_and(offered);
            let asked = |job: &Arc<Job>| matches!(job.selection, Selection::Invited { .. });
            let asked = row.is_some_and(asked);
            let free = row.is_some_and(|job| {
                (job.payment.budget.is_zero() || job.policy.requester.unpaid)
                    && is_for_a_stranger(job, world)
            });
            match notice.news {
                // Notices read by the same command have freed capacity before.
                _ if !grown.contains(&agent) => {}
                NoticeKind::Assigned { .. } | NoticeKind::ApprovalRequested { .. }
                    if !known && !asked && max > 0 =>
                {
                    let room = inbox.waiting_count() < max || inbox.work_waiting < max.div_ceil(2);
                    assert!(room, "work for a full inbox: {notice:?}");
                    let room = inbox.work_waiting < strangers_room(max);
                    assert!(room || !free, "new owners crowd out others: {notice:?}");
                }
                NoticeKind::OfferRequested { .. } if !asked && max > 0 => {
                    assert!(inbox.waiting_count() < max.div_ceil(2), "no room for it: {notice:?}");
                    let room = inbox.work_waiting < strangers_room(max);
                    assert!(room || !free, "new owners crowd out others: {notice:?}");
                }
                NoticeKind::OfferRequested { .. } | NoticeKind::OfferReceived { .. } if max > 0 => {
                    assert!(asked || inbox.waiting_count() < max, "no room for it: {notice:?}");
                }
                _ => {}
            }
            inbox.receive(notice);
        }
        for agent in changes.inboxes.keys() {
            self.inboxes.insert(*agent, world.inbox(*agent));
        }
        let mut asked: BTreeMap<Option<AgentId>, usize> = BTreeMap::new();
        for job in
            world.live_jobs().filter(|job| matches!(job.state, State::Open | State::Negotiating))
        {
            let who = match job.request.requester {
                Requester::Agent(agent) => Some(agent),
                Requester::Guest(_) => None,
            };
            *asked.entry(who).or_default() += job.candidates.invited.len();
        }
        let most = asked.values().max().copied().unwrap_or(0);
        // An agent that makes an offer without being invited is not counted.
        let offers: usize = world.live_jobs().map(|job| job.candidates.offers.len()).sum();
        assert!(most <= world.rules.invitations_max + offers, "one requester invites too many");
    }

    /// In the hub's own ranking, free work for an owner that never paid or was paid does not count.
    fn weigh(&mut self, job: &Job, turn: Assignment, outcome: &Outcome, world: &World) {
        let nonsense = outcome.cause == Some(Cause::Unusable);
        let free = turn.price.is_zero() || job.policy.requester.unpaid || nonsense;
        assert_eq!(
            outcome.counts_in_ranking,
            !(is_for_a_stranger(job, world) && free),
            "{outcome:?}"
        );
        let before = self.ranking_standings.get(&outcome.subject).copied().unwrap_or_default();
        let counted = outcome.counted && outcome.counts_in_ranking;
        let after = fold(before, outcome.ok, counted, outcome.hirer_score);
        self.ranking_standings.insert(outcome.subject, after);
    }
}

/// Whether the requester's owner never paid or was paid.
fn is_for_a_stranger(job: &Job, world: &World) -> bool {
    job.payment.payer.and_then(|payer| world.owner(payer)).is_none_or(|one| one.payment_count == 0)
}

/// A missing response counts exactly if the grace period has passed; leaving, if the job was
/// received.
fn silence((old, job): (Option<&Job>, &Job), turn: Assignment, outcome: &Outcome, world: &World) {
    let since = turn.received_at;
    let had = since.is_some_and(|at| outcome.ended_at.since(at) >= turn.grace_period);
    let left = world.agent(outcome.subject).is_some_and(|agent| !agent.active);
    // If nothing was due, the worker itself reported the timeout.
    let due = old.and_then(Job::due_at).is_some_and(|due| due <= outcome.ended_at);
    // An endpoint that refused the request ends its assignment early; the job fails or is
    // reassigned.
    let cause = job.result.as_ref().and_then(|report| report.cause);
    let refused = matches!(cause, None | Some(Cause::Unusable | Cause::NoWorkerLeft));
    match outcome.cause {
        Some(Cause::TimedOut) if due => assert!(had, "counted too soon: {outcome:?}"),
        Some(Cause::WorkerLeft) => assert!(since.is_some(), "never had it: {outcome:?}"),
        Some(Cause::WithinGracePeriod) if left => {
            assert!(since.is_none(), "it had it: {outcome:?}")
        }
        Some(Cause::WithinGracePeriod) => {
            assert!((due || refused) && !had, "excused without reason: {outcome:?}");
        }
        _ => {}
    }
}

impl Invariants {
    /// The hub's own ranking is the fold of the outcomes that count in it.
    pub(super) fn check_ranking_standing(
        &self,
        world: &World,
        agent: AgentId,
        agent_state: &AgentState,
    ) {
        let weighed = self.economy.ranking_standings.get(&agent).copied().unwrap_or_default();
        assert_eq!(
            agent_state.ranking_standing(),
            weighed,
            "the hub's ranking matches its outcomes"
        );
        let underrated = world.underrated_agents().any(|one| one == agent);
        assert_eq!(underrated, weighed.score > agent_state.standing.score);
    }
}
