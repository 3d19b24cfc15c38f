//! `cargo xtask sim`: runs as many simulated lives as there is time for.

use std::process::ExitCode;

use rialto_sim::cluster::{Cluster, ClusterOptions};
use rialto_sim::failure::Failed;
use rialto_sim::life::Life;
use rialto_sim::run::{Plan, Simulation, one, run};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut plan = Plan { seed: 1, ops: 5_000_000, threads: cores };
    let mut life = None;
    let mut nodes = None;
    for pair in words.chunks(2) {
        let [name, value] = pair else { return usage(&format!("{} needs a value", pair[0])) };
        if name == "--nodes" {
            let Some(options) = ClusterOptions::parse(value) else {
                return usage(&format!("{value} is not a number of nodes from 2 to 4"));
            };
            nodes = Some(options);
            continue;
        }
        let Ok(number) = value.parse::<u64>() else {
            return usage(&format!("{value} is not a number"));
        };
        match name.as_str() {
            "--ops" => plan.ops = number,
            "--seed" => plan.seed = number,
            "--threads" => plan.threads = number as usize,
            "--life" => life = Some(number),
            other => return usage(&format!("unknown option {other}")),
        }
    }
    match nodes {
        Some(nodes) => simulate::<Cluster>(plan, nodes, life),
        None => simulate::<Life>(plan, (), life),
    }
}

fn simulate<S: Simulation>(plan: Plan, options: S::Options, life: Option<u64>) -> ExitCode {
    match life {
        Some(seed) => told(one::<S>(seed, options)),
        None => {
            let report = run::<S>(plan, options);
            println!("{report}\n{}", report.census);
            told(report.failed)
        }
    }
}

fn told(failed: Option<Failed>) -> ExitCode {
    match failed {
        Some(failed) => {
            println!("{failed}");
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}

fn usage(why: &str) -> ExitCode {
    eprintln!(
        "{why}\nusage: cargo xtask sim [--nodes N|N-M] [--ops N] [--seed S] [--threads T] [--life SEED]"
    );
    ExitCode::from(2)
}
