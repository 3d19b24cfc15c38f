//! `rialto config`: shows the settings and their origins.

use std::path::PathBuf;

use clap::Subcommand;
use rialto_hub::config::{LoadedConfig, Profile};
use serde_json::json;

use super::error::CliError;
use super::output;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto config show --origin\n  rialto config check --config rialto.toml"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    /// Configuration file; ./rialto.toml is read if it exists
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// Print every setting
    #[command(
        after_help = "Examples:\n  rialto config show\n  rialto config show --origin --config rialto.toml\n  rialto config show --dev --json | jq -r '.[].key'"
    )]
    Show {
        /// Also show where each value comes from
        #[arg(long)]
        origin: bool,
        /// With the defaults of `rialto dev`
        #[arg(long)]
        dev: bool,
    },
    /// Validate the configuration
    #[command(
        after_help = "Examples:\n  rialto config check\n  rialto config check --config rialto.toml\n\nExits with 2 if the configuration has errors and lists them with their places, one per line."
    )]
    Check,
}

pub fn run(args: Args) -> Exit {
    render(&args).map_or_else(
        |error| error.report(args.json),
        |told| {
            // A closed pipe is not an error: the reader has seen enough.
            let _ = output::print_line(&told);
            Exit::Ok
        },
    )
}

fn render(args: &Args) -> Result<String, CliError> {
    let posture = match args.verb {
        Verb::Show { dev: true, .. } => Profile::Dev,
        Verb::Show { .. } | Verb::Check => Profile::Serve,
    };
    let loaded = LoadedConfig::load(posture, args.config.as_deref(), std::env::vars(), &[]);
    let loaded = loaded.map_err(|problems| {
        CliError::usage(
            problems.to_string(),
            "without a rialto.toml, `rialto config show` prints every setting in its file format",
        )
    })?;
    Ok(match (&args.verb, args.json) {
        (Verb::Check, true) => json!({"ok": true}).to_string(),
        (Verb::Check, false) => "the configuration is valid".to_owned(),
        (Verb::Show { .. }, true) => {
            serde_json::to_string_pretty(loaded.settings()).unwrap_or_default()
        }
        (Verb::Show { origin, .. }, false) => {
            let lines = loaded.settings().iter().map(|row| match origin {
                true => format!("{} = {}    # {}", row.key, row.value, row.origin),
                false => format!("{} = {}", row.key, row.value),
            });
            lines.collect::<Vec<_>>().join("\n")
        }
    })
}
