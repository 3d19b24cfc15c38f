//! Clocks that jump: the nodes have one time, which follows no clock of a machine after its start.

use std::path::PathBuf;

use rialto_engine::testkit::skip_test;

use super::faults::Fault;
use super::harness::{Cluster, ClusterOptions};
use super::nemesis::{self, Plan};
use super::{number, seed};

/// Where Debian has the library.
const LIBRARIES: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
];
const ROUNDS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn clocks_that_jump_change_nothing() {
    const NAME: &str = "cluster::clocks::clocks_that_jump_change_nothing";
    let Some(library) = LIBRARIES.map(PathBuf::from).into_iter().find(|path| path.exists()) else {
        return skip_test(NAME, "libfaketime", "install it with `apt-get install libfaketime`");
    };
    let seed = seed();
    let options = ClusterOptions { clock_library: Some(library), ..ClusterOptions::default() };
    let Some(cluster) = Cluster::start(NAME, &options).await else { return };
    let rounds = number("RIALTO_CLUSTER_CLOCK_ROUNDS").map_or(ROUNDS, |rounds| rounds as usize);
    let faults = vec![Fault::JumpClock, Fault::JumpClock, Fault::KillWriter];
    let plan = Plan { rounds, seed, faults, stops_at_violation: false };
    let report = nemesis::run(&cluster, &plan).await;
    println!("{report}");
    assert!(!report.has_violations(), "{:?}", report.violations());
}
