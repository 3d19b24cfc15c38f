//! For this crate's own tests: commands with defaults, a model hub that decides without an engine,
//! snapshots of a world to compare, and a random workload.

mod life;
pub mod market;
mod orders;
mod picture;
pub mod voices;
mod words;

use std::collections::HashMap;

use rialto_core::alias::{Claim, Digest, Protocol};
use rialto_core::answer::Answer;
use rialto_core::changes::Changes;
use rialto_core::command::Command;
use rialto_core::decide::Need;
use rialto_core::id::{AgentId, JobId};
use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::{Rules, World};

pub use life::{Dice, Life};
pub use orders::{LEASE, enrol, grant, open, pay, report, said, say};
pub use picture::picture;

/// The protocol that all test agents are native to.
pub const HOME: Protocol = Protocol::new("home");
/// When every test starts.
pub const DAWN: Timestamp = Timestamp(1_000_000);

/// Credits from decimal text.
pub fn credits(text: &str) -> Credits {
    Credits::parse(text, 6).expect("tests use valid amounts")
}

/// The agent in an answer.
pub fn agent_in(answer: &Answer) -> AgentId {
    match answer {
        Answer::Agent { agent, .. } => agent.id,
        other => panic!("expected an agent, got {other:?}"),
    }
}

/// The job in an answer.
pub fn job_in(answer: &Answer) -> JobId {
    match answer {
        Answer::Job { job, .. } => job.id,
        other => panic!("expected a job, got {other:?}"),
    }
}

/// A world and every row it ever wrote, without an engine: what a store is compared with.
pub struct Script {
    pub world: World,
    pub now: Timestamp,
    pub rows: Changes,
    claims: HashMap<Digest, Claim>,
}

impl Default for Script {
    fn default() -> Self {
        let rules = Rules { welcome_grant: credits("100"), ..Rules::default() };
        let (rows, claims) = (Changes::default(), HashMap::new());
        Self { world: World::new(rules), now: DAWN, rows, claims }
    }
}

impl Script {
    /// Decides a command; returns the answer, and what a store must write for it.
    pub fn run(&mut self, command: Command) -> (Answer, Changes) {
        for _ in 0..4 {
            for need in rialto_core::needs(&self.world, &command) {
                self.bring(need);
            }
        }
        self.now = self.now.plus(Millis(1));
        let (changes, answer) =
            rialto_core::decide(&self.world, command, self.now).expect("the command is valid");
        self.world.apply(&changes);
        self.world.dismiss();
        self.claims.extend(changes.claims.iter().map(|claim| (claim.digest, *claim)));
        self.rows.absorb(changes.clone());
        (answer, changes)
    }

    /// What an id was last used for.
    pub fn claim(&self, digest: Digest) -> Option<Claim> {
        self.claims.get(&digest).copied()
    }

    fn bring(&mut self, need: Need) {
        match need {
            Need::Agent(id) => {
                if let Some(agent) = self.rows.agents.get(&id) {
                    self.world.admit_agent(agent.clone());
                }
            }
            Need::Claim(digest) => self.world.admit_claim(digest, self.claim(digest)),
            Need::Job(id) => {
                if let Some(job) = self.rows.jobs.get(&id) {
                    self.world.admit_job(job.clone());
                }
            }
            Need::Transfer(id) => {
                if let Some(known) = self.rows.transfers.iter().find(|one| one.id == id) {
                    self.world.admit_transfer(known.clone());
                }
            }
        }
    }
}
