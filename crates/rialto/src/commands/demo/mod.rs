//! `rialto demo`: agents of all five protocols do one paid job together, then the demo ends.
//!
//! A Reader hires an Editor, which hires all the others it needs. The hub is real (`demo_hub`), the
//! agents are real (`agents`), and they talk to it over HTTP. What the agents report goes to the
//! `display`. What the hub has recorded is read from `hub_records`. `check` compares both with the
//! `plan`.

mod hub_records;
mod role;
mod check;
mod event;
mod history;
mod hops;
mod demo_hub;
mod ledger;
mod demo_agent;
mod plan;
mod agents;
mod balance;
mod report;
mod display;
mod scenario;
mod reporter;

#[cfg(test)]
mod tests;

use rialto_hub::shutdown::Shutdown;

use super::error::Trouble;
use super::{complain, runtime, output};
use crate::exit::Exit;
use check::Check;
use demo_hub::House;
use report::Report;
use display::{Show, Stage};

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto demo\n  rialto demo --check\n  rialto demo --json | jq .balances\n\nTakes a few seconds and uses a temporary hub: a Reader (registry) hires an Editor (openclaw), which\nfirst defers, then hires a Scout (agora, offers a price), a Checker (registry, fails as planned and\nis not paid), a Verifier (registry), a Polyglot (relay, replies to a message) and a Newsstand\n(clara), which holds an auction that an agora agent wins."
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
        Err(error) => return complain(error),
    };
    let shown = runtime.block_on(show(args));
    // Agents that still listen need not be waited for.
    runtime.shutdown_background();
    shown.unwrap_or_else(|trouble| trouble.tell(args.json))
}

async fn show(args: &Args) -> Result<Exit, Trouble> {
    let shutdown = Shutdown::on_signals().map_err(demo_hub::failed)?;
    let report = whole(Show::fitting(args.json, args.plain), &shutdown).await?;
    let checks = check::all(&report);
    let told = match args.json {
        true => report.json(&checks).map_err(balance::unreadable)?,
        false => report.told(),
    };
    // Here and below: a closed pipe is not an error.
    let _ = output::line(&told);
    Ok(if args.check { verdict(&checks, args.json) } else { Exit::Ok })
}

/// The whole demo, from the start of the hub to the audit of its data.
async fn whole(show: Show, shutdown: &Shutdown) -> Result<Report, Trouble> {
    let house = House::open().await?;
    let mut stage = Stage::new(show);
    let played = tokio::select! {
        played = scenario::play(&house, &mut stage) => played,
        () = shutdown.wait() => Err(interrupted()),
    };
    // However the demo ended, the hub is stopped properly and its data removed.
    let breaches = house.close().await;
    played.and_then(|report| Ok(Report { breaches: breaches?, ..report }))
}

/// Whether all checks hold; prints those that do not.
fn verdict(checks: &[Check], as_json: bool) -> Exit {
    let broken: Vec<&Check> = checks.iter().filter(|check| !check.holds).collect();
    // The JSON document already contains them.
    if !as_json {
        for check in &broken {
            let found = check.found.as_deref().unwrap_or_default();
            let (name, found) = (&check.name, output::one_line(found));
            output::aside(&format!("rialto: check failed: {name}; found {found}"));
        }
        let told = match broken.len() {
            0 => format!("\ndemo: all {} checks passed", checks.len()),
            count => format!("\ndemo: {count} of {} checks failed", checks.len()),
        };
        let _ = output::line(&told);
    }
    if broken.is_empty() { Exit::Ok } else { Exit::Failed }
}

fn interrupted() -> Trouble {
    let message = "the demo was interrupted".to_owned();
    Trouble { exit: Exit::Failed, code: None, message, next: None }
}
