//! `rialto rep show`: shows an agent's scores.

use super::super::hub_options::Access;
use super::super::output;
use super::super::error::Trouble;
use super::reputation::{self, Facts};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto rep show\n  rialto rep show alice@chorus\n  rialto rep show 7 --json\n\nThe --json document is the hub's answer. Needs no key if an agent is named."
)]
pub struct Args {
    /// Number or any name of the agent [default: your own]
    agent: Option<String>,
}

pub async fn run(access: &Access, args: &Args) -> Result<Exit, Trouble> {
    let (text, facts) = reputation::ask(access, args.agent.as_deref()).await?;
    let _ = match access.json {
        true => output::line(&text),
        false => output::line(&told(&facts)),
    };
    Ok(Exit::Ok)
}

fn told(facts: &Facts) -> String {
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
