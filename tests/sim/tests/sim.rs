//! A normal simulation run: all commands and refusals occur, and every run is the same.

use rialto_sim::names::{COMMANDS, POSTED, REFUSALS, SIGNED};
use rialto_sim::run::{Plan, run};

/// Commands decided in a run of `cargo xtask test`, which sets the variable; its engine is
/// optimised.
const WHOLE: u64 = 5_000_000;
/// Commands decided if the variable is not set.
const USUALLY: u64 = 50_000;
/// The variable with the number of commands.
const OPS: &str = "RIALTO_SIM_OPS";
/// The seed of a normal run.
const SEED: u64 = 20_260_731;

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn whatever_happens_every_promise_is_kept() {
    let ops = std::env::var(OPS).map_or(USUALLY, |text| text.parse().expect("a number"));
    let report = run(Plan { seed: SEED, ops, threads: cores() });
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
    // No life is long enough to block a thousand agents.
    let refused = report.census.rarer(REFUSALS, 20);
    assert_eq!(refused, ["TooManyBlocked"], "refusals that hardly occurred");
}

#[test]
fn the_same_seed_gives_the_same_log_on_any_number_of_threads() {
    let hash = |seed, threads| {
        let report = run(Plan { seed, ops: 20_000, threads });
        assert!(report.failed.is_none(), "{report}");
        report.hash
    };
    assert_eq!(hash(1, 1), hash(1, 2));
    assert_eq!(hash(2, 2), hash(2, 1));
    assert_ne!(hash(1, 1), hash(2, 1));
}
