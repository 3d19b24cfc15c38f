//! `rialto key hello`: sends HELLO to a hub and prints its WELCOME.

use rialto_client::agora::{Agent, Profile, Server};

use super::super::error::CliError;
use super::super::output;
use super::seed_file::AgoraKeyOptions;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto key hello --key-file alice.agora\n  rialto key hello --key-file alice.agora --name Alice --inbox --hub http://127.0.0.1:7425\n\nPrints the hub's WELCOME after verifying it. With --inbox it contains a token that can read this\nkey's inbox for an hour: keep it secret."
)]
pub struct Args {
    #[command(flatten)]
    source: AgoraKeyOptions,
    /// Base URL of the hub
    #[arg(
        long,
        env = "RIALTO_HUB",
        hide_env_values = true,
        value_name = "URL",
        default_value = "http://127.0.0.1:7425"
    )]
    hub: String,
    /// Name of the agent
    #[arg(long)]
    name: Option<String>,
    /// Ask for an inbox token
    #[arg(long)]
    inbox: bool,
}

pub async fn run(args: &Args) -> Result<Exit, CliError> {
    let identity = args.source.identity()?;
    let agent = Agent::new(identity, Server::discover(&args.hub).await?);
    let profile = Profile { name: args.name.clone(), ..Profile::default() };
    let welcomed = agent.hello(&profile, args.inbox).await?;
    let _ = output::print_line(&welcomed.raw);
    Ok(Exit::Ok)
}
