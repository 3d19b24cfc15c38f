//! Rounds of traffic and faults, each checked by itself, and all of them again at the end.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::checks::{self, Counts, Leftovers};
use super::client::{Client, RoundContext};
use super::faults::Fault;
use super::harness::Cluster;
use super::report::Report;
use super::traffic::cast::Cast;
use super::traffic::{FlowAgents, Traffic, assert_flow_accounts};
use crate::crash::Dice;

/// Environment variable: keeps what the clients did in every round, not only with violations.
const KEEP: &str = "RIALTO_CLUSTER_KEEP";
/// Acknowledged commands before a fault begins, and on each node after it is healed.
const ACKS_BEFORE: usize = 40;
const ACKS_AFTER: usize = 5;
/// How long traffic may take to get there, however busy the machine is.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(90);
/// How many leftovers are looked at again in the end.
const KEPT_ROUNDS_MAX: usize = 400;

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub rounds: usize,
    pub seed: u64,
    pub faults: Vec<Fault>,
    /// Ends the run at the first round with a violation.
    pub stops_at_violation: bool,
}

/// Runs all rounds. Nothing is asserted here: the report has every violation.
pub async fn run(cluster: &Cluster, plan: &Plan) -> Report {
    let mut dice = Dice(plan.seed);
    let mut report = Report::new(plan.seed);
    let mut kept: Vec<Leftovers> = Vec::new();
    for round in 0..plan.rounds {
        let seed = dice.roll(u64::MAX);
        let Some(leftovers) = run_round(cluster, plan, round, seed, &mut report).await else {
            return report;
        };
        if kept.len() < KEPT_ROUNDS_MAX {
            kept.push(leftovers);
        }
        if plan.stops_at_violation && report.has_violations() {
            break;
        }
    }
    let client = Client::new(0, RoundContext::new(cluster), plan.seed);
    for (round, leftovers) in kept.iter().enumerate() {
        let node = round % cluster.nodes.len();
        if let Some(lost) = checks::check_leftovers(&client, node, leftovers).await {
            report.add_violations(round, &[], vec![lost]);
        }
    }
    report
}

/// One round: traffic, faults, healing, traffic, checks. `None` if a node has ended by itself: that is
/// a violation, and what the others show proves nothing any more.
async fn run_round(
    cluster: &Cluster,
    plan: &Plan,
    round: usize,
    seed: u64,
    report: &mut Report,
) -> Option<Leftovers> {
    let began = Instant::now();
    let mut dice = Dice(seed);
    let context = RoundContext::new(cluster);
    for node in &cluster.nodes {
        node.mark_log(&format!("round {round}"));
    }
    let mut client = Client::new(1, context.clone(), seed);
    let cast = Cast::assemble(&mut client, round).await;
    let flows = FlowAgents::assemble(&mut client, round).await.expect("the agents register");
    let history = context.history.clone();
    let before = history.acknowledged();
    let traffic = Traffic::start(&context, &cast, &flows, seed);
    wait_for(cluster, "acknowledgements", || history.acknowledged() > before + ACKS_BEFORE).await;

    // Mostly one fault, sometimes up to three that overlap.
    let count = [1, 1, 1, 2, 2, 3][dice.roll(6) as usize];
    let faults: Vec<Fault> = (0..count).map(|_| Fault::choose(&mut dice, &plan.faults)).collect();
    let names = faults.iter().map(|fault| fault.name()).collect::<Vec<_>>().join("+");
    let (fault_begins, fault_began) = (history.now(), Instant::now());
    for fault in &faults {
        fault.begin(cluster, &mut dice).await;
        tokio::time::sleep(Duration::from_millis(dice.roll(250))).await;
    }
    // How long it lasts is what the seed says, so a real sleep is right here.
    tokio::time::sleep(Duration::from_millis(100 + dice.roll(1_000))).await;
    let mut ended = tokio::task::block_in_place(|| cluster.heal(fault_began.elapsed()));
    if ended.is_empty() {
        ended.extend(cluster.try_until_ready().await.err());
    }
    let healed = history.now();
    for node in 0..cluster.nodes.len() {
        wait_for(cluster, "acknowledgements after the fault", || {
            ended.extend(cluster.find_ended());
            !ended.is_empty() || history.acknowledged_at(node, healed) >= ACKS_AFTER
        })
        .await;
    }
    let gap = history.longest_gap(fault_begins, history.now());
    context.stop.store(true, Ordering::SeqCst);
    traffic.finish().await;
    if !ended.is_empty() {
        let ended = ended.into_iter().map(|how| format!("ended by itself: {how}")).collect();
        report.add_round(&faults, Counts::default(), gap);
        report.add_violations(round, &faults, ended);
        cluster.keep_logs(&plan.seed.to_string());
        return None;
    }

    assert_flow_accounts(&mut client, &flows).await;
    let (counts, leftovers, violations) = checks::check_round(&mut client, &cast).await;
    println!(
        "round {round}: {names}, {} acknowledged, {} unknown, {} refused, {} reads, {} events, {} flows, {} ms without acknowledgement, {} violations, {:.1} s",
        counts.acknowledged,
        counts.unknown,
        counts.refused,
        counts.reads,
        counts.stream_events,
        flows.completed(),
        gap.as_millis(),
        violations.len(),
        began.elapsed().as_secs_f64()
    );
    if !violations.is_empty() || std::env::var_os(KEEP).is_some() {
        let kept = cluster.keep_logs(&plan.seed.to_string());
        let file = format!("{kept}/round-{round}.txt");
        let _ = std::fs::write(&file, history.text());
        println!("what the clients did is in {file}, what the nodes logged beside it");
    }
    report.add_round(&faults, counts, gap);
    report.add_violations(round, &faults, violations);
    Some(leftovers)
}

async fn wait_for(cluster: &Cluster, event: &str, mut has_come: impl FnMut() -> bool) {
    let deadline = Instant::now() + PROGRESS_TIMEOUT;
    while !has_come() {
        if Instant::now() > deadline {
            let logs = cluster.keep_logs("stuck");
            panic!("waited for {event} for {PROGRESS_TIMEOUT:?}; logs are in {logs}");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
