//! A life: one simulated hub from its first start to its end, step by step.
//!
//! A step is a number. Everything it does follows from the random numbers seeded with it and from
//! the state when it runs, so a life can be repeated without some of its steps.

use std::sync::Arc;

use rialto_core::agent::key_limits::KeyLimits;
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::confusables::Confusables;
use rialto_core::idempotency::SavedSize;
use rialto_core::job::progress::ProgressLimits;
use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::Rules;
use rialto_core::world::footprint::MemoryLimits;
use tokio::runtime::Runtime;

use crate::ask::{Ask, Outcome};
use crate::cast::somebody;
use crate::dice::{Dice, mix};
use crate::hub::{End, Ended, Hub};
use crate::log::Log;
use crate::net::Net;
use crate::orders;
use crate::rest;
use crate::run::Simulation;
use crate::store::WrittenPart;

/// When every life starts.
pub const DAWN: Timestamp = Timestamp(1_000_000_000);
/// Bytes printed of one command or answer.
const TOLD_MAX: usize = 220;
/// Requests without a reply that are still to be repeated.
const UNHEARD_MAX: usize = 32;
/// Percent of steps after which a checkpoint begins or ends.
const CHECKPOINTS: u64 = 15;

/// One hub and all agents around it.
pub struct Life {
    pub hub: Hub,
    pub net: Net,
    pub log: Log,
    /// Commands that never got a reply, to be repeated.
    unheard: Vec<Ask>,
    /// The current step.
    number: u64,
    told: Option<Vec<String>>,
}

impl Simulation for Life {
    type Options = ();

    const AS_A_RULE: u64 = 500;

    /// A hub with all its agents.
    fn begin(seed: u64, (): (), runtime: Arc<Runtime>) -> Self {
        let mut dice = Dice::new(mix(seed, u64::MAX));
        let hub = Hub::new(rules(&mut dice), DAWN, runtime);
        let (net, log) = (Net::default(), Log::default());
        let mut life = Self { hub, net, log, unheard: Vec::new(), number: seed, told: None };
        let asks = orders::opening(&mut dice, &life.hub.model.scene, DAWN);
        life.turn(asks, End::Well);
        life
    }

    fn step(&mut self, number: u64) {
        self.number = number;
        let dice = &mut Dice::new(number);
        if dice.chance(50) {
            self.hub.wait(Millis(dice.within_seconds(4)));
        }
        match dice.roll(100) {
            0..74 => self.orders(dice),
            74..82 => self.reading(dice),
            82..86 => self.net.arrive(dice),
            86..90 => self.acking(dice),
            90..95 => self.pushing(dice),
            95..98 => self.time(dice),
            98 => self.hub.checkpoint(),
            _ => self.crash(dice),
        }
        // Separate random numbers, so that a step is the same wherever checkpoints are.
        if Dice::new(mix(number, 2)).chance(CHECKPOINTS) {
            self.hub.checkpoint();
        }
    }

    fn end_well(&mut self, audited: bool) {
        rest::comes_to_rest(&mut self.hub, &mut self.log);
        self.net.heal(&self.hub);
        rest::everything_is_kept(&mut self.hub);
        if audited {
            rest::audit_is_clean(&self.hub.model);
        }
    }

    fn log(&self) -> &Log {
        &self.log
    }

    fn told(&mut self) -> &mut Option<Vec<String>> {
        &mut self.told
    }

    fn flags((): ()) -> String {
        String::new()
    }
}

impl Life {
    /// A few commands at once, mostly of different agents, and sometimes a few more while the hub
    /// still writes those.
    fn orders(&mut self, dice: &mut Dice) {
        let first = commands(dice, &self.hub, &mut self.unheard);
        let ends = match dice.roll(10) {
            0..7 => vec![end(dice, 200)],
            7..9 => ends(dice, 2),
            _ => ends(dice, 3),
        };
        if let [end] = ends[..] {
            return self.turn(first, end);
        }
        let now = self.hub.now();
        self.tell(|| told_batch(now, ends[0], &first));
        let Self { hub, unheard, told, .. } = self;
        let mut later = |hub: &mut Hub, earlier: &[Ask]| {
            meanwhile(dice, hub);
            let mut asks = commands(dice, hub, unheard);
            // A repeat finds what is in the log and not in the store yet.
            let repeatable: Vec<&Ask> = earlier.iter().filter(|ask| ask.is_repeatable()).collect();
            if dice.chance(60) {
                asks.extend(dice.pick(&repeatable).map(|ask| Ask::clone(ask).again(dice)));
            }
            if let Some(told) = told {
                told.push(format!(
                    "    on top of it, at {}: {}",
                    hub.now().0 - now.0,
                    words(&asks)
                ));
            }
            asks
        };
        let all = hub.turns(first, &ends, &mut later);
        self.ended(all);
    }

