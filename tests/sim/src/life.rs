//! A life: one simulated hub from its first start to its end, step by step.
//!
//! A step is a number. Everything it does follows from the random numbers seeded with it and from
//! the state when it runs, so a life can be repeated without some of its steps.

use std::sync::Arc;

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
use crate::hub::{End, Hub};
use crate::log::Log;
use crate::net::Net;
use crate::orders;
use crate::rest;

/// When every life starts.
const DAWN: Timestamp = Timestamp(1_000_000_000);
/// Bytes printed of one command or answer.
const TOLD_MAX: usize = 220;
/// Requests without a reply that are still to be repeated.
const UNHEARD_MAX: usize = 32;

/// One hub and all agents around it.
pub struct Life {
    pub hub: Hub,
    pub net: Net,
    pub log: Log,
    /// Commands that never got a reply, to be repeated.
    unheard: Vec<Ask>,
    /// The current step.
    number: u64,
    /// A readable record of what was done, if one is wanted.
    pub told: Option<Vec<String>>,
}

impl Life {
    /// A hub with all its agents.
    pub fn begin(seed: u64, runtime: Arc<Runtime>) -> Self {
        let mut dice = Dice::new(mix(seed, u64::MAX));
        let hub = Hub::new(rules(&mut dice), DAWN, runtime);
        let (net, log) = (Net::default(), Log::default());
        let mut life = Self { hub, net, log, unheard: Vec::new(), number: seed, told: None };
        let asks = orders::opening(&mut dice, &life.hub.model.scene, DAWN);
        life.turn(&asks, End::Well);
        life
    }

    /// Runs the step of this number.
    pub fn step(&mut self, number: u64) {
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
            98 => self.hub.tend(),
            _ => self.crash(dice),
        }
    }

    /// A few commands at once, mostly of different agents.
    fn orders(&mut self, dice: &mut Dice) {
        let mut asks = Vec::new();
        for _ in 0..=dice.roll(4) {
            let again = (dice.roll(self.unheard.len() as u64 + 12) as usize)
                .checked_sub(12)
                .map(|at| self.unheard.swap_remove(at).again(dice));
            let scene = &self.hub.model.scene;
            asks.extend(again.or_else(|| orders::next(dice, scene, self.hub.now())));
        }
        // A caller sends the same request twice at once.
        if dice.chance(3) {
            let last = asks.last().cloned().filter(Ask::is_repeatable);
            asks.extend(last.map(|ask| ask.again(dice)));
        }
        let end = self.end(dice);
        self.turn(&asks, end);
    }

    fn end(&self, dice: &mut Dice) -> End {
        match dice.roll(200) {
            0..=3 => End::Full,
            4 | 5 => End::Broken { written: false },
            6 | 7 => End::Broken { written: true },
            8 | 9 => End::Unheard,
            _ => End::Well,
        }
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
            self.turn(&[Command::RecordActivity { agent }.into()], End::Well);
        }
    }

    fn acking(&mut self, dice: &mut Dice) {
        let Some(command) = self.net.ack(dice) else { return };
        let end = self.end(dice);
        self.turn(&[command.into()], end);
    }

    fn pushing(&mut self, dice: &mut Dice) {
        self.net.push(dice, &self.hub);
        let now = self.hub.now();
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
        let end = self.end(dice);
        self.turn(&asks, end);
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
        self.turn(&[], End::Well);
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
    fn turn(&mut self, asks: &[Ask], end: End) {
        let now = self.hub.now();
        if self.told.is_some() {
            let words: Vec<String> = asks.iter().map(|ask| shortened(&ask.0)).collect();
            self.tell(|| format!("at {} {end:?}: {}", now.0 - DAWN.0, words.join("; ")));
        }
        let ended = self.hub.turn(asks, end);
        self.log.hash.number(now.0.unsigned_abs());
        self.log.ended(&ended);
        for (ask, outcome) in asks.iter().zip(&ended.outcomes) {
            self.log.asked(ask, outcome);
            self.tell(|| format!("    {}", shortened(outcome)));
            self.heard(ask, outcome, ended.changes.as_ref());
        }
        if ended.crashed {
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

    /// No agent acts any more: all jobs end, and the final state is checked.
    pub fn end_well(&mut self, audited: bool) {
        rest::comes_to_rest(&mut self.hub, &mut self.log);
        self.net.heal(&self.hub);
        rest::everything_is_kept(&mut self.hub);
        if audited {
            rest::audit_is_clean(&self.hub);
        }
    }
}

/// Limits low enough that each one is reached now and then.
fn rules(dice: &mut Dice) -> Rules {
    Rules {
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

fn shortened(what: &impl std::fmt::Debug) -> String {
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
