//! Invariants: what must hold after every command.
//!
//! The checks keep their own records from changed rows alone and compare them with the world. They
//! never call the rules they check.

mod backoff;
mod customers;
mod dialogue;
mod discovery;
mod economy;
mod end_notices;
mod history;
mod key_spending;
mod leases;
mod ledger;
mod market_records;
mod requests;
mod saved_answers;
mod terms;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::HOME;
use crate::agent::{AgentState, Skill};
use crate::alias::Protocol;
use crate::changes::Changes;
use crate::command::Timer;
use crate::event::Event;
use crate::id::*;
use crate::job::{Cause, Job, Requester, Selection, State};
use crate::ledger::Transfer;
use crate::money::Credits;
use crate::notice::{Notice, NoticeKind};
use crate::reputation::{Outcome, Score, Standing};
use crate::time::Timestamp;
use crate::world::World;
use discovery::discovery_is_a_sorted_scan;
pub use discovery::{discover_by_scan, rank_by_scan};

/// The protocol in which payments name the jobs they are for.
#[derive(Clone, Copy)]
pub struct PaymentProtocol(pub Protocol);

impl Default for PaymentProtocol {
    fn default() -> Self {
        Self(HOME)
    }
}

/// Records kept from changed rows alone.
#[derive(Clone, Default)]
pub struct Invariants {
    pub payment_protocol: PaymentProtocol,
    books: ledger::LedgerChecks,
    jobs: BTreeMap<JobId, Arc<Job>>,
    standings: BTreeMap<AgentId, Standing>,
    patronage: customers::CustomerChecks,
    last_outcome: BTreeMap<AgentId, OutcomeId>,
    judged: BTreeSet<(JobId, AgentId)>,
    inboxes: BTreeMap<AgentId, (u64, NoticeId)>,
    sent: BTreeMap<AgentId, NoticeId>,
    agents: BTreeMap<AgentId, (OwnerId, Timestamp)>,
    skills: BTreeSet<String>,
    /// Foreign ids of counted jobs, and of jobs paid for elsewhere.
    job_names: BTreeMap<(Protocol, String), JobId>,
    hired_elsewhere: BTreeSet<String>,
    transfer_names: BTreeSet<String>,
    settled: BTreeSet<(OwnerId, String)>,
    welcomed: BTreeSet<OwnerId>,
    ended: BTreeSet<JobId>,
    history: history::HistoryChecks,
    asking: requests::RequestChecks,
    terms: terms::TermsChecks,
    economy: economy::EconomyChecks,
    work: work::WorkChecks,
    published: market_records::MarketChecks,
    dialogue: dialogue::DialogueChecks,
    key_spending: key_spending::KeySpendingChecks,
    /// When discovery was last checked.
    looked_at: Option<Timestamp>,
}

impl Invariants {
    /// The hub was restarted from its rows. Only the start times of finished jobs may be lost.
    pub fn restart(&mut self) {
        self.terms.restart(&self.jobs);
    }

    /// Panics if a command has broken an invariant.
    pub fn check(&mut self, changes: &Changes, world: &World, now: Timestamp) {
        let changes = &self.without_webhooks_of_ended_jobs(changes);
        self.books.check(changes, world);
        self.asking.check(changes, world);
        self.terms.check(&self.jobs, changes, world, now);
        self.work.check(&self.jobs, changes, world);
        self.economy.check(&self.jobs, changes, world, now);
        self.published.check(&self.jobs, changes, world);
        self.dialogue.check(&self.jobs, changes, world);
        self.key_spending.check(changes, world);
        leases::check(&self.jobs, changes, world, now);
        backoff::check(&self.jobs, changes, world, now);
        end_notices::check(changes, world);
        saved_answers::check(changes, world);
        self.history.check(&self.jobs, changes, world);
        for outcome in &changes.outcomes {
            self.outcome(outcome, changes, world);
        }
        for job in changes.jobs.values() {
            self.turn(job, changes, world, now);
            self.job(job);
        }
        for transfer in &changes.transfers {
            self.transfer(transfer);
        }
        for event in changes.history_lines.iter().flat_map(|line| &line.events) {
            self.event(event);
        }
        for notice in &changes.notices {
            self.notice(notice);
            if let NoticeKind::Message { from: Some(from), .. } = notice.news {
                assert!(!world.is_suspended(from), "{from} is suspended but sent: {notice:?}");
            }
        }
        for agent in changes.agents.values() {
            let kept = (agent.owner, agent.registered_at);
            let first = *self.agents.entry(agent.id).or_insert(kept);
            assert_eq!(first, kept, "owner and seniority never change");
            self.skills.extend(agent.skills.iter().map(|skill| skill.name.clone()));
        }
        self.whole(changes, world, now);
    }

