//! `rialto config`: what is set, and where from.

use std::path::PathBuf;

use clap::Subcommand;
use rialto_hub::config::{Loaded, Posture};

use super::complain;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto config show --origin\n  rialto config check --config rialto.toml"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Print every setting
    Show {
        /// Also say where each value comes from
        #[arg(long)]
        origin: bool,
        /// As `rialto dev` would have it
        #[arg(long)]
        dev: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[arg(long)]
        config: Option<PathBuf>,
    },
    /// Say whether the configuration is good
    Check {
        #[arg(long)]
        config: Option<PathBuf>,
    },
}

pub fn run(args: Args) -> Exit {
    let (posture, file) = match &args.verb {
        Verb::Show { dev: true, config, .. } => (Posture::Dev, config.clone()),
        Verb::Show { config, .. } | Verb::Check { config } => (Posture::Serve, config.clone()),
    };
    let loaded = match Loaded::load(posture, file.as_deref(), std::env::vars(), &[]) {
        Ok(loaded) => loaded,
        Err(problem) => {
            complain(problem);
            return Exit::Usage;
        }
    };
    match args.verb {
        Verb::Check { .. } => println!("the configuration is good"),
        Verb::Show { json: true, .. } => {
            println!("{}", serde_json::to_string_pretty(loaded.rows()).unwrap_or_default());
        }
        Verb::Show { origin, .. } => {
            for row in loaded.rows() {
                match origin {
                    true => println!("{} = {}    # {}", row.key, row.value, row.origin),
                    false => println!("{} = {}", row.key, row.value),
                }
            }
        }
    }
    Exit::Ok
}