    fn reading(&mut self, dice: &mut Dice) {
        let anybody = somebody(dice, &self.hub.model.scene);
        let connected = self.net.connected(dice).filter(|_| dice.chance(60));
        let agent = connected.unwrap_or(anybody);
        if self.hub.world().agent(agent).is_none() {
            return;
        }
        if self.net.read(dice, &mut self.hub, agent) {
            self.log.census.count("~read from memory");
        }
        self.tell(|| format!("{agent} reads"));
        // A reader counts as seen; checking for jobs that wait for it is a separate command.
        if self.hub.world().queued_jobs().next().is_none() {
            self.hub.seen(agent);
        } else {
            self.turn(vec![Command::RecordActivity { agent }.into()], End::Well);
        }
    }

    fn acking(&mut self, dice: &mut Dice) {
        let Some(command) = self.net.ack(dice) else { return };
        let end = end(dice, 200);
        self.turn(vec![command.into()], end);
    }

    fn pushing(&mut self, dice: &mut Dice) {
        let now = self.hub.now();
        self.net.push(dice, self.hub.world(), now);
        let mut asks: Vec<Ask> = Vec::new();
        for _ in 0..=dice.roll(3) {
            asks.extend(self.net.pushed(dice, &self.hub.model.scene, now).map(Ask::from));
        }
        if dice.chance(10) {
            let mut all: Vec<_> = self.hub.world().deliveries().map(|push| push.notice).collect();
            all.sort_unstable();
            let again = dice.pick(&all).map(|notice| Command::RetryDelivery { notice: *notice });
            asks.extend(again.map(Ask::from));
        }
        let end = end(dice, 200);
        self.turn(asks, end);
    }

    /// Time passes, in most cases up to the next due time.
    fn time(&mut self, dice: &mut Dice) {
        let now = self.hub.now();
        let next = self.hub.world().next_timer_at().map(|at| at.since(now));
        let span = match (dice.roll(10), next) {
            (0..=4, Some(next)) => Millis(next.0 + dice.of([-1, 0, 0, 1])),
            (5..=8, _) | (_, None) => Millis(dice.within_seconds(120)),
            _ => {
                // Sometimes so long that saved answers may expire.
                let most = dice.of([7_200, 7_200, 100_000]);
                Millis(dice.within_seconds(most))
            }
        };
        self.hub.wait(Millis(span.0.max(0)));
        self.turn(Vec::new(), End::Well);
    }

    fn crash(&mut self, dice: &mut Dice) {
        let now = self.hub.now();
        self.tell(|| "the hub crashes".to_owned());
        self.log.census.count("~crash");
        let wall = match dice.roll(10) {
            0 => now.plus(Millis(-dice.within_seconds(7_200))),
            1 => now.plus(Millis(dice.within_seconds(40_000))),
            _ => now.plus(Millis(dice.within_seconds(5))),
        };
        self.hub.restart(wall);
        self.net.cut();
    }

    /// Runs a batch and passes its results on.
    fn turn(&mut self, asks: Vec<Ask>, end: End) {
        let now = self.hub.now();
        self.tell(|| told_batch(now, end, &asks));
        let ended = self.hub.turn(asks, end);
        self.ended(vec![ended]);
    }

    /// Passes the results of batches on.
    fn ended(&mut self, all: Vec<Ended>) {
        let crashed = all.iter().any(|ended| ended.crashed);
        self.log.census.add("~on top of another", all.len() as u64 - 1);
        for ended in all {
            self.log.hash.number(ended.at.0.unsigned_abs());
            self.log.ended(&ended);
            for (ask, outcome) in ended.asks.iter().zip(&ended.outcomes) {
                self.log.asked(ask, outcome);
                self.tell(|| format!("    {}", shortened(outcome)));
                self.heard(ask, outcome, ended.changes.as_ref());
            }
        }
        if crashed {
            // Separate random numbers, so that a crash is the same whatever led to it.
            self.crash(&mut Dice::new(mix(self.number, 1)));
        }
    }

    fn heard(
        &mut self,
        ask: &Ask,
        outcome: &Outcome,
        changes: Option<&rialto_core::changes::Changes>,
    ) {
        match outcome {
            Outcome::Answered { answer, replayed: false } => {
                self.net.answered(answer, changes);
                if let (Command::Ack { agent, .. }, Answer::Position(at)) = (ask.command(), answer)
                {
                    self.net.acked(*agent, *at);
                }
            }
            Outcome::Full | Outcome::Lost
                if ask.is_repeatable() && self.unheard.len() < UNHEARD_MAX =>
            {
                self.unheard.push(ask.clone());
            }
            _ => {}
        }
    }

