//! A random workload: agents register, work, pay, send messages and go offline, the same way for
//! the same seed.

use std::sync::Arc;

use rialto_core::agent::Liveness;
use rialto_core::agent::key::Holder;
use rialto_core::alias::Digest;
use rialto_core::command::{Canceller, Command, JobRef, PushEnd, Remember, Turn};
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::{Job, Policy, Requester, Selection};
use rialto_core::memory::{Kept, Principal};
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::World;

use crate::run::{Engine, Failure};
use crate::testkit::StandingClock;

use super::{HOME, enrol, grant, open, pay, report, said, voices, words};

/// Random numbers from a seed.
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// A number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        // SplitMix64, as in the testkit.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }

    /// One of these, if there are any.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.roll(from.len().max(1) as u64) as usize)
    }

    /// True once in so many times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.roll(n) == 0
    }
}

/// Issues random commands, most of them valid.
pub struct Life {
    pub dice: Dice,
    made: u64,
}

const SKILLS: [&str; 3] = ["sum", "translate", "draw"];
const PRICES: [&str; 4] = ["0", "0.5", "1", "2.25"];
const OWNERS: [&str; 4] = ["ada", "bob", "cyd", "dan"];

impl Life {
    pub fn new(seed: u64) -> Self {
        Self { dice: Dice(seed), made: 0 }
    }

    /// Runs for some rounds, several commands at once, while time passes. Returns how many
    /// succeeded.
    pub async fn lead(&mut self, engine: &Engine, clock: &StandingClock, rounds: u64) -> u64 {
        let mut done = 0;
        for _ in 0..rounds {
            let (now, width) = (engine.now(), 1 + self.dice.roll(6));
            let commands: Vec<Command> =
                engine.look(|world| (0..width).map(|_| self.next(world, now)).collect());
            let run = |command| {
                let engine = engine.clone();
                tokio::spawn(async move { engine.run(command).await })
            };
            let running: Vec<_> = commands.into_iter().map(run).collect();
            for one in running {
                match one.await.expect("nothing panics") {
                    Ok(_) => done += 1,
                    Err(Failure::Refused(_)) => {}
                    Err(other) => panic!("{other}"),
                }
            }
            clock.advance(Millis(self.dice.roll(4_000) as i64));
        }
        done
    }

    /// The next command, given what is known.
    pub fn next(&mut self, world: &World, now: Timestamp) -> Command {
        let mut agents: Vec<AgentId> = world.agents().map(|agent| agent.id).collect();
        agents.sort();
        let mut jobs: Vec<Arc<Job>> = world.live_jobs().cloned().collect();
        jobs.sort_by_key(|job| job.id);
        let agent = self.dice.pick(&agents).copied().unwrap_or_default();
        let job = self.dice.pick(&jobs).cloned();
        match self.dice.roll(31) {
            0 | 1 => self.come(),
            2 => self.money(),
            3 => self.pay(world, &jobs),
            4..=7 => self.ask(&agents, now),
            8 => self.talk(agent, &agents),
            9 if !agents.is_empty() => self.rare(agent, world, now),
            26.. => {
                let n = self.fresh();
                words::chance(&mut self.dice, n, world, now)
            }
            20.. => {
                let n = self.fresh();
                voices::chance(&mut self.dice, n, world)
            }
            _ => match job {
                Some(job) => self.work(&job, now),
                None => self.ask(&agents, now),
            },
        }
    }

