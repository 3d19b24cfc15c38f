//! `rialto key show`: shows the public half of a key.

use std::path::{Path, PathBuf};

use rialto_client::agora::{Identity, PublicKey, Seed};
use rialto_engine::secret::{ENV_VAR, FILE_NAME, HubSecret};

use super::super::error::CliError;
use super::super::output;
use super::failed;
use super::forms::KeyForms;
use super::seed_file::AgoraKeyOptions;
use crate::exit::Exit;

/// How the hub's own key is derived from its secret (HKDF-SHA-256).
const SALT: &str = "rialto agora alias v1";
const INFO: &str = "hub";

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto key show --key-file alice.agora\n  RIALTO_AGORA_KEY=$(head -n 1 alice.agora) rialto key show --json\n  rialto key show --data ./rialto-data      the hub's own did:key\n\nNever shows the secret half."
)]
pub struct Args {
    #[command(flatten)]
    source: AgoraKeyOptions,
    /// Show the key of the hub with this data directory (its hub.key, or env RIALTO_HUB_SECRET)
    #[arg(long, value_name = "DIR", conflicts_with = "key_file")]
    data: Option<PathBuf>,
}

pub fn run(args: &Args, json: bool) -> Result<Exit, CliError> {
    let key = match &args.data {
        Some(dir) => hub_key(dir, std::env::var(ENV_VAR).ok())?,
        None => args.source.identity()?.key(),
    };
    let forms = KeyForms::of(key);
    let text = if json { forms.to_json().to_string() } else { forms.lines() };
    let _ = output::print_line(&text);
    Ok(Exit::Ok)
}

/// The hub's key. Reading it must not create one.
fn hub_key(dir: &Path, variable: Option<String>) -> Result<PublicKey, CliError> {
    let path = dir.join(FILE_NAME);
    let in_file = path.exists();
    if !in_file && variable.is_none() {
        return Err(CliError {
            exit: Exit::NotFound,
            code: None,
            message: format!("there is no {}", path.display()),
            next: Some("a hub creates it at its first start; check the data directory".to_owned()),
        });
    }
    let variable = variable.filter(|_| !in_file);
    let secret = HubSecret::load_or_create(dir, variable);
    let secret = secret.map_err(|error| failed(error.to_string(), None))?;
    Ok(Identity::new(&Seed::from_bytes(secret.derive(SALT, INFO))).key())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hubs_key_is_that_of_the_book_and_looking_makes_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let cli_error = hub_key(dir.path(), None).expect_err("none");
        assert_eq!(cli_error.exit, Exit::NotFound);
        assert!(!dir.path().join(FILE_NAME).exists());
        let hex: String = (0..32).map(|byte| format!("{byte:02x}")).collect();
        let key = hub_key(dir.path(), Some(hex)).expect("a key");
        assert_eq!(key.did(), "did:key:z6MkshWLjEnbWLWHeQeFqmuLGuu45GiRuTykNCTWboBhBhnR");
        assert!(!dir.path().join(FILE_NAME).exists());
    }
}
