//! `rialto operator key`: creates an operator key, in addition to the others or in place of them.

use std::path::PathBuf;

use clap::Subcommand;
use rialto_client::Method;
use rialto_core::agent::key::Holder;
use rialto_core::command::Command;
use rialto_engine::clock::{Clock, SystemClock};
use rialto_engine::keys::{Key, KeyPrefix};
use rialto_engine::offline;
use rialto_engine::random::{OsRandom, RandomSource};
use rialto_engine::store::StoreError;
use serde::Deserialize;
use serde_json::json;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output::{self, escape_line};
use super::super::views::parse_json;
use super::operator_client;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto operator key new\n  rialto operator key rotate\n  rialto operator key rotate --data ./rialto-data     if the key is lost, with the hub stopped"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    /// Work on the data directory of a stopped hub, without a key
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Verb {
    /// Create another key; the existing keys stay valid
    #[command(after_help = "Examples:\n  rialto operator key new\n\nThe key is shown once.")]
    New,
    /// Create a new key; all others stop working at once
    #[command(
        after_help = "Examples:\n  rialto operator key rotate\n  rialto operator key rotate --data ./rialto-data\n\nThe key is shown once. A hub started with RIALTO_OPERATOR_KEY needs the new key there."
    )]
    Rotate,
}

#[derive(Deserialize)]
struct IssueKeyResponse {
    key: String,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let retire_others = matches!(args.verb, Verb::Rotate);
    let key = match &args.data {
        Some(dir) => offline_key(dir, retire_others)?,
        None => {
            let body = json!({"retire_others": retire_others}).to_string();
            let hub = operator_client(access)?;
            let (_, answer) = hub.call_text(Method::POST, "/v1/operator/keys", Some(body)).await?;
            parse_json::<IssueKeyResponse>(&answer)?.key
        }
    };
    let _ = match access.json {
        true => {
            output::print_line(&json!({"key": key, "others_retired": retire_others}).to_string())
        }
        false => {
            output::print_line(&format!("operator key (shown only once): {}", escape_line(&key)))
        }
    };
    Ok(Exit::Ok)
}

/// Write access to the data directory is sufficient proof.
fn offline_key(dir: &std::path::Path, retire_others: bool) -> Result<String, CliError> {
    let key = Key::from_random(KeyPrefix::OPERATOR, OsRandom.new_key_bytes());
    let (holder, hash) = (Holder::Operator, key.hash());
    let command = Command::IssueKey { holder, hash, retire_others, by_operator: true };
    let ran = offline::run_command(dir, command, SystemClock::start().wall_time());
    ran.map_err(|error| match error {
        StoreError::InUse(_) => CliError::conflict(
            error.to_string(),
            "stop the hub, or leave out --data and use its key",
        ),
        StoreError::Missing(_) => {
            CliError::not_found(error.to_string(), "name a hub's data directory with --data")
        }
        error => CliError::failed(error.to_string(), "`rialto audit --data DIR` shows the details"),
    })?;
    Ok(key.expose().to_owned())
}