    fn fresh(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    fn come(&mut self) -> Command {
        let n = self.dice.roll(16);
        let offers = self.dice.roll(4) as usize;
        let priced = |dice: &mut Dice, skill| (skill, *dice.pick(&PRICES).expect("not empty"));
        let skills: Vec<_> =
            SKILLS.iter().take(offers).map(|skill| priced(&mut self.dice, *skill)).collect();
        let mut order = enrol(&format!("agent-{n}"), OWNERS[(n % 4) as usize], &skills);
        order.liveness = match n % 3 {
            0 => Liveness::Always,
            1 => Liveness::Polls,
            _ => Liveness::Reached,
        };
        order.endpoint = (n % 3 == 2).then(|| format!("https://{n}.example"));
        order.terms = words::terms(&mut self.dice);
        if self.dice.one_in(3) {
            order.skills.push(words::needs_a_yes());
        }
        order.key =
            Some(Digest::of(&[&self.fresh().to_be_bytes()]).0.repeat(2).try_into().expect("32"));
        order.rotate = self.dice.one_in(3);
        Command::Enrol(Box::new(order))
    }

    fn money(&mut self) -> Command {
        let owner = *self.dice.pick(&OWNERS).expect("not empty");
        match self.dice.roll(4) {
            0 => Command::Burn { name: owner.to_owned(), amount: super::credits("0.75") },
            1 => Command::OpenAccount { name: format!("{owner}-{}", self.dice.roll(5)) },
            _ => grant(owner, "3.5"),
        }
    }

    fn pay(&mut self, world: &World, jobs: &[Arc<Job>]) -> Command {
        let (from, to) = (self.dice.roll(4) as usize, self.dice.roll(4) as usize);
        // Some numbers repeat, some payments name a job on this hub, some one elsewhere.
        let n = if self.dice.one_in(4) { self.dice.roll(self.made + 1) } else { self.fresh() };
        let mut order = pay(n, OWNERS[from], OWNERS[to], "0.1");
        order.open_payee = self.dice.one_in(2);
        order.job = match self.dice.roll(4) {
            0 => Some(format!("elsewhere-{}", self.dice.roll(50))),
            1 => self.dice.pick(jobs).map(|job| job.foreign.clone()),
            2 => {
                let any = JobId(self.dice.roll(world.next.job.0));
                Some(format!("job-{any}"))
            }
            _ => None,
        };
        Command::Pay(Box::new(order))
    }

    fn ask(&mut self, agents: &[AgentId], now: Timestamp) -> Command {
        let n = if self.dice.one_in(8) { self.dice.roll(self.made + 1) } else { self.fresh() };
        let by = self.dice.pick(agents).copied().unwrap_or_default();
        let skill = *self.dice.pick(&SKILLS).expect("not empty");
        let mut order = open(n, by, skill, self.dice.pick(&PRICES).expect("not empty"), now);
        // The public id is the hub's own and always fresh, even if the requester's id repeats.
        order.uuid = uuid::Uuid::from_u128(u128::from(self.fresh()) << 64);
        order.selection = match self.dice.roll(7) {
            0 => Selection::Direct(self.dice.pick(agents).copied().unwrap_or_default()),
            1 => Selection::RoundRobin,
            2 => Selection::Cheapest,
            3 => Selection::LeastOccupied,
            4 => Selection::Auction { closes: now.plus(Millis::seconds(30)) },
            5 if self.dice.one_in(3) => Selection::Broadcast,
            _ => Selection::BestReputation,
        };
        order.policy = Policy {
            next_when_unreachable: self.dice.one_in(2),
            next_when_declined: self.dice.one_in(2),
            next_when_failed: self.dice.one_in(2),
            queue_unmatched: self.dice.one_in(2),
            ..Policy::default()
        };
        order.callback = self.dice.one_in(3).then(|| "https://call.example/back".to_owned());
        if self.dice.one_in(10) {
            order.requester = Requester::Guest("https://guest.example".to_owned());
        }
        Command::OpenJob(Box::new(order))
    }

    fn work(&mut self, job: &Job, now: Timestamp) -> Command {
        let by = job.worker().unwrap_or(AgentId(1 + self.dice.roll(8)));
        let named = match self.dice.roll(3) {
            0 => JobRef::Uuid(job.uuid),
            1 => JobRef::Foreign { origin: HOME, id: job.foreign.clone() },
            _ => JobRef::Id(job.id),
        };
        match self.dice.roll(12) {
            0..=3 => report(job.id, by, true, self.dice.pick(&PRICES).expect("not empty")),
            4 | 5 => report(job.id, by, false, "0"),
            6 => Command::Decline { job: named, by, epoch: None, reason: None },
            7 => Command::Start { job: named, by },
            8 => Command::Defer { job: named, by, until: now.plus(Millis::seconds(20)) },
            9 => Command::Unreachable { job: job.id, epoch: job.epoch },
            10 => {
                let (price, valid_for) = (super::credits("0.25"), Millis::minutes(5));
                Command::Offer { job: named, by: AgentId(1 + self.dice.roll(12)), price, valid_for }
            }
            _ => match self.dice.roll(3) {
                0 => Command::Requeue { job: named },
                1 => Command::HandOver { agent: by, jobs: vec![job.id] },
                _ => Command::Cancel { job: named, by: Canceller::Operator, reason: None },
            },
        }
    }

    fn talk(&mut self, from: AgentId, agents: &[AgentId]) -> Command {
        let to = self.dice.pick(agents).copied().unwrap_or_default();
        match self.dice.roll(5) {
            0 => Command::Ack { agent: to, up_to: self.dice.roll(40) },
            1 => Command::Present { agent: to, up_to: self.dice.roll(40) },
            _ => {
                let mut order = said(from, to, &format!("{{\"n\":{}}}", self.fresh()));
                let conversation = "talk".to_owned();
                let (number, content) =
                    (self.dice.roll(9), Digest::of(&[&[self.dice.roll(2) as u8]]));
                order.turn = (number < 4).then_some(Turn { conversation, number, content });
                order.url = (number > 6).then(|| "https://elsewhere.example/in".to_owned());
                Command::Send(Box::new(order))
            }
        }
    }

    fn rare(&mut self, agent: AgentId, world: &World, now: Timestamp) -> Command {
        match self.dice.roll(6) {
            0 => Command::Remove { agent, by_operator: true },
            1 => Command::RevokeKeys { agent, by_operator: false },
            2 => {
                let hash = Digest::of(&[b"key", &self.fresh().to_be_bytes()]).0.repeat(2);
                let (holder, hash) = (Holder::Agent(agent), hash.try_into().expect("32"));
                Command::IssueKey { holder, hash, retire_others: true, by_operator: false }
            }
            3 => {
                let scope = Digest::of(&[&self.dice.roll(30).to_be_bytes()]);
                let kept = Kept::Answer { status: 200, body: "{}".to_owned() };
                let principal = Principal::Operator;
                Command::Remember(Box::new(Remember { scope, request: scope, principal, kept }))
            }
            4 => Command::Beat { agent },
            _ => {
                let mut under_way: Vec<_> = world.pushes().map(|push| push.notice).collect();
                under_way.sort();
                let notice = self.dice.pick(&under_way).copied().unwrap_or_default();
                let ended = match self.dice.roll(3) {
                    0 => PushEnd::Delivered { reply: Some("{}".to_owned()) },
                    1 => PushEnd::Gone,
                    _ => PushEnd::Failed {
                        why: "no".to_owned(),
                        next_try: Some(now.plus(Millis::seconds(5))),
                    },
                };
                Command::PushDone { notice, ended }
            }
        }
    }
}
