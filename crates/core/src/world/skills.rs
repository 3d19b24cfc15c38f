//! The skills index: which agents offer a skill, in every order in which they are read, without
//! scanning all agents.
//!
//! For each skill the online agents are in groups of one price. A group keeps its agents that have
//! capacity in the orders of the selection strategies, and those at capacity in discovery order
//! only. A query merges the groups within its price limit and stops when it has enough, so its cost
//! depends on the result and on the number of different prices, not on the number of agents. The
//! jobs that wait for a skill are kept beside its agents.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::sorted_merge::SortedMerge;
use super::sorted_set::SortedSet;
use crate::agent::Agent;
use crate::id::{AgentId, JobId};
use crate::money::Credits;
use crate::price_step::PriceStep;
use crate::reputation::Score;

/// Above this many members a group keeps counts by score, so that counting needs no scan.
const COUNTED_FROM: usize = 256;
/// Scores fall into buckets of one point each, 0 to 100.
const BUCKETS: usize = 101;
/// Marks agents that name a price for each job, in the order of registration.
const BY_OFFER: u64 = 1 << 32;
/// No limit on the price.
pub const ANY_PRICE: Credits = Credits::from_micros(i64::MAX);

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

impl Rank {
    /// The rank in one word, which sorts in the same way. It ends with the agent.
    fn key(self) -> u64 {
        let below_best = (Score::MAX.millionths() - self.score.0.millionths()).unsigned_abs();
        join(below_best << 1 | u64::from(self.unproven), self.agent)
    }
}

/// What the index knows about an online agent besides its skills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listing {
    pub rank: Rank,
    /// How many jobs are assigned to it.
    pub load: usize,
    /// Whether it accepts another job at the same time.
    pub has_capacity: bool,
    /// The first agent of its owner: the place of the owner in the rotation.
    pub place: AgentId,
}

/// The agents of one skill and price. The keys of each set end with the agent.
#[derive(Clone, Debug, Default)]
struct PriceGroup {
    /// How many active agents ask this price, online or not.
    listed: usize,
    /// Online agents with capacity, in discovery order.
    by_rank: SortedSet<u64>,
    /// The same in order of registration, those that name a price for each job last.
    by_registration: SortedSet<u64>,
    /// The same, those with the fewest assigned jobs first.
    by_load: SortedSet<u64>,
    /// The same in the order of the rotation: by owner, then by registration.
    by_turn: SortedSet<u64>,
    /// Online agents at capacity, in discovery order.
    full: SortedSet<u64>,
    counts: Option<Box<[u32; BUCKETS]>>,
}

#[derive(Clone, Debug, Default)]
struct SkillEntry {
    groups: BTreeMap<Credits, Box<PriceGroup>>,
    /// How many agents are online, and how many of them have capacity.
    online: usize,
    available: usize,
    /// Active agents that are offline, in discovery order.
    offline: SortedSet<u64>,
    /// Jobs that wait for an agent with the skill, by the highest price they can pay.
    waiting: BTreeSet<(Credits, JobId)>,
}

/// The agents that offer each skill.
#[derive(Clone, Debug, Default)]
pub struct SkillIndex {
    by_name: HashMap<String, SkillEntry>,
    /// Skills with a waiting job and an online agent that has capacity.
    servable: BTreeSet<String>,
}

impl SkillIndex {
    /// Adds or removes an active agent's skills in the counts, whether or not it is online.
    pub(super) fn set_listed(&mut self, agent: &Agent, add: bool) {
        for skill in &agent.skills {
            let offered = self.entry(&skill.name);
            let group = offered.groups.entry(skill.price).or_default();
            group.listed = if add { group.listed + 1 } else { group.listed.saturating_sub(1) };
            offered.drop_group_if_unused(skill.price);
            self.drop_if_unused(&skill.name);
        }
    }

    /// Inserts an online agent.
    pub(super) fn insert_online(&mut self, agent: &Agent, listing: Listing) {
        for skill in &agent.skills {
            let offered = self.entry(&skill.name);
            let group = offered.groups.entry(skill.price).or_default();
            if group.insert(listing, skill.by_offer) {
                offered.online += 1;
                offered.available += usize::from(listing.has_capacity);
            }
            self.update_servable(&skill.name);
        }
    }

    /// Removes an online agent.
    pub(super) fn remove_online(&mut self, agent: &Agent, listing: Listing) {
        for skill in &agent.skills {
            let Some(offered) = self.by_name.get_mut(&skill.name) else { continue };
            let group = offered.groups.get_mut(&skill.price);
            if group.is_some_and(|group| group.remove(listing, skill.by_offer)) {
                offered.online -= 1;
                offered.available -= usize::from(listing.has_capacity);
            }
            offered.drop_group_if_unused(skill.price);
            self.update_servable(&skill.name);
        }
    }

