//! The faults: what happens to nodes, links and the database in a round.

use std::time::Duration;

use rialto_engine::cluster::hop::proxy::Direction;
use rialto_engine::testkit::postgres::Replication;

use super::harness::{Cluster, LEASE};
use super::node::Node;
use crate::crash::Dice;

/// How long a rolling restart waits for a node before it goes on with the next.
const RESTART_WAIT: Duration = Duration::from_secs(4);
/// How often connections break in one fault.
const BREAKS: usize = 6;
/// Seconds by which a clock jumps: less than the hour for which a signature is valid in these
/// tests, because signatures are compared with the clock of the node.
const CLOCK_JUMP: i64 = 3_000;

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// SIGKILL to the writer, or to any node.
    KillWriter,
    KillNode,
    /// SIGSTOP for a random time, some of it past the lease.
    PauseWriter,
    PauseNode,
    /// The connection to the writer is cut, loses one direction, or is slow.
    CutHop,
    OneWayHop,
    SlowHop,
    /// All connections to the writer break, several times, and can be made again at once.
    BreakHop,
    /// Nothing of what the writer sends arrives: no hints, no replies.
    LoseHints,
    /// The connection of a node to the database is cut, loses one direction, or is slow.
    CutDatabase,
    OneWayDatabase,
    SlowDatabase,
    /// The writer's connection to the database is cut when the database answers what was just sent,
    /// which may be a commit.
    CutAfterCommit,
    /// The writer reaches neither the database nor the other nodes, and clients still reach it.
    PartitionWriter,
    /// The database ends all sessions of the nodes.
    EndSessions,
    CrashDatabase,
    PauseDatabase,
    /// The database fails over to a synchronous standby.
    FailOver,
    /// All nodes are stopped and started, one after the other.
    RollingRestart,
    /// Nodes are stopped and started as the next version, one after the other: all of them, or only
    /// some. Then two versions run together until a later fault of this kind upgrades the rest, or
    /// takes the first ones back.
    RollingUpgrade,
    /// The disk of the database has no space. It may end because it cannot continue its log.
    FullDisk,
    /// Every sync of the database takes longer, some longer than the lease.
    SlowSync,
    /// The clock of a node jumps by most of an hour in either direction. Needs libfaketime.
    JumpClock,
}

impl Fault {
    pub const ALL: [Self; 23] = [
        Self::KillWriter,
        Self::KillNode,
        Self::PauseWriter,
        Self::PauseNode,
        Self::CutHop,
        Self::OneWayHop,
        Self::SlowHop,
        Self::BreakHop,
        Self::LoseHints,
        Self::CutDatabase,
        Self::OneWayDatabase,
        Self::SlowDatabase,
        Self::CutAfterCommit,
        Self::PartitionWriter,
        Self::EndSessions,
        Self::CrashDatabase,
        Self::PauseDatabase,
        Self::FailOver,
        Self::RollingRestart,
        Self::RollingUpgrade,
        Self::FullDisk,
        Self::SlowSync,
        Self::JumpClock,
    ];

    /// Those that need nothing but the database.
    pub fn usual() -> Vec<Self> {
        let is_usual = |fault: &Self| *fault != Self::JumpClock && !fault.needs_disk();
        Self::ALL.into_iter().filter(is_usual).collect()
    }

    /// Whether it needs a disk that has faults.
    pub fn needs_disk(self) -> bool {
        matches!(self, Self::FullDisk | Self::SlowSync)
    }

    /// Its name on the command line and in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::KillWriter => "kill-writer",
            Self::KillNode => "kill-node",
            Self::PauseWriter => "pause-writer",
            Self::PauseNode => "pause-node",
            Self::CutHop => "cut-hop",
            Self::OneWayHop => "one-way-hop",
            Self::SlowHop => "slow-hop",
            Self::BreakHop => "break-hop",
            Self::LoseHints => "lose-hints",
            Self::CutDatabase => "cut-database",
            Self::OneWayDatabase => "one-way-database",
            Self::SlowDatabase => "slow-database",
            Self::CutAfterCommit => "cut-after-commit",
            Self::PartitionWriter => "partition-writer",
            Self::EndSessions => "end-sessions",
            Self::CrashDatabase => "crash-database",
            Self::PauseDatabase => "pause-database",
            Self::FailOver => "fail-over",
            Self::RollingRestart => "rolling-restart",
            Self::RollingUpgrade => "rolling-upgrade",
            Self::FullDisk => "full-disk",
            Self::SlowSync => "slow-sync",
            Self::JumpClock => "jump-clock",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// Whether it makes sense for one hub without a cluster.
    pub fn fits_one_hub(self) -> bool {
        matches!(self, Self::KillNode | Self::PauseNode | Self::RollingRestart)
    }

    /// How often it is chosen in comparison to others.
    fn weight(self) -> u64 {
        match self {
            Self::KillWriter => 4,
            Self::KillNode | Self::PauseWriter | Self::CutAfterCommit | Self::PartitionWriter => 3,
            // It takes seconds.
            Self::FailOver | Self::RollingRestart | Self::RollingUpgrade => 1,
            _ => 2,
        }
    }

    /// Chooses one of these by its weight.
    pub fn choose(dice: &mut Dice, of: &[Self]) -> Self {
        let mut place = dice.roll(of.iter().map(|fault| fault.weight()).sum());
        for fault in of {
            match place.checked_sub(fault.weight()) {
                Some(rest) => place = rest,
                None => return *fault,
            }
        }
        of[0]
    }

