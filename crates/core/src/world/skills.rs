//! The skills index: which agents offer a skill, in discovery order, without scanning all agents.
//!
//! For each skill the online agents are in groups of one price, each sorted by rank. A query by
//! skill, price and score merges the groups it needs and stops when it has enough, so its cost
//! depends on the result and not on the number of agents.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::iter::Peekable;

use crate::agent::Agent;
use crate::id::AgentId;
use crate::money::Credits;
use crate::reputation::Score;

/// Above this many members a group keeps counts by score, so that counting needs no scan.
const COUNTED_FROM: usize = 256;
/// Scores fall into buckets of one point each, 0 to 100.
const BUCKETS: usize = 101;

/// An agent that could take a job, and its price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub agent: AgentId,
    pub price: Credits,
}

/// Position in discovery order: best score first, then proven before new, then first registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub score: Reverse<Score>,
    pub unproven: bool,
    pub agent: AgentId,
}

/// Position in discovery order across prices: the price decides before seniority.
type SortKey = (Reverse<Score>, bool, Credits, AgentId);

#[derive(Clone, Debug, Default)]
struct PriceGroup {
    ranked: BTreeSet<Rank>,
    counts: Option<Box<[u32; BUCKETS]>>,
}

#[derive(Clone, Debug, Default)]
struct SkillEntry {
    /// Online agents by price.
    online: BTreeMap<Credits, PriceGroup>,
    /// Active agents that are offline.
    offline: BTreeSet<Rank>,
    /// How many active agents ask each price, online or not.
    price_counts: BTreeMap<Credits, usize>,
}

/// The agents that offer each skill.
#[derive(Clone, Debug, Default)]
pub struct SkillIndex {
    by_name: HashMap<String, SkillEntry>,
}

impl SkillIndex {
    /// Adds or removes an active agent's skills in the counts, whether or not it is online.
    pub(super) fn set_listed(&mut self, agent: &Agent, add: bool) {
        for skill in &agent.skills {
            let offered = self.by_name.entry(skill.name.clone()).or_default();
            let count = offered.price_counts.entry(skill.price).or_default();
            *count = if add { *count + 1 } else { count.saturating_sub(1) };
            if *count == 0 {
                offered.price_counts.remove(&skill.price);
            }
            if offered.price_counts.is_empty() {
                self.by_name.remove(&skill.name);
            }
        }
    }

    /// Inserts an online agent.
    pub(super) fn insert_online(&mut self, agent: &Agent, rank: Rank) {
        for skill in &agent.skills {
            let offered = self.by_name.entry(skill.name.clone()).or_default();
            offered.online.entry(skill.price).or_default().insert(rank);
        }
    }

    /// Inserts an active agent that is offline.
    pub(super) fn insert_offline(&mut self, agent: &Agent, rank: Rank) {
        for skill in &agent.skills {
            self.by_name.entry(skill.name.clone()).or_default().offline.insert(rank);
        }
    }

    /// Removes an agent from the offline entries.
    pub(super) fn remove_offline(&mut self, agent: &Agent, rank: Rank) {
        for skill in &agent.skills {
            if let Some(offered) = self.by_name.get_mut(&skill.name) {
                offered.offline.remove(&rank);
            }
        }
    }

    /// All agents with the skill: online first, then by rank, at any price.
    pub fn all_by_rank(&self, skill: &str) -> impl Iterator<Item = AgentId> {
        let offered = self.by_name.get(skill);
        let groups = offered.into_iter().flat_map(|one| &one.online);
        let groups = groups.map(|(price, group)| (*price, group.ranked.iter().peekable()));
        let online = RankedMerge::of(groups, false);
        let away = offered.into_iter().flat_map(|one| &one.offline);
        online.map(|one| one.agent).chain(away.map(|rank| rank.agent))
    }

    /// Removes an online agent.
    pub(super) fn remove_online(&mut self, agent: &Agent, rank: Rank) {
        for skill in &agent.skills {
            let Some(offered) = self.by_name.get_mut(&skill.name) else { continue };
            if let Some(group) = offered.online.get_mut(&skill.price) {
                group.remove(rank);
                if group.ranked.is_empty() {
                    offered.online.remove(&skill.price);
                }
            }
        }
    }

