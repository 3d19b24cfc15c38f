//! Long fuzz runs, started by `cargo xtask fuzz`.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use rialto_fuzzed::drive::{Plan, TIME_LIMIT, run};
use rialto_fuzzed::{ALL, Target};

const USAGE: &str = "usage: rialto-fuzzed [--target NAME] [--inputs N] [--seed N]";

struct Asked {
    targets: Vec<&'static Target>,
    plan: Plan,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let asked = match read(&words) {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("{why}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    println!("seed {}", asked.plan.seed);
    // One after the other, so that every target has run when the last one is done.
    let found = asked.targets.iter().filter(|target| !goes_well(target, asked.plan)).count();
    if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn goes_well(target: &'static Target, plan: Plan) -> bool {
    match run(target, plan) {
        Ok(summary) => {
            let per_second = summary.inputs as f64 / summary.took.as_secs_f64().max(0.001);
            let (slowest, bytes) = summary.slowest;
            println!(
                "{:<14} {:>9} inputs, {per_second:>7.0}/s, slowest {slowest:.1?} with {bytes} bytes, \
                 peak memory {} % and total {} % of the limit",
                target.name, summary.inputs, summary.held, summary.taken,
            );
            true
        }
        Err(broken) => {
            println!("{broken}");
            match broken.keep() {
                Ok(path) => println!("saved as {}", path.display()),
                Err(error) => println!("cannot save it: {error}"),
            }
            false
        }
    }
}

fn read(words: &[String]) -> Result<Asked, String> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut plan = Plan { inputs: 100_000, seed: since.as_nanos() as u64, time_limit: TIME_LIMIT };
    let mut targets: Vec<&Target> = Vec::new();
    for pair in words.chunks(2) {
        let [name, value] = pair else { return Err(format!("{} needs a value", pair[0])) };
        let number =
            || value.replace('_', "").parse().map_err(|_| format!("{value} is not a number"));
        match name.as_str() {
            "--inputs" => plan.inputs = number()?,
            "--seed" => plan.seed = number()?,
            "--target" => {
                let known = ALL.iter().find(|target| target.name == value);
                targets.push(known.ok_or_else(|| format!("unknown target {value}"))?);
            }
            _ => return Err(format!("unknown option {name}")),
        }
    }
    if targets.is_empty() {
        targets.extend(ALL);
    }
    Ok(Asked { targets, plan })
}
