//! Two to four nodes over one log, on one thread.
//!
//! The nodes are real engines with manual lanes. The simulation plays their coordinators, their
//! network and the database: a seed decides when a node looks at the log, takes the lease, leads,
//! resigns, is paused, cut off or killed, what happens to an append, and which frames arrive. Clients
//! at all nodes send the same commands as to a single hub, and repeat some of them elsewhere.
//!
//! After every step the log is one chain, every batch of it follows from those before it, every
//! world is the fold of its prefix, and every answer is that of the log.

mod actions;
pub mod history;
pub mod network;
pub mod node;
mod reads;
pub mod reference;
mod rest;

use std::sync::Arc;

use rialto_core::time::Timestamp;
use rialto_core::world::Rules;
use rialto_engine::cluster::NodeId;
use rialto_engine::cluster::memory::MemoryCluster;
use rialto_engine::cluster::mistake::Mistake;
use tokio::runtime::Runtime;

use crate::dice::{Dice, mix};
use crate::life::{DAWN, rules, shortened};
use crate::log::Log;
use crate::net::Net;
use crate::orders;
use crate::run::Simulation;
use history::History;
use network::Network;
use node::{AppendEnd, Node, NodeParts};
use reads::StrictReads;
use reference::Reference;

/// How many nodes there are, and what they do wrong.
#[derive(Clone, Copy, Debug)]
pub struct ClusterOptions {
    pub fewest: u64,
    pub most: u64,
    pub mistake: Option<Mistake>,
}

impl ClusterOptions {
    /// From two to four nodes.
    pub const ANY: Self = Self { fewest: 2, most: 4, mistake: None };

    /// From `3` or `2-4`.
    pub fn parse(text: &str) -> Option<Self> {
        let (fewest, most) = text.split_once('-').unwrap_or((text, text));
        let (fewest, most) = (fewest.parse().ok()?, most.parse().ok()?);
        let is_valid = 2 <= fewest && fewest <= most && most <= 4;
        is_valid.then_some(Self { fewest, most, mistake: None })
    }
}

/// A simulated cluster, and everything around it.
pub struct Cluster {
    database: MemoryCluster,
    network: Network,
    reference: Reference,
    history: History,
    reads: StrictReads,
    /// Deliveries to agents.
    net: Net,
    /// `None` for one that was killed.
    nodes: Vec<Option<Node>>,
    log: Log,
    rules: Rules,
    mistake: Option<Mistake>,
    runtime: Arc<Runtime>,
    /// The clock of the database, which those of the nodes only resemble.
    now: Timestamp,
    seed: u64,
    started: u64,
    told: Option<Vec<String>>,
}

impl Simulation for Cluster {
    type Options = ClusterOptions;

    /// Timers that fire at the end are many.
    const AS_A_RULE: u64 = 650;

    /// A cluster with all its agents.
    fn begin(seed: u64, options: ClusterOptions, runtime: Arc<Runtime>) -> Self {
        let ClusterOptions { fewest, most, mistake } = options;
        let mut dice = Dice::new(mix(seed, u64::MAX));
        let (rules, database) = (rules(&mut dice), MemoryCluster::at(DAWN));
        if let Some(mistake) = mistake {
            database.plant(mistake);
        }
        let count = fewest + dice.roll(most - fewest + 1);
        let mut cluster = Self {
            database,
            network: Network::default(),
            reference: Reference::new(rules, DAWN),
            history: History::new(runtime.clone()),
            reads: StrictReads::default(),
            net: Net::default(),
            nodes: (0..count).map(|_| None).collect(),
            log: Log::default(),
            rules,
            mistake,
            runtime,
            now: DAWN,
            seed,
            started: 0,
            told: None,
        };
        for slot in 0..cluster.nodes.len() {
            cluster.start(slot);
        }
        cluster.elect(0);
        let asks = orders::opening(&mut dice, &cluster.reference.model.scene, DAWN);
        for ask in asks {
            cluster.send(0, ask);
        }
        cluster.run_batch(0, None);
        cluster.check();
        cluster
    }

    fn step(&mut self, number: u64) {
        let dice = &mut Dice::new(number);
        self.pass_time(dice);
        let slot = dice.roll(self.nodes.len() as u64) as usize;
        match dice.roll(1_000) {
            0..210 => self.requests(dice),
            210..480 => self.work(dice, slot),
            480..710 => self.deliver(dice),
            710..810 => self.look(slot),
            810..885 => self.coordinate(dice, slot),
            885..910 => self.dial(dice, slot),
            910..950 => self.read(dice, slot),
            950..965 => self.push(dice, slot),
            965..980 => self.notice(dice, slot),
            _ => self.fault(dice, slot),
        }
        self.check();
    }

    fn end_well(&mut self, audited: bool) {
        self.heal();
        self.come_to_rest();
        if audited {
            crate::rest::audit_is_clean(&self.reference.model);
        }
    }

    fn log(&self) -> &Log {
        &self.log
    }

    fn told(&mut self) -> &mut Option<Vec<String>> {
        &mut self.told
    }

    fn flags(options: ClusterOptions) -> String {
        format!(" --nodes {}-{}", options.fewest, options.most)
    }
}

impl Cluster {
    /// Starts a node.
    fn start(&mut self, slot: usize) {
        self.started += 1;
        let parts = NodeParts {
            database: &self.database,
            network: &self.network,
            reference: &self.reference,
            rules: self.rules,
            seed: mix(self.seed, self.started),
            wall: self.now,
            mistake: self.mistake,
        };
        self.nodes[slot] = Some(Node::start(parts));
    }

    fn node(&mut self, slot: usize) -> Option<&mut Node> {
        self.nodes[slot].as_mut()
    }

    /// A node that runs.
    fn running(&mut self, slot: usize) -> Option<&mut Node> {
        self.nodes[slot].as_mut().filter(|node| !node.is_paused)
    }

    fn has(&self, id: NodeId) -> Option<&Node> {
        self.nodes.iter().flatten().find(|node| node.id == id)
    }

    /// What a node answered without a record is checked and remembered.
    fn ended(&mut self, end: AppendEnd) {
        self.reference.follow(&self.database, &mut self.history, &mut self.log);
        if let AppendEnd::Unrecorded(place, attempt) = end {
            self.log.census.count("~without a record");
            self.reference.check_unrecorded(place, &attempt, &mut self.history, &mut self.log);
        }
    }

    /// Everything that must hold after every step.
    fn check(&mut self) {
        self.reference.follow(&self.database, &mut self.history, &mut self.log);
        for node in self.nodes.iter_mut().flatten() {
            node.check(&self.reference);
        }
        let nodes = &self.nodes;
        let place = |id| nodes.iter().flatten().find(|node| node.id == id).map(Node::place);
        for (request, ask, outcome) in self.history.answer(place) {
            self.log.asked(&ask, &outcome);
            if let Some(told) = &mut self.told {
                told.push(format!("    request {request}: {}", shortened(&outcome)));
            }
        }
        self.reads.finish(&self.nodes);
    }

    fn tell(&mut self, words: impl FnOnce() -> String) {
        if let Some(told) = &mut self.told {
            told.push(words());
        }
    }
}
