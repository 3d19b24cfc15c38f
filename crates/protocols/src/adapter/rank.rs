//! How the hub's own ranking rates an agent's history.
//!
//! The published score is one number that a few colluding owners can raise, and that starts again
//! with every new id. So the ranking trusts it only as far as other owners confirm it:
//!
//! - **Counterparties** (T35). A counterparty is another owner that the agent completed a job for
//!   successfully. Each one allows 5 points above 50: an agent that worked for one owner only ranks
//!   with at most 55, however many successes it had. On a tie more counterparties come first, then
//!   more credits paid by them.
//! - **Penalty** (T36). Failures of other agents of the same owner, past or present, count as the
//!   agent's own, at most ten of them, and each counterparty offsets one. A new agent with a penalty
//!   ranks behind every new agent without one.
//!
//! - **Free work**. Free work for a requester that never paid or was paid counts for nothing, good or
//!   bad: such requesters cost nothing to create.
//!
//! The score itself, and the rankings that the protocols publish, are not changed.

use std::cmp::Reverse;

use rialto_core::id::AgentId;
use rialto_core::money::Credits;
use rialto_core::reputation::Score;
use rialto_core::world::World;

/// Points above the start score that each counterparty allows, in millionths.
const POINTS_PER_COUNTERPARTY: i64 = 5_000_000;
/// Failures of an owner's other agents that count for one agent.
const OWNER_FAILURES_MAX: u64 = 10;

/// The part of an agent's history that decides its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankRecord {
    /// The published score.
    pub score: Score,
    /// The score without free work for requesters that never paid.
    pub weighted_score: Score,
    /// Jobs finished for other owners, without free work for requesters that never paid.
    pub jobs_settled: u64,
    /// Other owners it completed a job for successfully.
    pub counterparties: u64,
    /// What they paid for that.
    pub credits_paid: Credits,
    /// Failures of its owner's other agents.
    pub owner_failures: u64,
}

/// How much experience an agent has. The order is that of the ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Experience {
    /// It has finished a job for another owner.
    Proven,
    New,
    /// It is new, and other agents of its owner have failed.
    Penalized,
}

impl RankRecord {
    pub fn load(world: &World, agent: AgentId) -> Option<Self> {
        let agent_state = world.agent_state(agent)?;
        Some(Self {
            score: agent_state.standing.score,
            weighted_score: agent_state.ranking_standing().score,
            jobs_settled: agent_state.ranking_standing().settled_jobs(),
            counterparties: agent_state.customers.count() as u64,
            credits_paid: agent_state.customers.paid(),
            owner_failures: world.failures_of_other_agents(agent),
        })
    }

    pub fn experience(&self) -> Experience {
        match (self.jobs_settled, self.penalty()) {
            (1.., _) => Experience::Proven,
            (0, 0) => Experience::New,
            (0, _) => Experience::Penalized,
        }
    }

    /// The score used for ranking; never above `weighted_score`.
    pub fn rank_score(&self) -> Score {
        let start = Score::START.millionths();
        let patrons = i64::try_from(self.counterparties).unwrap_or(i64::MAX);
        let borne_out = start.saturating_add(POINTS_PER_COUNTERPARTY.saturating_mul(patrons));
        let weight = self.weighted_score.min(Score::from_millionths(borne_out));
        match self.penalty() {
            0 => weight,
            penalty => {
                weight.min((0..penalty).fold(Score::START, |score, _| score.after_failure()))
            }
        }
    }

    /// Failures of its owner's other agents that count against it.
    fn penalty(&self) -> u64 {
        self.owner_failures.min(OWNER_FAILURES_MAX).saturating_sub(self.counterparties)
    }
}

/// An agent's position in the ranking; the smallest is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RankPosition {
    pub experience: Experience,
    pub rank_score: Reverse<Score>,
    pub counterparties: Reverse<u64>,
    pub paid: Reverse<Credits>,
    pub score: Reverse<Score>,
    pub jobs_settled: Reverse<u64>,
    pub agent: AgentId,
}

impl RankPosition {
    pub fn new(agent: AgentId, rank_record: &RankRecord) -> Self {
        Self {
            experience: rank_record.experience(),
            rank_score: Reverse(rank_record.rank_score()),
            counterparties: Reverse(rank_record.counterparties),
            paid: Reverse(rank_record.credits_paid),
            score: Reverse(rank_record.score),
            jobs_settled: Reverse(rank_record.jobs_settled),
            agent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank_record(score: i64, patrons: u64, inherited: u64) -> RankRecord {
        let score = Score::from_millionths(score * 1_000_000);
        RankRecord {
            score,
            weighted_score: score,
            jobs_settled: 1,
            counterparties: patrons,
            credits_paid: Credits::ZERO,
            owner_failures: inherited,
        }
    }

    fn weighs(rank_record: RankRecord) -> i64 {
        rank_record.rank_score().millionths()
    }

    #[test]
    fn a_score_is_worth_what_patrons_bear_out() {
        assert_eq!(weighs(rank_record(100, 0, 0)), 50_000_000);
        assert_eq!(weighs(rank_record(100, 1, 0)), 55_000_000);
        assert_eq!(weighs(rank_record(100, 9, 0)), 95_000_000);
        assert_eq!(weighs(rank_record(100, 64, 0)), 100_000_000);
        assert_eq!(weighs(rank_record(53, 1, 0)), 53_000_000);
        assert_eq!(
            weighs(rank_record(20, 0, 0)),
            20_000_000,
            "a low score needs no counterparties"
        );
    }

    #[test]
    fn an_owners_failures_follow_until_as_many_patrons_have_made_up_for_them() {
        assert_eq!(weighs(rank_record(50, 0, 1)), 45_500_000);
        assert_eq!(weighs(rank_record(50, 0, 10)), 5_000_000);
        assert_eq!(weighs(rank_record(50, 0, u64::MAX)), 5_000_000, "at most ten failures count");
        assert_eq!(weighs(rank_record(60, 2, 3)), 45_500_000);
        assert_eq!(weighs(rank_record(60, 3, 3)), 60_000_000);
        assert_eq!(weighs(rank_record(70, 10, u64::MAX)), 70_000_000);
        assert_eq!(
            weighs(rank_record(10, 0, 1)),
            10_000_000,
            "the rank score is never above the score"
        );
    }

    #[test]
    fn a_new_agent_has_no_penalty_only_if_its_owner_has_none() {
        let new = RankRecord { jobs_settled: 0, ..rank_record(50, 0, 0) };
        assert_eq!(new.experience(), Experience::New);
        assert_eq!(RankRecord { owner_failures: 1, ..new }.experience(), Experience::Penalized);
        assert_eq!(
            RankRecord { jobs_settled: 1, owner_failures: 1, ..new }.experience(),
            Experience::Proven
        );
        assert!(Experience::Proven < Experience::New && Experience::New < Experience::Penalized);
    }

    #[test]
    fn a_score_that_only_strangers_brought_down_is_worth_what_it_was() {
        let spoilt = RankRecord { score: Score::MIN, ..rank_record(60, 3, 0) };
        assert_eq!(weighs(spoilt), 60_000_000);
        let praised = RankRecord { score: Score::MAX, ..rank_record(50, 9, 0) };
        assert_eq!(weighs(praised), 50_000_000);
    }
}
