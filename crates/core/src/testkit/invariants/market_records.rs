//! Market invariants: every order has one record, nothing is published twice or left out, and the
//! totals of agents are correct.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::agent::MarketTotals;
use crate::alias::{ClaimTarget, Protocol, claim};
use crate::changes::{Changes, Counters};
use crate::event::Event;
use crate::id::{AgentId, JobId, NoticeId, PostingId};
use crate::job::{Job, Requester, Selection, State};
use crate::market::MarketRecord;
use crate::notice::{Notice, NoticeKind};
use crate::testkit::market::{ParsedRecord, notice_json};
use crate::world::World;

/// How many declined jobs are kept, written a second time.
const DECLINED: usize = 64;

/// What was published and counted, kept from changed rows alone.
#[derive(Clone, Default)]
pub struct MarketChecks {
    last: PostingId,
    posts: u64,
    sent: u64,
    orders: BTreeSet<String>,
    /// Auctions of the market that have ended once.
    closed: BTreeSet<JobId>,
    tallies: BTreeMap<AgentId, MarketTotals>,
    declined: BTreeMap<AgentId, Vec<String>>,
    before: Counters,
}

impl MarketChecks {
    pub fn check(&mut self, jobs: &BTreeMap<JobId, Arc<Job>>, changes: &Changes, world: &World) {
        let market = world.markets.keys().next().copied();
        let posts = self.posts;
        let told: Vec<ParsedRecord> =
            changes.market_records.iter().map(|one| self.posting(one)).collect();
        let next = world.next;
        assert_eq!(
            (next.market_record, next.market_orders),
            (self.last.next(), self.posts),
            "without gap"
        );
        assert_eq!(next.market_messages, self.sent, "each message has a number of its own");
        match market {
            None => assert!(changes.market_records.is_empty(), "published in no market"),
            Some(market) => {
                self.told(&told, changes, world, market);
                self.orders(changes, market);
                self.closings(jobs, changes, market);
            }
        }
        let refused = told.iter().any(|one| one.outcome.starts_with("refused"));
        if refused {
            self.nothing_else(changes);
        }
        for job in changes.jobs.values() {
            counted(jobs.get(&job.id).map(|old| &**old), job, posts);
        }
        self.count(jobs, changes, world, market);
        self.tallies(changes, world, market);
        self.before = world.next;
    }

    /// Ids, orders and message numbers have no gaps.
    fn posting(&mut self, posting: &MarketRecord) -> ParsedRecord {
        assert_eq!(posting.id, self.last.next(), "records have no gaps");
        self.last = posting.id;
        let told = ParsedRecord::parse(posting);
        assert_eq!(told.first_message, self.sent, "messages have no gap");
        self.sent += told.messages();
        assert_eq!(told.of.is_some(), told.outcome != "nothing ordered");
        if let Some(order) = &told.of {
            assert_eq!(told.posts, self.posts, "orders are counted one by one");
            assert!(self.orders.insert(order.clone()), "{order} was executed twice");
            self.posts += 1;
        }
        told
    }

    /// Notices to agents of the market are published, in that order, and so are assignments of its
    /// jobs; nothing else is.
    fn told(&self, told: &[ParsedRecord], changes: &Changes, world: &World, market: Protocol) {
        let ours = changes.notices.iter().filter(|notice| {
            let agent = notice.to.and_then(|to| world.agent(to));
            agent.is_some_and(|agent| agent.home == market)
        });
        let mut expected: Vec<String> = ours.map(|notice| notice_json(notice)).collect();
        let away = |worker| world.agent(worker).is_some_and(|worker| worker.home != market);
        for event in changes.history_lines.iter().flat_map(|line| &line.events) {
            let Event::JobAssigned { job, worker, epoch } = *event else { continue };
            let last = changes.jobs.get(&job).filter(|job| job.epoch == epoch);
            let held = last
                .filter(|job| job.request.origin == market && job.active_worker() == Some(worker));
            if held.is_some() && away(worker) {
                let news = NoticeKind::Assigned { job, epoch };
                let (id, to, at) = (NoticeId::default(), Some(worker), changes.history_lines[0].at);
                expected.push(notice_json(&Notice { id, to, position: 0, before: None, at, news }));
            }
        }
        let mut published: Vec<String> = told.iter().flat_map(|one| one.lines.clone()).collect();
        // Assignments to others are published after the notices, in the order of the jobs.
        expected.sort();
        published.sort();
        assert_eq!(published, expected, "the notices are what is published");
        assert!(told.iter().filter(|one| one.of.is_some()).count() <= 1, "one order at a time");
        assert!(told.iter().filter(|one| one.of.is_none()).count() <= 1, "all of it at once");
    }

    /// Each order leads to its record.
    fn orders(&self, changes: &Changes, market: Protocol) {
        for posting in &changes.market_records {
            let Some(order) = &posting.order_id else { continue };
            let digest = claim::market_order(market, order);
            let named = changes.claims.iter().filter(|claim| claim.digest == digest);
            let led: Vec<ClaimTarget> = named.map(|claim| claim.target).collect();
            assert_eq!(led, [ClaimTarget::MarketRecord(posting.id)]);
        }
    }