    /// Moves an online agent that has capacity before and after to its place by load.
    pub(super) fn move_load(&mut self, agent: &Agent, before: usize, after: usize) {
        for skill in &agent.skills {
            let offered = self.by_name.get_mut(&skill.name);
            if let Some(group) = offered.and_then(|one| one.groups.get_mut(&skill.price))
                && group.by_load.remove(load_key(before, agent.id))
            {
                group.by_load.insert(load_key(after, agent.id));
            }
        }
    }

    /// Inserts an active agent that is offline.
    pub(super) fn insert_offline(&mut self, agent: &Agent, rank: Rank) {
        for skill in &agent.skills {
            self.entry(&skill.name).offline.insert(rank.key());
        }
    }

    /// Removes an agent from the offline entries.
    pub(super) fn remove_offline(&mut self, agent: &Agent, rank: Rank) {
        for skill in &agent.skills {
            if let Some(offered) = self.by_name.get_mut(&skill.name) {
                offered.offline.remove(rank.key());
            }
        }
    }

    /// Adds a job that waits for an agent with the skill and pays at most `limit`.
    pub(super) fn insert_waiting(&mut self, skill: &str, limit: Credits, job: JobId) {
        self.entry(skill).waiting.insert((limit, job));
        self.update_servable(skill);
    }

    pub(super) fn remove_waiting(&mut self, skill: &str, limit: Credits, job: JobId) {
        if let Some(offered) = self.by_name.get_mut(skill)
            && offered.waiting.remove(&(limit, job))
            && offered.waiting.is_empty()
        {
            self.servable.remove(skill);
            self.drop_if_unused(skill);
        }
    }

    /// Jobs that wait for an agent with the skill.
    pub(super) fn waiting(&self, skill: &str) -> impl Iterator<Item = JobId> {
        let waiting = self.by_name.get(skill).into_iter().flat_map(|one| &one.waiting);
        waiting.map(|(_, job)| *job)
    }

    /// Waiting jobs for which an online agent has the skill, capacity and a price they can pay.
    pub(super) fn servable_jobs(&self) -> impl Iterator<Item = JobId> {
        let entries = self.servable.iter().filter_map(|name| self.by_name.get(name));
        entries.flat_map(|one| {
            let lowest = one.groups.iter().find(|(_, group)| !group.by_rank.is_empty());
            let payable = lowest.map(|(price, _)| one.waiting.range((*price, JobId(0))..));
            payable.into_iter().flatten().map(|(_, job)| *job)
        })
    }

    /// All agents with the skill: online first, then by rank, at any price.
    pub fn all_by_rank(&self, skill: &str) -> impl Iterator<Item = AgentId> {
        let offered = self.by_name.get(skill);
        let groups = offered.into_iter().flat_map(|one| one.groups.values());
        let sets = groups.flat_map(|group| [&group.by_rank, &group.full]);
        let online = SortedMerge::new(sets.map(SortedSet::iter));
        let offline = offered.into_iter().flat_map(|one| one.offline.iter());
        online.chain(offline).map(agent_in)
    }

    /// Online agents with the skill at no more than `max_price`, in discovery order.
    pub fn online_by_rank(
        &self,
        skill: &str,
        max_price: Option<Credits>,
    ) -> impl Iterator<Item = Candidate> {
        let groups = self.groups(skill, max_price.unwrap_or(ANY_PRICE));
        let sets =
            groups.flat_map(|(price, group)| [(price, &group.by_rank), (price, &group.full)]);
        merge_by_rank(sets)
    }

    /// The same without agents at capacity.
    pub(crate) fn available_by_rank(
        &self,
        skill: &str,
        max_price: Credits,
    ) -> impl Iterator<Item = Candidate> {
        merge_by_rank(self.groups(skill, max_price).map(|(price, group)| (price, &group.by_rank)))
    }