    /// A job that has ended changes in its webhooks alone. All other rules are about jobs that go on.
    fn without_webhooks_of_ended_jobs(&mut self, changes: &Changes) -> Changes {
        let mut rest = changes.clone();
        rest.jobs.retain(|id, job| {
            let ended = self.jobs.get(id).filter(|old| old.state.is_final());
            let Some(old) = ended else { return true };
            let same = Job { webhooks: old.webhooks.clone(), ..Job::clone(job) };
            assert_eq!(same, **old, "a job that has ended changed");
            self.jobs.insert(*id, job.clone());
            false
        });
        rest
    }

    /// Checks of the world as a whole. It changes by rows alone, so a check is skipped if none of
    /// its rows was written.
    fn whole(&mut self, changes: &Changes, world: &World, now: Timestamp) {
        let money = !(changes.owners.is_empty() && changes.entries.is_empty());
        let of_owner = |event: &Event| {
            matches!(event, Event::OwnerSuspended { .. } | Event::OwnerResumed { .. })
        };
        let owners = changes.history_lines.iter().flat_map(|line| &line.events).any(of_owner);
        let people = owners || !(changes.agents.is_empty() && changes.agent_states.is_empty());
        if money || !changes.jobs.is_empty() {
            self.books.check_balance(world);
        }
        memory_is_what_rows_take(world);
        if !(changes.jobs.is_empty() && changes.agents.is_empty()) {
            self.live_jobs(world);
        }
        if people || !changes.inboxes.is_empty() {
            self.agent_states(world);
        }
        // Discovery results also change by time alone.
        if people || self.looked_at != Some(now) {
            self.looked_at = Some(now);
            for skill in &self.skills {
                discovery_is_a_sorted_scan(world, skill, now);
            }
        }
    }