    /// Begins the fault. It lasts until [`Cluster::heal`], except for those that are over at once.
    pub async fn begin(self, cluster: &Cluster, dice: &mut Dice) {
        let count = cluster.nodes.len() as u64;
        let any = dice.roll(count) as usize;
        let writer = cluster.writer().await.unwrap_or(any);
        let follower = (writer + 1 + dice.roll(count.max(2) - 1) as usize) % cluster.nodes.len();
        let direction = match dice.roll(2) {
            0 => Direction::ToTarget,
            _ => Direction::FromTarget,
        };
        let delay = Duration::from_millis(20 + dice.roll(200));
        match self {
            Self::KillWriter => cluster.nodes[writer].kill(),
            Self::KillNode => cluster.nodes[any].kill(),
            Self::PauseWriter => pause(cluster, writer, dice).await,
            Self::PauseNode => pause(cluster, any, dice).await,
            Self::CutHop => cluster.hops[writer].cut(),
            Self::OneWayHop => cluster.hops[writer].black_hole(direction),
            Self::SlowHop => cluster.hops[writer].delay(delay),
            Self::BreakHop => {
                for _ in 0..BREAKS {
                    cluster.hops[writer].cut();
                    cluster.hops[writer].heal();
                    tokio::time::sleep(Duration::from_millis(10 + dice.roll(90))).await;
                }
            }
            Self::LoseHints => cluster.hops[writer].black_hole(Direction::FromTarget),
            Self::CutDatabase => cluster.database_links[any].cut(),
            Self::OneWayDatabase => cluster.database_links[any].black_hole(direction),
            Self::SlowDatabase => cluster.database_links[writer].delay(delay / 4),
            Self::CutAfterCommit => {
                let link =
                    &cluster.database_links[if dice.roll(4) == 0 { follower } else { writer }];
                link.cut_after_next_request();
                let _ = tokio::time::timeout(Duration::from_secs(1), link.wait_until_cut()).await;
                tokio::time::sleep(Duration::from_millis(dice.roll(300))).await;
                link.heal();
            }
            Self::PartitionWriter => {
                cluster.database_links[writer].black_hole(Direction::Both);
                cluster.hops[writer].cut();
            }
            Self::EndSessions => end_sessions(cluster),
            Self::CrashDatabase => {
                tokio::task::block_in_place(|| cluster.with_database(|database| database.crash()));
                tokio::time::sleep(Duration::from_millis(dice.roll(500))).await;
                tokio::task::block_in_place(|| {
                    cluster.with_database(|database| database.restart());
                });
            }
            Self::PauseDatabase => cluster.with_database(|database| database.pause()),
            Self::FailOver => tokio::task::block_in_place(|| {
                cluster.fail_over(Replication::Synchronous, |_| {
                    // What is committed now waits for the standby.
                    std::thread::sleep(Duration::from_millis(200));
                });
            }),
            Self::FullDisk => {
                cluster.disk().fill();
                if dice.roll(2) == 0 {
                    // What is appended next needs a new file.
                    let switch = "SELECT pg_switch_wal()";
                    let _ = tokio::task::block_in_place(|| {
                        cluster.with_database(|database| database.run_sql(switch))
                    });
                }
            }
            Self::SlowSync => {
                let is_past_lease = dice.roll(3) == 0;
                cluster.disk().slow_down(if is_past_lease { LEASE + delay } else { delay });
            }
            Self::JumpClock => {
                cluster.set_clock(any, if dice.roll(2) == 0 { CLOCK_JUMP } else { -CLOCK_JUMP })
            }
            Self::RollingRestart => {
                for node in &cluster.nodes {
                    restart(cluster, node.number, node.version()).await;
                }
            }
            Self::RollingUpgrade => upgrade(cluster, dice).await,
        }
    }
}

/// Stops a node and starts it as a version.
async fn restart(cluster: &Cluster, number: usize, version: u8) {
    tokio::task::block_in_place(|| cluster.replace_version(number, version));
    // It cannot be ready before other faults are healed.
    let ready = async {
        while !cluster.is_ready(number).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let _ = tokio::time::timeout(RESTART_WAIT, ready).await;
}

/// Upgrades nodes to the next version, or ends an upgrade that another fault has begun.
async fn upgrade(cluster: &Cluster, dice: &mut Dice) {
    let versions: Vec<u8> = cluster.nodes.iter().map(Node::version).collect();
    let (oldest, newest) = (versions.iter().min(), versions.iter().max());
    let (oldest, newest) = (*oldest.expect("some nodes"), *newest.expect("some nodes"));
    let (version, count) = match (oldest == newest, dice.roll(4)) {
        (true, count) => (newest + 1, 1 + count as usize),
        // The way back is open as long as one node is old.
        (false, 0) => (oldest, versions.len()),
        (false, _) => (newest, versions.len()),
    };
    let first = dice.roll(versions.len() as u64) as usize;
    let order = (0..versions.len()).map(|number| (first + number) % versions.len());
    for number in order.filter(|number| versions[*number] != version).take(count) {
        restart(cluster, number, version).await;
    }
}

/// Pauses a node for 0.1 s up to twice the lease.
async fn pause(cluster: &Cluster, number: usize, dice: &mut Dice) {
    let node = &cluster.nodes[number];
    node.pause();
    let most = 2 * LEASE.as_millis() as u64;
    tokio::time::sleep(Duration::from_millis(100 + dice.roll(most))).await;
    node.resume();
}

fn end_sessions(cluster: &Cluster) {
    let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
        WHERE client_port > 0 AND pid <> pg_backend_pid()";
    let ended = tokio::task::block_in_place(|| cluster.with_database(|it| it.run_sql(sql)));
    // A database that is paused by another fault of the round accepts no session.
    if let Err(error) = ended {
        assert!(error.contains("timeout expired"), "{error}");
        println!("no session was ended: {error}");
    }
}