    /// Online agents with the skill and capacity at no more than `max_price`, by their rounded
    /// price and then by registration: only those with a listed price, or only those that name one
    /// for each job.
    pub(crate) fn available_by_price(
        &self,
        skill: &str,
        max_price: Credits,
        step: PriceStep,
        by_offer: bool,
    ) -> impl Iterator<Item = Candidate> {
        let mut groups = self.groups(skill, max_price).peekable();
        let classes = std::iter::from_fn(move || {
            let first = groups.next()?;
            let rounded = step.round_price(first.0);
            let same = |next: &(Credits, &PriceGroup)| step.round_price(next.0) == rounded;
            let class = std::iter::once(first)
                .chain(std::iter::from_fn(|| groups.next_if(same)))
                .map(|(price, group)| group.of_kind(by_offer).map(move |key| (key, price)));
            Some(SortedMerge::new(class))
        });
        classes.flatten().map(|(key, price)| Candidate { agent: agent_in(key), price })
    }

    /// Online agents with the skill and capacity at no more than `max_price`, with their number of
    /// assigned jobs: the fewest first, then by registration.
    pub(crate) fn available_by_load(
        &self,
        skill: &str,
        max_price: Credits,
    ) -> impl Iterator<Item = (usize, Candidate)> {
        let groups = self.groups(skill, max_price);
        let sets = groups.map(|(price, group)| group.by_load.iter().map(move |key| (key, price)));
        let merged = SortedMerge::new(sets);
        merged.map(|(key, price)| ((key >> 32) as usize, Candidate { agent: agent_in(key), price }))
    }

    /// Online agents with the skill and capacity at no more than `max_price`, with their owners'
    /// places in the rotation, in its order, from this place and agent on.
    pub(crate) fn available_by_turn(
        &self,
        skill: &str,
        max_price: Credits,
        from: (AgentId, AgentId),
    ) -> impl Iterator<Item = (AgentId, Candidate)> {
        let first = join(short(from.0).into(), from.1);
        let groups = self.groups(skill, max_price);
        let sets = groups
            .map(move |(price, group)| group.by_turn.from(first).map(move |key| (key, price)));
        let merged = SortedMerge::new(sets);
        merged.map(|(key, price)| (AgentId(key >> 32), Candidate { agent: agent_in(key), price }))
    }

    /// How many online agents have the skill, ask at most `max_price` and score at least `min`.
    pub fn count_online(&self, skill: &str, max_price: Option<Credits>, min: Score) -> usize {
        let groups = self.groups(skill, max_price.unwrap_or(ANY_PRICE));
        groups.map(|(_, group)| group.count(min)).sum()
    }

    /// The prices active agents ask for the skill, online or not, with their number, lowest first.
    pub fn prices(&self, skill: &str) -> impl Iterator<Item = (Credits, usize)> {
        let offered = self.by_name.get(skill).into_iter();
        let groups = offered.flat_map(|one| &one.groups);
        groups.filter(|(_, group)| group.listed > 0).map(|(price, group)| (*price, group.listed))
    }

    /// All skills offered now, unsorted.
    pub fn online_names(&self) -> impl Iterator<Item = &str> {
        let online = self.by_name.iter().filter(|(_, offered)| offered.online > 0);
        online.map(|(name, _)| name.as_str())
    }

    fn groups(
        &self,
        skill: &str,
        max_price: Credits,
    ) -> impl Iterator<Item = (Credits, &PriceGroup)> {
        let offered = self.by_name.get(skill).into_iter();
        let groups = offered.flat_map(move |one| one.groups.range(..=max_price));
        groups.map(|(price, group)| (*price, &**group))
    }

    /// The entry of a skill. Its name is copied only for the first agent or job.
    fn entry(&mut self, skill: &str) -> &mut SkillEntry {
        if !self.by_name.contains_key(skill) {
            self.by_name.insert(skill.to_owned(), SkillEntry::default());
        }
        self.by_name.get_mut(skill).expect("it was just inserted")
    }

    fn drop_if_unused(&mut self, skill: &str) {
        let unused = |one: &SkillEntry| one.groups.is_empty() && one.waiting.is_empty();
        if self.by_name.get(skill).is_some_and(unused) {
            self.by_name.remove(skill);
        }
    }

    fn update_servable(&mut self, skill: &str) {
        let Some(offered) = self.by_name.get(skill).filter(|one| !one.waiting.is_empty()) else {
            return;
        };
        if offered.available == 0 {
            self.servable.remove(skill);
        } else if !self.servable.contains(skill) {
            self.servable.insert(skill.to_owned());
        }
    }
}

impl SkillEntry {
    fn drop_group_if_unused(&mut self, price: Credits) {
        let unused = |group: &PriceGroup| group.listed == 0 && group.is_empty();
        if self.groups.get(&price).is_some_and(|group| unused(group)) {
            self.groups.remove(&price);
        }
    }
}