    /// The first end of an auction leads to its record, forever.
    fn closings(&mut self, before: &BTreeMap<JobId, Arc<Job>>, changes: &Changes, of: Protocol) {
        // Another protocol's job may have the same id, and end in the same step.
        for job in changes.jobs.values().filter(|job| job.request.origin == of) {
            let auction = matches!(job.selection, Selection::Auction { .. });
            let open = before.get(&job.id).is_some_and(|old| old.state == State::Negotiating);
            let digest = claim::closed_auction(of, &job.request.foreign_id);
            let led = changes.claims.iter().filter(|claim| claim.digest == digest);
            let led: Vec<ClaimTarget> = led.map(|claim| claim.target).collect();
            let ends = auction && open && job.state != State::Negotiating;
            if !ends || !self.closed.insert(job.id) {
                assert!(led.is_empty(), "closed without an end, or twice: {job:?}");
                continue;
            }
            let by_itself =
                changes.market_records.iter().find(|posting| posting.order_id.is_none());
            let expected = by_itself.map(|posting| ClaimTarget::MarketRecord(posting.id));
            assert!(expected.is_some(), "an auction ended without a record: {job:?}");
            assert_eq!(led, Vec::from_iter(expected), "{job:?}");
        }
    }

    /// A refused order leaves only its record and its claim.
    fn nothing_else(&self, changes: &Changes) {
        assert_eq!((changes.market_records.len(), changes.claims.len()), (1, 1));
        let kept = Changes { market_records: Vec::new(), claims: Vec::new(), ..changes.clone() };
        let empty = Changes { next: changes.next, ..Changes::default() };
        assert_eq!(format!("{kept:?}"), format!("{empty:?}"), "changes of a refused order");
        let next = changes.next.expect("it was submitted");
        let Counters { market_record, market_orders, market_messages, claim, at, .. } = next;
        assert_eq!(
            next,
            Counters { market_record, market_orders, market_messages, claim, at, ..self.before }
        );
        assert_eq!(claim, self.before.claim.next());
    }

    /// Counts again what was requested, assigned, declined and completed.
    fn count(
        &mut self,
        jobs: &BTreeMap<JobId, Arc<Job>>,
        changes: &Changes,
        world: &World,
        market: Option<Protocol>,
    ) {
        let job = |id: &JobId| changes.jobs.get(id).or_else(|| jobs.get(id)).expect("known");
        let counts = |agent: AgentId, job: &Job| {
            let home = world.agent(agent).map(|agent| agent.home);
            home == market || Some(job.request.origin) == market
        };
        for event in changes.history_lines.iter().flat_map(|line| &line.events) {
            match event {
                Event::JobOpened { job: id } => {
                    if let Requester::Agent(agent) = job(id).request.requester
                        && counts(agent, job(id))
                    {
                        self.tallies.entry(agent).or_default().requested += 1;
                    }
                }
                Event::JobAssigned { job: id, worker, .. } if counts(*worker, job(id)) => {
                    self.tallies.entry(*worker).or_default().assigned += 1;
                }
                Event::JobDeclined { job: id, worker } if counts(*worker, job(id)) => {
                    let names = self.declined.entry(*worker).or_default();
                    names.push(job(id).request.foreign_id.clone());
                }
                _ => {}
            }
        }
        for job in changes.jobs.values().filter(|job| job.state == State::Completed) {
            let (Some(worker), Some(report)) = (job.worker(), &job.result) else { continue };
            if !counts(worker, job) {
                continue;
            }
            let tally = self.tallies.entry(worker).or_default();
            tally.completed += 1;
            tally.earned = tally.earned.checked_add(report.paid).expect("tests pay little");
        }
    }

    /// Agents of the market have totals of all their jobs; others only of the market's jobs.
    fn tallies(&self, changes: &Changes, world: &World, market: Option<Protocol>) {
        // Totals are part of an agent state, and everything counted belongs to a job.
        if changes.agent_states.is_empty() && changes.jobs.is_empty() {
            return;
        }
        for agent in world.agents() {
            let agent_state = world.agent_state(agent.id).expect("every agent has a state");
            if market.is_none() {
                assert!(
                    agent_state.market_totals.is_empty() && agent_state.declined_jobs.is_empty(),
                    "{}",
                    agent.native_id
                );
                continue;
            }
            let tally = self.tallies.get(&agent.id).copied().unwrap_or_default();
            assert_eq!(agent_state.market_totals, tally, "the totals of {}", agent.native_id);
            let all = self.declined.get(&agent.id).map_or(&[][..], Vec::as_slice);
            let newest = &all[all.len().saturating_sub(DECLINED)..];
            assert_eq!(agent_state.declined_jobs, newest, "what {} declined", agent.native_id);
        }
    }
}

/// A job records how many orders were submitted before it was opened, and before it ended.
fn counted(old: Option<&Job>, job: &Job, posts: u64) {
    let opened = old.map_or(posts, |old| old.links.market_orders_before);
    assert_eq!(job.links.market_orders_before, opened, "{job:?}");
    let ended = job.state.is_final() && job.state != State::Withdrawn;
    assert_eq!(job.links.market_orders_at_end, if ended { posts } else { 0 }, "{job:?}");
}