    /// A new assignment goes to an available worker, at the listed price, in time, with a notice.
    fn turn(&self, job: &Job, changes: &Changes, world: &World, now: Timestamp) {
        let old = self.jobs.get(&job.id);
        let epoch = old.map_or(0, |old| old.epoch);
        let Some(turn) = job.assignment.filter(|_| job.epoch > epoch) else { return };
        // A sole invitee that gave no response is assigned only when the deadline has passed.
        assert!(
            now < job.request.deadline || job.state == State::Expired,
            "assigned after its deadline"
        );
        let news = NoticeKind::Assigned { job: job.id, epoch: job.epoch };
        let asked = matches!(job.selection, Selection::Invited { .. });
        // An invited agent got the original request, or started by itself.
        let told = |notice: &Arc<Notice>| notice.to == Some(turn.worker) && notice.news == news;
        let told = changes.notices.iter().filter(|notice| told(notice)).count();
        let reads_later = |worker: &Arc<crate::agent::Agent>| {
            worker.terms.intake.urgent_first && worker.delivery_url().is_none()
        };
        let later = world.agent(turn.worker).is_some_and(reads_later);
        assert!(told == 1 || (asked || later) && told == 0);
        if asked {
            assert!(
                job.candidates.invited.contains(&turn.worker),
                "assigned to an agent that was not invited"
            );
            return;
        }
        let resumed = old.is_some_and(|old| old.worker() == Some(turn.worker));
        if resumed {
            let before = old.and_then(|old| old.assignment).map(|old| (old.price, old.own));
            assert_eq!(before, Some((turn.price, turn.own)), "the agreed price changed: {job:?}");
            return;
        }
        assert!(!world.is_suspended(turn.worker), "assigned to a suspended agent: {job:?}");
        // An agent that deferred the job had it before and is the one the job waited for.
        let waited = |old: &Job| {
            old.candidates.pending_assignment.is_some_and(|waits| waits.worker == turn.worker)
        };
        let patient = job.policy.queueing.after_failure || old.is_some_and(|old| waited(old));
        assert!(patient || epoch < world.rules.attempts_max, "assigned too often");
        let listed = world.agent(turn.worker).and_then(|worker| worker.skill_for(job));
        let offered =
            job.candidates.offers.iter().any(|o| o.by == turn.worker && o.price == turn.price);
        if !offered {
            let agreed =
                old.and_then(|old| old.agreed_price_with(turn.worker)).map(|old| old.price);
            let asked =
                agreed.or(listed.map(|skill| job.payment.price_step.round_price(skill.price)));
            assert_eq!(asked, Some(turn.price), "at the listed price, as shown");
            let fetches =
                world.agent(turn.worker).is_some_and(|agent| !agent.is_called_by_protocol());
            let may_be_offline = job.policy.named_worker.may_be_offline && fetches;
            let there = world.is_online(turn.worker, now) || may_be_offline;
            assert!(there, "assigned to an offline agent");
        }
    }

    /// Ids of transfers are used once, and each payer settles each job once.
    fn transfer(&mut self, transfer: &Transfer) {
        assert!(transfer.amount > Credits::ZERO);
        assert!(self.transfer_names.insert(transfer.foreign_id.clone()), "{transfer:?}");
        let Some(job) = &transfer.job else { return };
        assert!(self.settled.insert((transfer.from, job.clone())), "settled twice: {transfer:?}");
        let name = (self.payment_protocol.0, job.clone());
        let ran = self.job_names.get(&name).and_then(|id| self.jobs.get(id));
        let ran = ran.filter(|job| job.state != State::Withdrawn);
        assert_eq!(ran.is_some(), transfer.settled_by_hold);
        match ran {
            Some(job) => {
                assert_eq!(job.state, State::Completed);
                assert_eq!(job.payment.payer, Some(transfer.from));
                assert_eq!(job.assignment.map(|turn| turn.owner), Some(transfer.to));
                assert_eq!(job.result.as_ref().map(|report| report.paid), Some(transfer.amount));
            }
            None => {
                self.hired_elsewhere.insert(job.clone());
            }
        }
    }

    fn event(&mut self, event: &Event) {
        match *event {
            Event::Granted { owner, welcome: true, .. } => {
                assert!(self.welcomed.insert(owner), "{owner} got two welcome grants");
            }
            Event::JobEnded { job, .. } => assert!(self.ended.insert(job), "{job} ended twice"),
            _ => {}
        }
    }

