//! A normal simulation run: all commands and refusals occur, and every run is the same.

use rialto_sim::cluster::{Cluster, ClusterOptions};
use rialto_sim::life::Life;
use rialto_sim::names::{COMMANDS, POSTED, REFUSALS, SIGNED};
use rialto_sim::run::{Plan, Simulation, run};

/// Commands decided in a run of `cargo xtask test`, which sets the variable; its engine is
/// optimised.
const WHOLE: u64 = 4_000_000;
/// Commands decided if the variable is not set.
const USUALLY: u64 = 20_000;
/// The variable with the number of commands.
const OPS: &str = "RIALTO_SIM_OPS";
/// A run has one operation of a cluster for so many of a single hub.
const CLUSTER_SHARE: u64 = 4;
/// The seed of a normal run.
const SEED: u64 = 20_260_731;

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn ops() -> u64 {
    std::env::var(OPS).map_or(USUALLY, |text| text.parse().expect("a number"))
}

#[test]
fn whatever_happens_every_promise_is_kept() {
    let ops = ops();
    let report = run::<Life>(Plan { seed: SEED, ops, threads: cores() }, ());
    println!("{report}\n{}", report.census);
    assert!(report.failed.is_none(), "{report}");
    assert!(report.decided >= ops, "only {} operations", report.decided);
    if ops < WHOLE {
        return;
    }
    let seen = |names: &[&'static str]| report.census.rarer(names, 100);
    assert_eq!(seen(COMMANDS), Vec::<&str>::new(), "commands that hardly occurred");
    assert_eq!(seen(SIGNED), Vec::<&str>::new(), "signed orders that hardly occurred");
    assert_eq!(seen(POSTED), Vec::<&str>::new(), "market orders that hardly occurred");
    assert!(report.census.of("~read from memory") > 5_000, "hardly any agent was connected");
    // No life is long enough to issue 64 keys to one agent or to block a thousand agents, and
    // simulated keys are used only for what spends.
    let refused = report.census.rarer(REFUSALS, 10);
    let rare = ["LimitedKey", "TooManyKeys", "TooManyBlocked"];
    assert_eq!(refused, rare, "refusals that hardly occurred");
}

#[test]
fn whatever_happens_to_its_nodes_a_cluster_is_one_hub() {
    let ops = ops() / CLUSTER_SHARE;
    let plan = Plan { seed: SEED, ops, threads: cores() };
    let report = run::<Cluster>(plan, ClusterOptions::ANY);
    println!("{report}\n{}", report.census);
    assert!(report.failed.is_none(), "{report}");
    assert!(report.decided >= ops, "only {} operations", report.decided);
    if ops < WHOLE / CLUSTER_SHARE {
        return;
    }
    let events = [
        "~takeover",
        "~killed",
        "~paused or woken",
        "~cut or restored",
        "~connection lost",
        "~resigned",
        "~append failed",
        "~beside the lane",
        "~on top of another",
        "~without a record",
        "~answered again",
        "~strict read",
        "~read from memory",
    ];
    assert_eq!(report.census.rarer(&events, 500), Vec::<&str>::new(), "hardly occurred");
    // It needs a writer that another has replaced meanwhile.
    assert!(report.census.of("~landed late") > 50, "hardly any append landed late");
    // The operator's command to deliver again is simulated at one hub only.
    let commands = report.census.rarer(COMMANDS, 20);
    assert_eq!(commands, ["PushAgain"], "commands that hardly occurred");
}

fn is_the_same_on_any_number_of_threads<S: Simulation>(ops: u64, options: S::Options) {
    let hash = |seed, threads| {
        let report = run::<S>(Plan { seed, ops, threads }, options);
        assert!(report.failed.is_none(), "{report}");
        report.hash
    };
    let (one, two) = (hash(1, 1), hash(2, 2));
    assert_eq!(one, hash(1, 2));
    assert_eq!(two, hash(2, 1));
    assert_ne!(one, two);
}

#[test]
fn the_same_seed_gives_the_same_log_on_any_number_of_threads() {
    is_the_same_on_any_number_of_threads::<Life>(10_000, ());
}

#[test]
fn the_same_seed_gives_the_same_log_of_a_cluster() {
    is_the_same_on_any_number_of_threads::<Cluster>(5_000, ClusterOptions::ANY);
}