impl PriceGroup {
    /// Inserts an agent; false if it is listed already.
    fn insert(&mut self, listing: Listing, by_offer: bool) -> bool {
        let rank = listing.rank.key();
        if !listing.has_capacity {
            if !self.full.insert(rank) {
                return false;
            }
        } else if self.by_rank.insert(rank) {
            let agent = listing.rank.agent;
            self.by_registration.insert(registration_key(agent, by_offer));
            self.by_load.insert(load_key(listing.load, agent));
            self.by_turn.insert(join(short(listing.place).into(), agent));
        } else {
            return false;
        }
        if let Some(counts) = &mut self.counts {
            counts[bucket(listing.rank.score.0)] += 1;
        } else if self.len() >= COUNTED_FROM {
            let mut counts = Box::new([0; BUCKETS]);
            for rank in self.by_rank.iter().chain(self.full.iter()) {
                counts[bucket(score_in(rank))] += 1;
            }
            self.counts = Some(counts);
        }
        true
    }

    /// Removes an agent; false if it was not listed.
    fn remove(&mut self, listing: Listing, by_offer: bool) -> bool {
        let rank = listing.rank.key();
        if !listing.has_capacity {
            if !self.full.remove(rank) {
                return false;
            }
        } else if self.by_rank.remove(rank) {
            let agent = listing.rank.agent;
            self.by_registration.remove(registration_key(agent, by_offer));
            self.by_load.remove(load_key(listing.load, agent));
            self.by_turn.remove(join(short(listing.place).into(), agent));
        } else {
            return false;
        }
        if let Some(counts) = &mut self.counts {
            counts[bucket(listing.rank.score.0)] -= 1;
        }
        true
    }

    /// Agents with capacity whose price is listed, or that name one for each job.
    fn of_kind(&self, by_offer: bool) -> impl Iterator<Item = u64> {
        let (first, end) = if by_offer { (BY_OFFER, u64::MAX) } else { (0, BY_OFFER) };
        self.by_registration.from(first).take_while(move |key| *key < end)
    }

    fn is_empty(&self) -> bool {
        self.by_rank.is_empty() && self.full.is_empty()
    }

    fn len(&self) -> usize {
        self.by_rank.len() + self.full.len()
    }

    fn count(&self, min: Score) -> usize {
        if min == Score::MIN {
            return self.len();
        }
        let enough = |rank: &u64| score_in(*rank) >= min;
        let Some(counts) = &self.counts else {
            let above = |set: &SortedSet<u64>| set.iter().take_while(enough).count();
            return above(&self.by_rank) + above(&self.full);
        };
        // Whole buckets above the border are counted; only the border's own bucket is scanned.
        let border = bucket(min);
        let above: u32 = counts[border + 1..].iter().sum();
        if Score::from_millionths(border as i64 * 1_000_000) == min {
            return above as usize + counts[border] as usize;
        }
        let ceiling = Score::from_millionths((border as i64 + 1) * 1_000_000 - 1);
        let first = Rank { score: Reverse(ceiling), unproven: false, agent: AgentId(0) }.key();
        let at_border = |set: &SortedSet<u64>| set.from(first).take_while(enough).count();
        above as usize + at_border(&self.by_rank) + at_border(&self.full)
    }
}

/// Sets in discovery order, each of one price, read as one list. Among equal scores the lower price
/// comes first.
fn merge_by_rank<'a>(
    sets: impl Iterator<Item = (Credits, &'a SortedSet<u64>)>,
) -> impl Iterator<Item = Candidate> {
    let place = |price| move |key: u64| (key >> 32, price, agent_in(key));
    let merged = SortedMerge::new(sets.map(|(price, set)| set.iter().map(place(price))));
    merged.map(|(_, price, agent)| Candidate { agent, price })
}

fn bucket(score: Score) -> usize {
    (score.millionths() / 1_000_000) as usize
}

/// One word that sorts by the first part, then by the agent.
fn join(first: u64, agent: AgentId) -> u64 {
    first << 32 | u64::from(short(agent))
}

fn short(agent: AgentId) -> u32 {
    u32::try_from(agent.0).expect("ids are handed out in order, and the row of each is in memory")
}

fn registration_key(agent: AgentId, by_offer: bool) -> u64 {
    join(u64::from(by_offer), agent)
}

fn load_key(load: usize, agent: AgentId) -> u64 {
    join(load as u64, agent)
}

fn agent_in(key: u64) -> AgentId {
    AgentId(u64::from(key as u32))
}

fn score_in(rank: u64) -> Score {
    Score::from_millionths(Score::MAX.millionths() - (rank >> 33) as i64)
}