    /// States follow the table, final jobs never change, and epochs grow.
    fn job(&mut self, job: &Arc<Job>) {
        if let Some(old) = self.jobs.get(&job.id) {
            assert!(!old.state.is_final(), "a finished job changed: {old:?} to {job:?}");
            let step = old.state == job.state || old.state.may_become(job.state);
            assert!(step, "{:?} to {:?}", old.state, job.state);
            assert!(job.epoch >= old.epoch, "epochs never decrease");
            let turn = |job: &Job| job.assignment.map(|turn| (turn.worker, turn.since));
            let moved = turn(job).is_some() && turn(job) != turn(old);
            assert!(!moved || job.epoch > old.epoch, "a new assignment has a new epoch");
            if job.epoch == old.epoch {
                keeps_its_price(old, job);
            }
            assert!(
                job.candidates.declined.starts_with(&old.candidates.declined),
                "a declined agent stays declined"
            );
            let started =
                old.state == State::Running || old.assignment.is_some_and(|turn| turn.handed_over);
            let waits = matches!(old.state, State::InputRequired { .. });
            let may = !started || waits || job.policy.requester.cancels_any_time;
            assert!(job.state != State::Cancelled || may, "cancelled after it was started");
            let is_same = job.epoch == old.epoch && job.assignment.is_some();
            assert!(
                !is_same || old.handover.is_none() || job.handover.is_some(),
                "a handover was forgotten: {job:?}"
            );
        } else {
            let elsewhere = job.request.origin == self.payment_protocol.0
                && self.hired_elsewhere.contains(&job.request.foreign_id);
            assert!(!elsewhere, "paid for elsewhere");
            let known =
                self.job_names.insert((job.request.origin, job.request.foreign_id.clone()), job.id);
            let known = known.and_then(|id| self.jobs.get(&id));
            assert!(known.is_none_or(|known| known.state == State::Withdrawn), "one id, two jobs");
        }
        let handed = job.assignment.is_some_and(|turn| turn.handed_over);
        assert!(job.handover.is_none() || handed, "a handover without its worker: {job:?}");
        if job.state.is_final() {
            assert!(job.ended_at.is_some());
            let judged = job.worker().is_some_and(|worker| self.judged.contains(&(job.id, worker)));
            let settled = matches!(job.state, State::Completed | State::Failed | State::Expired);
            assert_eq!(judged, settled && job.assignment.is_some(), "{job:?}");
            assert_eq!(job.result.is_some(), job.state != State::Withdrawn);
        }
        self.jobs.insert(job.id, job.clone());
    }

    /// One outcome per job and subject, numbered without gaps, folded by the published formula.
    fn outcome(&mut self, outcome: &Outcome, changes: &Changes, world: &World) {
        let Outcome { subject, job, ok, counted, hirer_score, .. } = *outcome;
        assert!(self.judged.insert((job, subject)), "{job}: two outcomes for {subject}");
        let before = self.standings.get(&subject).copied().unwrap_or_default();
        let after = fold(before, ok, counted, hirer_score);
        assert_eq!(before.after(ok, counted, hirer_score), after, "the fold is the formula");
        assert_eq!(outcome.number, after.outcomes, "numbers have no gap");
        assert_eq!(outcome.score_after, after.score);
        assert_eq!(outcome.before, self.last_outcome.insert(subject, outcome.id));
        self.standings.insert(subject, after);
        let named = changes.jobs.get(&job).expect("an outcome names a job of its own command");
        let owner = world.agent(subject).expect("subjects are agents").owner;
        let hirer = match named.request.requester {
            Requester::Agent(agent) => Some(agent),
            Requester::Guest(_) => None,
        };
        assert_eq!(outcome.hired_by, hirer);
        let standing = hirer.and_then(|hirer| self.standings.get(&hirer)).copied();
        assert_eq!(hirer_score, standing.unwrap_or_default().score, "with the current score");
        let excused = matches!(
            outcome.cause,
            Some(
                Cause::NoSuchSkill
                    | Cause::BudgetTooLow
                    | Cause::Policy
                    | Cause::NoWorkerLeft
                    | Cause::WithinGracePeriod
                    | Cause::NoAnswer
                    | Cause::InputMisfit
                    | Cause::UnknownFate
            )
        );
        assert_eq!(counted, !excused && named.payment.payer != Some(owner), "{outcome:?}");
        self.patronage.record(outcome, named.payment.payer);
        let taken = |job: &Arc<Job>| job.acceptance.accepted_at.is_some();
        let had_it = taken(named) || self.jobs.get(&job).is_some_and(taken);
        let own_word = !matches!(outcome.cause, Some(Cause::TimedOut | Cause::WorkerLeft));
        assert!(had_it || own_word || !counted, "failure without acceptance: {outcome:?}");
    }