    /// Online agents with the skill at no more than `max_price`, in discovery order.
    pub fn online_by_rank(&self, skill: &str, max_price: Option<Credits>) -> RankedMerge<'_> {
        let limit = max_price.unwrap_or(Credits::from_micros(i64::MAX));
        let groups = self.by_name.get(skill).into_iter().flat_map(|one| one.online.range(..=limit));
        RankedMerge::of(groups.map(|(price, group)| (*price, group.ranked.iter().peekable())), true)
    }

    /// How many online agents have the skill, ask at most `max_price` and score at least `min`.
    pub fn count_online(&self, skill: &str, max_price: Option<Credits>, min: Score) -> usize {
        let limit = max_price.unwrap_or(Credits::from_micros(i64::MAX));
        let groups = self.by_name.get(skill).into_iter().flat_map(|one| one.online.range(..=limit));
        groups.map(|(_, group)| group.count(min)).sum()
    }

    /// The prices active agents ask for the skill, online or not, with their number.
    pub fn prices(&self, skill: &str) -> Vec<(Credits, usize)> {
        let offered = self.by_name.get(skill);
        offered
            .map(|one| one.price_counts.iter().map(|(p, n)| (*p, *n)).collect())
            .unwrap_or_default()
    }

    /// All skills offered now, unsorted.
    pub fn online_names(&self) -> impl Iterator<Item = &str> {
        let online = self.by_name.iter().filter(|(_, offered)| !offered.online.is_empty());
        online.map(|(name, _)| name.as_str())
    }
}

impl PriceGroup {
    fn insert(&mut self, rank: Rank) {
        if !self.ranked.insert(rank) {
            return;
        }
        if let Some(counts) = &mut self.counts {
            counts[bucket(rank.score.0)] += 1;
        } else if self.ranked.len() >= COUNTED_FROM {
            let mut counts = Box::new([0; BUCKETS]);
            for rank in &self.ranked {
                counts[bucket(rank.score.0)] += 1;
            }
            self.counts = Some(counts);
        }
    }

    fn remove(&mut self, rank: Rank) {
        if self.ranked.remove(&rank)
            && let Some(counts) = &mut self.counts
        {
            counts[bucket(rank.score.0)] -= 1;
        }
    }

    fn count(&self, min: Score) -> usize {
        if min == Score::MIN {
            return self.ranked.len();
        }
        let enough = |rank: &&Rank| rank.score.0 >= min;
        let Some(counts) = &self.counts else {
            return self.ranked.iter().take_while(enough).count();
        };
        // Whole buckets above the border are counted; only the border's own bucket is scanned.
        let border = bucket(min);
        let above: u32 = counts[border + 1..].iter().sum();
        if Score::from_millionths(border as i64 * 1_000_000) == min {
            return above as usize + counts[border] as usize;
        }
        let ceiling = Score::from_millionths((border as i64 + 1) * 1_000_000 - 1);
        let first = Rank { score: Reverse(ceiling), unproven: false, agent: AgentId(0) };
        above as usize + self.ranked.range(first..).take_while(enough).count()
    }
}

fn bucket(score: Score) -> usize {
    (score.millionths() / 1_000_000) as usize
}

type RankIter<'a> = Peekable<std::collections::btree_set::Iter<'a, Rank>>;

/// Several price groups read as one list in discovery order.
pub struct RankedMerge<'a> {
    groups: Vec<(Credits, RankIter<'a>)>,
    heads: BinaryHeap<Reverse<(SortKey, usize)>>,
    /// Whether the lower price comes first among equals.
    price_decides: bool,
}

impl<'a> RankedMerge<'a> {
    fn of(groups: impl Iterator<Item = (Credits, RankIter<'a>)>, price_decides: bool) -> Self {
        let mut merge = Self { groups: groups.collect(), heads: BinaryHeap::new(), price_decides };
        for at in 0..merge.groups.len() {
            merge.push_head(at);
        }
        merge
    }

    fn push_head(&mut self, at: usize) {
        let (price, ranks) = &mut self.groups[at];
        if let Some(rank) = ranks.peek() {
            let price = if self.price_decides { *price } else { Credits::ZERO };
            let place = (rank.score, rank.unproven, price, rank.agent);
            self.heads.push(Reverse((place, at)));
        }
    }
}

impl Iterator for RankedMerge<'_> {
    type Item = Candidate;

    fn next(&mut self) -> Option<Candidate> {
        let Reverse(((_, _, _, agent), at)) = self.heads.pop()?;
        let price = self.groups[at].0;
        self.groups[at].1.next();
        self.push_head(at);
        Some(Candidate { agent, price })
    }
}
