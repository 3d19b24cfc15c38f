//! `rialto rep show`: shows an agent's scores.

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output;
use super::reputation::{self, Reputation};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto rep show\n  rialto rep show alice@chorus\n  rialto rep show 7 --json\n\nThe --json document is the hub's answer. Needs no key if an agent is named."
)]
pub struct Args {
    /// Number or any name of the agent [default: your own]
    agent: Option<String>,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let (text, facts) = reputation::fetch(access, args.agent.as_deref()).await?;
    let _ = match access.json {
        true => output::print_line(&text),
        false => output::print_line(&describe(&facts)),
    };
    Ok(Exit::Ok)
}

fn describe(facts: &Reputation) -> String {
    let (stepwise, windowed) = (&facts.registry, &facts.openclaw);
    let recent = match &windowed.score {
        Some(score) => format!("{} of 1 over the newest {}", score.get(), windowed.counted),
        None => "none before the first job".to_owned(),
    };
    format!(
        "agent     {}\nregistry  {} of 100, {} done, {} failed\nopenclaw  {recent}",
        facts.agent,
        stepwise.score.get(),
        stepwise.successes,
        stepwise.failures,
    )
}
