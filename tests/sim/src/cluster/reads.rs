//! Reads: strict ones never show an older state than one that ended before, and inboxes are whole.

use std::collections::BTreeMap;

use rialto_core::id::{AgentId, JobId};
use rialto_core::notice::Notice;
use rialto_core::world::World;
use rialto_engine::cluster::NodeId;

use super::Cluster;
use super::node::Node;
use crate::cast::{some_job, somebody};
use crate::dice::Dice;
use crate::net::is_the_next;

/// Something with versions that only grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Object {
    Inbox(AgentId),
    Job(JobId),
    Ledger,
    History,
}

impl Object {
    /// Which version a world shows. A job that is not live any more has no later one.
    fn version(self, world: &World) -> u64 {
        match self {
            Self::Inbox(agent) => world.inbox(agent).head + world.inbox(agent).acked,
            Self::Job(job) => match world.job(job) {
                Some(job) => 1 + u64::from(job.epoch),
                None if job < world.next.job => u64::MAX,
                None => 0,
            },
            Self::Ledger => world.next.entry.0,
            Self::History => world.next.event.0,
        }
    }
}

/// A strict read that has begun.
struct StrictRead {
    node: NodeId,
    object: Object,
    /// The newest version that a read has shown which ended before this one began.
    at_least: u64,
    /// The node shows nothing before it has this batch.
    needs: u64,
}

/// All strict reads, and what they have shown.
#[derive(Default)]
pub struct StrictReads {
    open: Vec<StrictRead>,
    shown: BTreeMap<Object, u64>,
}

impl StrictReads {
    fn begin(&mut self, node: NodeId, object: Object, needs: u64) {
        let at_least = self.shown.get(&object).copied().unwrap_or(0);
        self.open.push(StrictRead { node, object, at_least, needs });
    }

    /// Ends the reads whose node has what they need.
    pub fn finish(&mut self, nodes: &[Option<Node>]) {
        let shown = &mut self.shown;
        self.open.retain(|read| {
            let node = nodes.iter().flatten().find(|node| node.id == read.node);
            let Some(node) = node.filter(|node| node.place() >= read.needs) else { return true };
            let version = node.engine.with_world(|world| read.object.version(world));
            let (object, at_least) = (read.object, read.at_least);
            assert!(version >= at_least, "{object:?}: {version} shown after {at_least}");
            let newest = shown.entry(object).or_default();
            *newest = version.max(*newest);
            false
        });
    }

    /// A node is gone, and with it those who read there.
    pub fn leave(&mut self, node: NodeId) {
        self.open.retain(|read| read.node != node);
    }

    /// Whether every read has ended.
    pub fn is_done(&self) -> bool {
        self.open.is_empty()
    }
}

impl Cluster {
    /// A client reads at a node.
    pub(super) fn read(&mut self, dice: &mut Dice, slot: usize) {
        let scene = &self.reference.model.scene;
        let agent = somebody(dice, scene);
        if dice.chance(40) {
            return self.read_inbox(dice, slot, agent);
        }
        let job = some_job(dice, scene, |_| true);
        let object = match (dice.roll(6), job) {
            (0..2, _) => Object::Inbox(agent),
            (2..4, Some(job)) => Object::Job(job.id),
            (4, _) => Object::History,
            _ => Object::Ledger,
        };
        // Every look after this moment counts: the node's next one begins now.
        let committed = self.database.head().number;
        let Some((head, _)) = self.look_now(slot) else { return };
        assert!(head >= committed, "a look shows less than what was committed before it");
        let Some(node) = &self.nodes[slot] else { return };
        self.log.census.count("~strict read");
        self.reads.begin(node.id, object, head);
    }

    /// A client reads its inbox as the node has it: without a gap, and as the log has it.
    fn read_inbox(&mut self, dice: &mut Dice, slot: usize, agent: AgentId) {
        let runtime = self.runtime.clone();
        let Some(node) = self.nodes[slot].as_mut().filter(|node| !node.is_paused) else { return };
        // Often one that has an open inbox there.
        let open: Vec<AgentId> = node.inboxes.keys().copied().collect();
        let open = dice.pick(&open).copied().filter(|_| dice.chance(25));
        let agent = open.unwrap_or(agent);
        let head = node.engine.with_world(|world| world.inbox(agent).head);
        if node.inboxes.len() < 6 && dice.chance(50) {
            let engine = &node.engine;
            node.inboxes.entry(agent).or_insert_with(|| engine.subscribe_inbox(agent));
        }
        let (after, limit) = (dice.roll(head + 1), 1 + dice.roll(8) as usize);
        let page = runtime.block_on(node.engine.load_notices(agent, after, limit));
        let page = page.expect("what is applied can be read");
        is_the_next(&page, after, limit, head);
        for notice in &page {
            let logged = self.reference.notice_at(agent, notice.position);
            assert_eq!(logged, Some(notice.id), "a notice that is not in the log");
        }
        let heard = node.inboxes.get_mut(&agent).and_then(|live| live.recent_after(after));
        if let Some(heard) = heard {
            let heard: Vec<Notice> = heard.iter().map(|notice| Notice::clone(notice)).collect();
            is_the_next(&heard, after, usize::MAX, head);
            assert_eq!(heard[..page.len()], page, "the live buffer differs from the store");
            self.log.census.count("~read from memory");
        }
        self.log.census.count("~inbox read");
    }
}