    fn tell(&mut self, words: impl FnOnce() -> String) {
        if let Some(told) = &mut self.told {
            told.push(words());
        }
    }
}

/// A few commands, some of them repeats of those that never got a reply.
fn commands(dice: &mut Dice, hub: &Hub, unheard: &mut Vec<Ask>) -> Vec<Ask> {
    let mut asks = Vec::new();
    for _ in 0..=dice.roll(4) {
        let again = (dice.roll(unheard.len() as u64 + 12) as usize)
            .checked_sub(12)
            .map(|at| unheard.swap_remove(at).again(dice));
        asks.extend(again.or_else(|| orders::next(dice, &hub.model.scene, hub.now())));
    }
    // A caller sends the same request twice at once.
    if dice.chance(3) {
        let last = asks.last().cloned().filter(Ask::is_repeatable);
        asks.extend(last.map(|ask| ask.again(dice)));
    }
    asks
}

/// What happens while a batch is in the log.
fn meanwhile(dice: &mut Dice, hub: &mut Hub) {
    match dice.roll(10) {
        0..3 => hub.wait(Millis(dice.within_seconds(4))),
        3 | 4 => {
            let next = hub.world().next_timer_at().map(|at| at.since(hub.now()));
            hub.wait(Millis(next.map_or(0, |next| next.0.max(0))));
        }
        // Saved answers may expire.
        5 if dice.chance(20) => hub.wait(Millis(dice.within_seconds(100_000))),
        6 => hub.checkpoint(),
        _ => {}
    }
    let agent = somebody(dice, &hub.model.scene);
    let shown = hub.model.shown();
    let (head, is_known) = (shown.inbox(agent).head, shown.agent(agent).is_some());
    let is_work_queued = shown.queued_jobs().next().is_some();
    if is_known && !is_work_queued && dice.chance(30) {
        hub.seen(agent);
    }
    if head > 0 && dice.chance(30) {
        hub.presented(agent, 1 + dice.roll(head));
    }
}

/// How a batch ends: in ten of so many cases not well.
fn end(dice: &mut Dice, cases: u64) -> End {
    let part = dice.of([WrittenPart::Nothing, WrittenPart::Part]);
    match dice.roll(cases) {
        0..=3 => End::Full(part),
        4 => End::Broken(part),
        5 => End::Cut(part),
        6 => End::Broken(WrittenPart::Whole),
        7 => End::Cut(WrittenPart::Whole),
        8 | 9 => End::Unheard,
        _ => End::Well,
    }
}

/// The ends of batches that are decided on top of each other.
fn ends(dice: &mut Dice, batches: usize) -> Vec<End> {
    (0..batches).map(|_| end(dice, 160)).collect()
}

fn told_batch(now: Timestamp, end: End, asks: &[Ask]) -> String {
    format!("at {} {end:?}: {}", now.0 - DAWN.0, words(asks))
}

fn words(asks: &[Ask]) -> String {
    asks.iter().map(|ask| shortened(&ask.0)).collect::<Vec<_>>().join("; ")
}

/// Limits low enough that each one is reached now and then.
pub fn rules(dice: &mut Dice) -> Rules {
    Rules {
        default_key_limits: if dice.chance(70) {
            orders::keys::limits(dice)
        } else {
            KeyLimits::NONE
        },
        welcome_grant: Credits::from_micros(dice.of([0, 3_000_000, 10_000_000])),
        inbox_messages_max: dice.of([0, 4, 12]),
        grace_period: Millis(dice.of([0, 1_000, 30_000])),
        invitations_max: dice.of([6, 10_000]),
        attempts_max: dice.of([3, 4, 16]),
        assignments_before_backoff: 2,
        answer_timeout: Millis(dice.of([5_000, 120_000])),
        progress: ProgressLimits {
            reports: dice.of([1, 3]),
            questions: dice.of([1, 2]),
            ..ProgressLimits::default()
        },
        agents_per_owner_max: dice.of([3, 100]),
        open_jobs_max: dice.of([4, 100]),
        memory: MemoryLimits {
            total: dice.of([150_000, 1 << 30, 1 << 30]),
            per_owner: dice.of([20_000, 1 << 30, 1 << 30]),
        },
        saved_per_principal: SavedSize { answers: dice.of([0, 2, 100]), bytes: dice.of([0, 40]) },
        confusables: Confusables {
            owner_skeletons: |name| vec![name.to_lowercase()],
            ..Confusables::default()
        },
        ..Rules::default()
    }
}

pub fn shortened(what: &impl std::fmt::Debug) -> String {
    let mut text = format!("{what:?}");
    if text.len() > TOLD_MAX {
        let mut at = TOLD_MAX;
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        text.truncate(at);
        text.push('…');
    }
    text
}
