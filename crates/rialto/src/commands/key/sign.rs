//! `rialto key sign`: signs an envelope.

use std::path::PathBuf;

use rialto_client::agora::{Identity, MessageType, PublicKey};
use rialto_protocols::agora::wire::envelope::{self, Envelope};
use rialto_protocols::agora::wire::signature;

use super::super::error::CliError;
use super::super::output;
use super::seed_file::AgoraKeyOptions;
use super::{failed, input_text, verify};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto key sign --key-file alice.agora envelope.json\n  rialto key sign --key-file alice.agora --type STATUS --payload '{\"status\":\"idle\"}'\n  rialto key sign --key-file alice.agora --type REQUEST --to did:key:z6MkiK6iPnt423Ycuhg83yfJ8PtX2HjH1Hqh3MywFmA2gB3s --payload '{\"resource\":\"agora:time:v1\",\"params\":{}}' | curl --json @- http://127.0.0.1:7425/agora\n\nPrints the signed envelope. Missing protocol, id, timestamp and sender are filled in; everything\nelse stays unchanged."
)]
pub struct Args {
    #[command(flatten)]
    source: AgoraKeyOptions,
    /// File with the envelope to sign; - is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// Create an envelope of this type instead: HELLO, REQUEST, …
    #[arg(long = "type", value_name = "TYPE", value_parser = kind, conflicts_with = "file")]
    kind: Option<MessageType>,
    /// Payload of the new envelope, a JSON object
    #[arg(
        long,
        value_name = "JSON",
        default_value = "{}",
        requires = "kind",
        conflicts_with = "file"
    )]
    payload: String,
    /// Key of the recipient
    #[arg(long, value_name = "KEY", value_parser = key, requires = "kind", conflicts_with = "file")]
    to: Option<PublicKey>,
}

fn kind(text: &str) -> Result<MessageType, String> {
    let wanted =
        || "must be HELLO, WELCOME, STATUS, REQUEST, OFFER, ACCEPT, RESULT or ERROR".into();
    MessageType::read(&text.to_ascii_uppercase()).ok_or_else(wanted)
}

fn key(text: &str) -> Result<PublicKey, String> {
    PublicKey::parse(text).map_err(|bad| bad.to_string())
}

pub fn run(args: &Args, json: bool) -> Result<Exit, CliError> {
    let identity = args.source.identity()?;
    let signed = signed(args, &identity)?;
    let shown = match json {
        false => signed,
        true => document(&signed)?,
    };
    let _ = output::print_line(&shown);
    Ok(Exit::Ok)
}

fn signed(args: &Args, identity: &Identity) -> Result<String, CliError> {
    Ok(match args.kind {
        Some(kind) => identity.sign(kind, &args.payload, args.to)?.as_str().to_owned(),
        None => identity.sign_envelope(&input_text::read_input(&args.file)?)?,
    })
}

/// The envelope unchanged, with a summary of its content.
fn document(signed: &str) -> Result<String, CliError> {
    let wrong = |bad: rialto_client::agora::Failure| failed(bad.message.to_string(), None);
    let json = envelope::read_json(signed.as_bytes()).map_err(wrong)?;
    let envelope = Envelope::read(&json).map_err(wrong)?;
    let proof = signature::verify(&envelope).map_err(wrong)?;
    let about = verify::proof_json(&envelope, &proof);
    Ok(format!("{},\"envelope\":{signed}}}", about.to_string().trim_end_matches('}')))
}

#[cfg(test)]
mod tests {
    use rialto_client::agora::Seed;

    use super::*;

    #[test]
    fn what_is_made_is_signed_and_told_with_its_envelope() {
        let identity = Identity::new(&Seed::from_bytes([1; 32]));
        let args = Args {
            source: AgoraKeyOptions { key_file: None },
            file: "-".into(),
            kind: Some(kind("status").expect("a type")),
            payload: r#"{"status":"idle"}"#.to_owned(),
            to: Some(identity.key()),
        };
        let signed = signed(&args, &identity).expect("signed");
        let document: serde_json::Value =
            serde_json::from_str(&document(&signed).expect("a document")).expect("JSON");
        assert_eq!(document["signed_by"], identity.did());
        assert_eq!(document["envelope"]["payload"]["status"], "idle");
        assert_eq!(document["form"], "empty");
        assert!(kind("DEBATE").is_err());
    }
}
