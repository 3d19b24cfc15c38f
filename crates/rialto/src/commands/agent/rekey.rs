//! `rialto agent rekey`: replaces an agent's key.

use rialto_client::Method;
use serde::Deserialize;
use serde_json::json;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::key_file::KeyFile;
use super::super::output;
use super::super::views::parse_json;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto agent rekey\n  rialto agent rekey --key-file alice.key\n  rialto agent rekey --as shout\n  RIALTO_KEY=rk_… rialto agent rekey     shows the new key, once\n\nRequests a new key from the hub and saves it in place of the old one, atomically: the file always\nholds either the old key or the new one. The old keys stay valid for ten minutes, so that running\nprograms can switch."
)]
pub struct Args {}

#[derive(Deserialize)]
struct RotateResponse {
    key: String,
    others_until: Option<String>,
}

pub async fn run(access: &HubOptions, _: &Args) -> Result<Exit, CliError> {
    let (hub, keys) = access.client_with_key()?;
    let origin = access.key_origin()?;
    // Overwrites the file with the same key: do not request a key that cannot be saved.
    origin.save_key(&keys)?;
    let (_, text) =
        hub.call_text(Method::POST, "/v1/keys/rotate", None).await.map_err(rotate_error)?;
    let rotated: RotateResponse = parse_json(&text)?;
    let fresh = KeyFile { key: KeyFile::from_key(&rotated.key).key, ..keys };
    let kept = origin.save_key(&fresh).map_err(|cli_error| {
        // The key cannot be shown again later.
        let next = Some(format!("save the new key yourself: {}", rotated.key));
        CliError { next, ..cli_error }
    })?;
    let until = rotated.others_until.as_deref().unwrap_or("now");
    let _ = match (kept, access.json) {
        (None, _) => output::print_line(&key_text(access.json, &rotated)),
        (Some(place), true) => {
            let document = json!({"kept_in": place, "others_until": rotated.others_until});
            output::print_line(&document.to_string())
        }
        (Some(place), false) => output::print_line(&format!(
            "new key saved in {place}; the old key is valid until {until}"
        )),
    };
    Ok(Exit::Ok)
}

fn key_text(as_json: bool, rotated: &RotateResponse) -> String {
    match as_json {
        true => json!({"key": rotated.key, "others_until": rotated.others_until}).to_string(),
        false => format!("key {}\nshown only once: save it", output::escape_line(&rotated.key)),
    }
}

/// The lost answer may contain a new key. The old key stays valid long enough to ask again.
fn rotate_error(error: rialto_client::CallError) -> CliError {
    let again = error.min_retry_delay().is_some();
    let cli_error = CliError::from(error);
    match again {
        true => CliError {
            next: Some("the answer was lost; run the command again within ten minutes".to_owned()),
            ..cli_error
        },
        false => cli_error,
    }
}
