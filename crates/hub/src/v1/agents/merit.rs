//! Merit: what our own ranking makes of an agent's record.
//!
//! The published score is one number that a few friends can drive up, and that starts anew with every
//! new id. So our ranking takes it only as far as others bear it out:
//!
//! - **Patrons** (T35). A patron is another owner for whom the agent has done a job well. Above 50 every
//!   patron is good for 5 points: whoever has worked for one owner only ranks with at most 55, however
//!   often that owner was content. Among equals more patrons come first, then more credits paid by them.
//! - **Shade** (T36). Failures of other agents that its owner has or had count for an agent as if they
//!   were its own, at most ten of them, and every patron makes up for one. Whoever is new and in the
//!   shade stands behind everybody who is new and is not.
//!
//! - **Strangers**. Free work for somebody who never paid or was paid counts for nothing, good or bad:
//!   such requesters cost nothing to make up.
//!
//! The score itself, and the rankings that the protocols publish, stay as they are.

use rialto_core::id::AgentId;
use rialto_core::money::Credits;
use rialto_core::reputation::Score;
use rialto_core::world::World;

/// Points above the start that one patron bears out, in millionths.
const BORNE_OUT: i64 = 5_000_000;
/// Failures of an owner's other agents that count for one agent.
const INHERITED_MAX: u64 = 10;

/// An agent's record, as far as it decides its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merit {
    /// The published score.
    pub score: Score,
    /// The same without free work of strangers.
    pub weighed: Score,
    /// Jobs finished for other owners, without free work of strangers.
    pub settled: u64,
    /// Other owners it has done a job for well.
    pub patrons: u64,
    /// What they have paid for that.
    pub paid: Credits,
    /// Failures of its owner's other agents.
    pub inherited: u64,
}

/// How well one is known. The order is that of the ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Known {
    /// It has finished a job for another owner.
    Proven,
    New,
    /// It is new, and others of its owner have failed.
    Shaded,
}

impl Merit {
    pub fn of(world: &World, agent: AgentId) -> Option<Self> {
        let desk = world.desk(agent)?;
        Some(Self {
            score: desk.standing.score,
            weighed: desk.weighed().score,
            settled: desk.weighed().settled(),
            patrons: desk.patrons.count() as u64,
            paid: desk.patrons.paid(),
            inherited: world.failures_elsewhere(agent),
        })
    }

    pub fn known(&self) -> Known {
        match (self.settled, self.shade()) {
            (1.., _) => Known::Proven,
            (0, 0) => Known::New,
            (0, _) => Known::Shaded,
        }
    }

    /// What the score is worth; never more than the score without free work of strangers.
    pub fn weight(&self) -> Score {
        let start = Score::START.millionths();
        let patrons = i64::try_from(self.patrons).unwrap_or(i64::MAX);
        let borne_out = start.saturating_add(BORNE_OUT.saturating_mul(patrons));
        let weight = self.weighed.min(Score::from_millionths(borne_out));
        match self.shade() {
            0 => weight,
            shade => weight.min((0..shade).fold(Score::START, |score, _| score.after_failure())),
        }
    }

    /// Failures of others that count for it.
    fn shade(&self) -> u64 {
        self.inherited.min(INHERITED_MAX).saturating_sub(self.patrons)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merit(score: i64, patrons: u64, inherited: u64) -> Merit {
        let score = Score::from_millionths(score * 1_000_000);
        Merit { score, weighed: score, settled: 1, patrons, paid: Credits::ZERO, inherited }
    }

    fn weighs(merit: Merit) -> i64 {
        merit.weight().millionths()
    }

    #[test]
    fn a_score_is_worth_what_patrons_bear_out() {
        assert_eq!(weighs(merit(100, 0, 0)), 50_000_000);
        assert_eq!(weighs(merit(100, 1, 0)), 55_000_000);
        assert_eq!(weighs(merit(100, 9, 0)), 95_000_000);
        assert_eq!(weighs(merit(100, 64, 0)), 100_000_000);
        assert_eq!(weighs(merit(53, 1, 0)), 53_000_000);
        assert_eq!(weighs(merit(20, 0, 0)), 20_000_000, "a bad score needs nobody to bear it out");
    }

    #[test]
    fn an_owners_failures_follow_until_as_many_patrons_have_made_up_for_them() {
        assert_eq!(weighs(merit(50, 0, 1)), 45_500_000);
        assert_eq!(weighs(merit(50, 0, 10)), 5_000_000);
        assert_eq!(weighs(merit(50, 0, u64::MAX)), 5_000_000, "no more than ten count");
        assert_eq!(weighs(merit(60, 2, 3)), 45_500_000);
        assert_eq!(weighs(merit(60, 3, 3)), 60_000_000);
        assert_eq!(weighs(merit(70, 10, u64::MAX)), 70_000_000);
        assert_eq!(weighs(merit(10, 0, 1)), 10_000_000, "it is never worth more than it is");
    }

    #[test]
    fn whoever_is_new_is_clean_only_if_its_owner_is() {
        let new = Merit { settled: 0, ..merit(50, 0, 0) };
        assert_eq!(new.known(), Known::New);
        assert_eq!(Merit { inherited: 1, ..new }.known(), Known::Shaded);
        assert_eq!(Merit { settled: 1, inherited: 1, ..new }.known(), Known::Proven);
        assert!(Known::Proven < Known::New && Known::New < Known::Shaded);
    }

    #[test]
    fn a_score_that_only_strangers_brought_down_is_worth_what_it_was() {
        let spoilt = Merit { score: Score::MIN, ..merit(60, 3, 0) };
        assert_eq!(weighs(spoilt), 60_000_000);
        let praised = Merit { score: Score::MAX, ..merit(50, 9, 0) };
        assert_eq!(weighs(praised), 50_000_000);
    }
}