    /// Positions have no gaps, and each notice names the one before it.
    fn notice(&mut self, notice: &Notice) {
        if let NoticeKind::Message { from: Some(from), previous: follows, .. } = &notice.news {
            assert_eq!(*follows, self.sent.insert(*from, notice.id), "each names the one before");
        }
        let Some(agent) = notice.to else {
            assert_eq!((notice.position, notice.before), (0, None));
            return;
        };
        let last = self.inboxes.get(&agent).copied();
        assert_eq!(notice.position, last.map_or(0, |(head, _)| head) + 1, "no gap in an inbox");
        assert_eq!(notice.before, last.map(|(_, id)| id));
        self.inboxes.insert(agent, (notice.position, notice.id));
    }

    /// Every live job has a due time and at most one worker, and the indexes say the same.
    fn live_jobs(&self, world: &World) {
        let live: BTreeMap<JobId, &Arc<Job>> = world.live_jobs().map(|job| (job.id, job)).collect();
        let open = self.jobs.iter().filter(|(_, job)| !job.state.is_final());
        assert!(open.eq(live.iter().map(|(id, job)| (id, *job))), "live is what is not finished");
        let mut timers = BTreeSet::new();
        for job in live.values() {
            let due = job.due_at().expect("a live job always has a due time");
            assert!(due <= job.request.deadline, "never later than its deadline");
            timers.insert((due, Timer::Job(job.id)));
            let by_uuid = world.job_by_uuid(job.uuid).map(|job| job.id);
            let by_name =
                world.job_by_name(job.request.origin, &job.request.foreign_id).map(|job| job.id);
            assert_eq!((by_uuid, by_name), (Some(job.id), Some(job.id)), "found by its ids");
            let in_hand = matches!(
                job.state,
                State::Assigned
                    | State::Running
                    | State::InputRequired { .. }
                    | State::Deferred { .. }
            );
            let owned = job.assignment.is_some() || job.candidates.pending_assignment.is_some();
            assert_eq!(in_hand, owned, "one worker exactly while assigned");
            let asked = matches!(job.selection, Selection::Invited { .. })
                && !job.candidates.invited.is_empty();
            assert!(job.state != State::Open || asked, "an open job has no invitees");
            if let Some(turn) = job.assignment {
                assert!(
                    !job.candidates.declined.contains(&turn.worker),
                    "assigned to an agent that declined"
                );
                assert!(!job.is_requested_by(turn.worker), "assigned to its own requester");
                assert!(turn.price <= job.max_payment(), "the price is above what can be paid");
                assert!(world.agent(turn.worker).is_some_and(|worker| worker.active));
                assert_eq!(world.agent(turn.worker).map(|worker| worker.owner), Some(turn.owner));
            }
        }
        for job in self.jobs.values().filter(|job| job.state.is_final()) {
            let named =
                world.job_by_name(job.request.origin, &job.request.foreign_id).map(|job| job.id);
            assert_ne!(named, Some(job.id), "a finished job releases its ids");
            assert!(world.job_by_uuid(job.uuid).is_none());
        }
        for agent in self.agents.keys().filter_map(|id| world.agent(*id)) {
            let until = agent.probation.filter(|_| agent.active);
            timers.extend(until.map(|until| (until, Timer::Probation(agent.id))));
        }
        let indexed = world.due_timers(Timestamp::NEVER);
        let expected = timers.iter().map(|(_, timer)| *timer);
        assert!(indexed.eq(expected), "each live job and each probation has a timer");
        assert_eq!(world.next_timer_at(), timers.first().map(|(at, _)| *at));
        let queued = live.values().filter(|job| job.state == State::Queued).map(|job| job.id);
        assert!(world.queued_jobs().map(|job| job.id).eq(queued), "the queue has all queued jobs");
        for agent in self.agents.keys() {
            let hands = live.values().filter(|job| job.worker() == Some(*agent)).map(|job| job.id);
            assert!(world.assigned_jobs(*agent).map(|job| job.id).eq(hands));
            let waits = |job: &Job| job.candidates.pending_assignment.map(|waits| waits.worker);
            let waits = live.values().filter(|job| waits(job) == Some(*agent)).map(|job| job.id);
            assert!(world.deferred_jobs_for(*agent).map(|job| job.id).eq(waits));
            let asked = live.values().filter(|job| job.is_requested_by(*agent)).map(|job| job.id);
            assert!(world.jobs_requested_by(*agent).map(|job| job.id).eq(asked));
        }
    }

