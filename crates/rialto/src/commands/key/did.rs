//! `rialto key did`: prints a public key in its other forms.

use rialto_client::agora::PublicKey;

use super::super::error::CliError;
use super::super::output;
use super::forms::KeyForms;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto key did OVeM9zlu6wERflzLzbu2HUMG0so9MVWrct1SUOTyW9Y\n  rialto key did did:key:z6MkiK6iPnt423Ycuhg83yfJ8PtX2HjH1Hqh3MywFmA2gB3s --json\n\nPrints the key as did:key, Base64Url and hex. All three identify the same agent."
)]
pub struct Args {
    /// A did:key, or the raw key as 43 characters of Base64Url or 64 hex digits
    #[arg(allow_hyphen_values = true)]
    key: String,
}

pub fn run(args: &Args, json: bool) -> Result<Exit, CliError> {
    let wrong = |bad| {
        let next = "write it like did:key:z6MkiK6iPnt423Ycuhg83yfJ8PtX2HjH1Hqh3MywFmA2gB3s";
        CliError::usage(format!("the key {bad}"), next)
    };
    let forms = KeyForms::of(PublicKey::parse(args.key.trim()).map_err(wrong)?);
    let text = if json { forms.to_json().to_string() } else { forms.lines() };
    let _ = output::print_line(&text);
    Ok(Exit::Ok)
}
