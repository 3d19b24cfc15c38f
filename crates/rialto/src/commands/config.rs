//! `rialto config`: shows the settings and their origins.

use std::path::PathBuf;

use clap::Subcommand;
use rialto_hub::config::{LoadedConfig, Profile};
use serde_json::json;

use super::{CliError, CliResult, Exit, output};

#[derive(clap::Args)]
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
    Show {
        /// Also show where each value comes from
        #[arg(long)]
        origin: bool,
        /// With the defaults of `rialto dev`
        #[arg(long)]
        dev: bool,
    },
    /// Validate the configuration
    Check,
}

pub fn run(args: Args) -> Exit {
    print_config(&args).unwrap_or_else(|cli_error| cli_error.report(args.json))
}

fn print_config(args: &Args) -> CliResult {
    let profile = match args.verb {
        Verb::Show { dev: true, .. } => Profile::Dev,
        Verb::Show { .. } | Verb::Check => Profile::Serve,
    };
    let loaded = LoadedConfig::load(profile, args.config.as_deref(), std::env::vars(), &[]);
    let loaded = loaded.map_err(|problems| {
        CliError::usage(
            problems.to_string(),
            "without a rialto.toml, `rialto config show` prints every setting in its file format",
        )
    })?;
    let Verb::Show { origin, .. } = args.verb else {
        let text = || "the configuration is valid".to_owned();
        return Ok(output::print(args.json, json!({"ok": true}), text));
    };
    let document = serde_json::to_string_pretty(loaded.settings()).unwrap_or_default();
    Ok(output::print(args.json, document, || {
        let lines = loaded.settings().iter().map(|row| {
            let origin = if origin { format!("    # {}", row.origin) } else { String::new() };
            format!("{} = {}{origin}", row.key, row.value)
        });
        lines.collect::<Vec<_>>().join("\n")
    }))
}