    /// Scores and inboxes match the sums of the rows.
    fn agent_states(&self, world: &World) {
        for agent in self.agents.keys() {
            let agent_state: &AgentState =
                world.agent_state(*agent).expect("every agent has a state");
            let standing = self.standings.get(agent).copied().unwrap_or_default();
            assert_eq!(agent_state.standing, standing, "a score is the fold of its outcomes");
            assert_eq!(agent_state.last_outcome, self.last_outcome.get(agent).copied());
            self.check_customers(world, *agent, agent_state);
            self.check_ranking_standing(world, *agent, agent_state);
            let inbox = self.inboxes.get(agent).copied();
            let mailbox = world.inbox(*agent);
            assert_eq!(mailbox.head, inbox.map_or(0, |(head, _)| head));
            assert_eq!(mailbox.newest, inbox.map(|(_, id)| id));
            assert_eq!(mailbox.last_sent, self.sent.get(agent).copied());
            assert!(mailbox.read_position() <= mailbox.head);
            assert!(mailbox.waiting_count() <= mailbox.head - mailbox.read_position());
        }
    }
}

/// The published formula, written a second time: +2 × hirer/100 or −4.5, within 0 to 100.
fn fold(old: Standing, ok: bool, counted: bool, hirer: Score) -> Standing {
    let mut new = Standing { outcomes: old.outcomes + 1, ..old };
    if counted && ok {
        new.successes += 1;
        let gained = old.score.millionths() + hirer.millionths() * 2 / 100;
        new.score = Score::from_millionths(gained.min(100_000_000));
    } else if counted {
        new.failures += 1;
        new.score = Score::from_millionths((old.score.millionths() - 4_500_000).max(0));
    }
    new
}

/// The running memory sums equal a recount of every row, and agents that have left hold no content
/// in memory.
fn memory_is_what_rows_take(world: &World) {
    assert_eq!(*world.footprint(), world.recount_footprint(), "memory is counted as it changes");
    for agent in world.agents().filter(|agent| !agent.active) {
        let small =
            |skill: &Skill| skill.description.len() + skill.input.len() + skill.output.len() == 0;
        assert!(agent.card.is_empty() && agent.skills.iter().all(small), "{agent:?}");
    }
}

/// The agreed price changes at most once, by a price the worker names, and never above the bid.
fn keeps_its_price(old: &Job, job: &Job) {
    let price = |job: &Job| job.assignment.map(|turn| turn.price);
    let (Some(before), Some(now)) = (price(old), price(job)) else { return };
    if before == now {
        return;
    }
    assert_eq!(
        job.candidates.offers.len(),
        old.candidates.offers.len() + 1,
        "a price changed without an offer"
    );
    let named_before = old.candidates.offers.iter().any(|offer| Some(offer.by) == job.worker());
    assert!(!named_before, "an agreed price was changed: {job:?}");
    let named = job
        .candidates
        .offers
        .last()
        .map(|offer| (Some(offer.by), job.payment.price_step.round_price(offer.price)));
    assert_eq!(named, Some((job.worker(), now)));
    assert!(now <= job.max_payment(), "above the bid");
    assert!(old.state == State::Assigned && job.state == State::Running);
}
