//! `rialto agent rekey`: replaces an agent's key.

use rialto_client::Method;
use serde::Deserialize;
use serde_json::json;

use super::super::hub_options::Access;
use super::super::key_file::KeyFile;
use super::super::output;
use super::super::error::Trouble;
use super::super::views::read;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto agent rekey\n  rialto agent rekey --key-file alice.key\n  rialto agent rekey --as shout\n  RIALTO_KEY=rk_… rialto agent rekey     shows the new key, once\n\nRequests a new key from the hub and saves it in place of the old one, atomically: the file always\nholds either the old key or the new one. The old keys stay valid for ten minutes, so that running\nprograms can switch."
)]
pub struct Args {}

#[derive(Deserialize)]
struct Rotated {
    key: String,
    others_until: Option<String>,
}

pub async fn run(access: &Access, _: &Args) -> Result<Exit, Trouble> {
    let (hub, keys) = access.me()?;
    let origin = access.origin()?;
    // Overwrites the file with the same key: do not request a key that cannot be saved.
    origin.keep(&keys)?;
    let (_, text) = hub.call_text(Method::POST, "/v1/keys/rotate", None).await.map_err(lost)?;
    let rotated: Rotated = read(&text)?;
    let fresh = KeyFile { key: KeyFile::of(&rotated.key).key, ..keys };
    let kept = origin.keep(&fresh).map_err(|trouble| {
        // The key cannot be shown again later.
        let next = Some(format!("save the new key yourself: {}", rotated.key));
        Trouble { next, ..trouble }
    })?;
    let until = rotated.others_until.as_deref().unwrap_or("now");
    let _ = match (kept, access.json) {
        (None, _) => output::line(&shown(access.json, &rotated)),
        (Some(place), true) => {
            let document = json!({"kept_in": place, "others_until": rotated.others_until});
            output::line(&document.to_string())
        }
        (Some(place), false) => {
            output::line(&format!("new key saved in {place}; the old key is valid until {until}"))
        }
    };
    Ok(Exit::Ok)
}

fn shown(as_json: bool, rotated: &Rotated) -> String {
    match as_json {
        true => json!({"key": rotated.key, "others_until": rotated.others_until}).to_string(),
        false => format!("key {}\nshown only once: save it", output::one_line(&rotated.key)),
    }
}

/// The lost answer may contain a new key. The old key stays valid long enough to ask again.
fn lost(error: rialto_client::CallError) -> Trouble {
    let again = error.may_pass_after().is_some();
    let trouble = Trouble::from(error);
    match again {
        true => Trouble {
            next: Some("the answer was lost; run the command again within ten minutes".to_owned()),
            ..trouble
        },
        false => trouble,
    }
}
