//! `rialto demo`: agents of all five protocols do one paid job together, then the demo ends.
//!
//! A Reader hires an Editor, which hires all the others it needs. The hub is real (`demo_hub`), the
//! agents are real (`agents`), and they talk to it over HTTP. What the agents report goes to the
//! `display`. What the hub has recorded is read from `hub_records`. `check` compares both with the
//! `plan`.

mod agents;
mod balance;
mod check;
mod demo_agent;
mod demo_hub;
mod display;
mod event;
mod history;
mod hops;
mod hub_records;
mod ledger;
mod plan;
mod report;
mod reporter;
mod role;
mod scenario;

#[cfg(test)]
mod tests;

use rialto_hub::shutdown::Shutdown;

use super::error::CliError;
use super::{output, print_error, runtime};
use crate::exit::Exit;
use check::Check;
use demo_hub::DemoHub;
use display::{DisplayMode, LiveDisplay};
use report::DemoReport;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto demo\n  rialto demo --check\n  rialto demo --json | jq .balances\n\nTakes a few seconds and uses a temporary hub: a Reader (registry) hires an Editor (openclaw), which\nfirst defers, then hires a Scout (agora, offers a price), a Checker (registry, fails as planned and\nis not paid), a Verifier (registry), a Polyglot (relay, replies to a message) and a Newsstand\n(clara), which holds an auction that an agora agent wins."
)]
pub struct Args {
    /// Exit 1 if a check fails, and list the failed checks
    #[arg(long)]
    check: bool,
    /// Print one line per event, also on a terminal
    #[arg(long)]
    plain: bool,
    /// Print one JSON document at the end
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Exit {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return print_error(error),
    };
    let shown = runtime.block_on(run_and_print(args));
    // Agents that still listen need not be waited for.
    runtime.shutdown_background();
    shown.unwrap_or_else(|cli_error| cli_error.report(args.json))
}

async fn run_and_print(args: &Args) -> Result<Exit, CliError> {
    let shutdown = Shutdown::on_signals().map_err(demo_hub::setup_error)?;
    let report = run_to_end(DisplayMode::detect(args.json, args.plain), &shutdown).await?;
    let checks = check::run_all(&report);
    let told = match args.json {
        true => report.to_json(&checks).map_err(balance::unreadable)?,
        false => report.describe(),
    };
    // Here and below: a closed pipe is not an error.
    let _ = output::print_line(&told);
    Ok(if args.check { report_checks(&checks, args.json) } else { Exit::Ok })
}

/// The whole demo, from the start of the hub to the audit of its data.
async fn run_to_end(show: DisplayMode, shutdown: &Shutdown) -> Result<DemoReport, CliError> {
    let policy = DemoHub::start().await?;
    let mut stage = LiveDisplay::new(show);
    let played = tokio::select! {
        played = scenario::run_scenario(&policy, &mut stage) => played,
        () = shutdown.wait() => Err(interrupted()),
    };
    // However the demo ended, the hub is stopped properly and its data removed.
    let breaches = policy.stop_and_audit().await;
    played.and_then(|report| Ok(DemoReport { breaches: breaches?, ..report }))
}

/// Whether all checks hold; prints those that do not.
fn report_checks(checks: &[Check], as_json: bool) -> Exit {
    let broken: Vec<&Check> = checks.iter().filter(|check| !check.holds).collect();
    // The JSON document already contains them.
    if !as_json {
        for check in &broken {
            let found = check.found.as_deref().unwrap_or_default();
            let (name, found) = (&check.name, output::escape_line(found));
            output::print_stderr(&format!("rialto: check failed: {name}; found {found}"));
        }
        let told = match broken.len() {
            0 => format!("\ndemo: all {} checks passed", checks.len()),
            count => format!("\ndemo: {count} of {} checks failed", checks.len()),
        };
        let _ = output::print_line(&told);
    }
    if broken.is_empty() { Exit::Ok } else { Exit::Failed }
}

fn interrupted() -> CliError {
    let message = "the demo was interrupted".to_owned();
    CliError { exit: Exit::Failed, code: None, message, next: None }
}
