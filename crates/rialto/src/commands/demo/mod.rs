//! `rialto demo`: agents of all five protocols do one paid job together, and then it ends.
//!
//! A Reader hires an Editor, who hires everybody else it needs. The hub is a real one (`house`), the
//! agents are real ones (`players`), and they speak with it over HTTP like all others. What they say
//! they do goes to the `stage`; what the hub has written down is read from its `books`; and `check`
//! holds both against the `plan`.

mod books;
mod cast;
mod check;
mod event;
mod history;
mod hops;
mod house;
mod ledger;
mod people;
mod plan;
mod players;
mod purse;
mod report;
mod stage;
mod story;
mod teller;

#[cfg(test)]
mod tests;

use rialto_hub::shutdown::Shutdown;

use super::trouble::Trouble;
use super::{complain, runtime, say};
use crate::exit::Exit;
use check::Check;
use house::House;
use report::Report;
use stage::{Show, Stage};

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto demo\n  rialto demo --check\n  rialto demo --json | jq .balances\n\nA story of a few seconds, in a hub of its own that is gone afterwards: a Reader (registry) hires an\nEditor (openclaw), who first defers, and hires a Scout (agora, names its price), a Checker (registry,\nfails as planned and is not paid), a Verifier (registry), a Polyglot (relay, replies to a message) and\na Newsstand (clara), which holds an auction that an agent of agora wins."
)]
pub struct Args {
    /// Exit 1 if a check fails, and list the failed checks
    #[arg(long)]
    check: bool,
    /// One line for everything that happens, also on a terminal
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
    // Agents that still listen have nothing left to hear.
    runtime.shutdown_background();
    shown.unwrap_or_else(|trouble| trouble.tell(args.json))
}

async fn show(args: &Args) -> Result<Exit, Trouble> {
    let shutdown = Shutdown::on_signals().map_err(house::failed)?;
    let report = whole(Show::fitting(args.json, args.plain), &shutdown).await?;
    let checks = check::all(&report);
    let told = match args.json {
        true => report.json(&checks).map_err(purse::unreadable)?,
        false => report.told(),
    };
    // Here and below: whoever stopped reading does not want to know.
    let _ = say::line(&told);
    Ok(if args.check { verdict(&checks, args.json) } else { Exit::Ok })
}

/// The whole story, from the start of the hub to the audit of what it leaves behind.
async fn whole(show: Show, shutdown: &Shutdown) -> Result<Report, Trouble> {
    let house = House::open().await?;
    let mut stage = Stage::new(show);
    let played = tokio::select! {
        played = story::play(&house, &mut stage) => played,
        () = shutdown.wait() => Err(interrupted()),
    };
    // However it ended, the hub stops as it should and leaves nothing behind.
    let breaches = house.close().await;
    played.and_then(|report| Ok(Report { breaches: breaches?, ..report }))
}

/// Whether all checks hold; those that do not are named.
fn verdict(checks: &[Check], as_json: bool) -> Exit {
    let broken: Vec<&Check> = checks.iter().filter(|check| !check.holds).collect();
    // The document has them already.
    if !as_json {
        for check in &broken {
            let found = check.found.as_deref().unwrap_or_default();
            let (name, found) = (&check.name, say::one_line(found));
            say::aside(&format!("rialto: check failed: {name}; found {found}"));
        }
        let told = match broken.len() {
            0 => format!("\ndemo: all {} checks passed", checks.len()),
            count => format!("\ndemo: {count} of {} checks failed", checks.len()),
        };
        let _ = say::line(&told);
    }
    if broken.is_empty() { Exit::Ok } else { Exit::Failed }
}

fn interrupted() -> Trouble {
    let message = "the demo was interrupted".to_owned();
    Trouble { exit: Exit::Failed, code: None, message, next: None }
}
