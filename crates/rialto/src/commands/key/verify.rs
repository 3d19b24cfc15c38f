//! `rialto key verify`: verifies an envelope.

use std::path::PathBuf;

use rialto_client::agora::{Failure, Millis, Timestamp};
use rialto_protocols::agora::wire::envelope::{self, Envelope};
use rialto_protocols::agora::{Proof, SignatureForm, prove};
use rialto_protocols::kit::rfc3339;
use serde_json::{Value, json};

use super::super::duration::parse_duration;
use super::super::error::CliError;
use super::super::output;
use super::input_text;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto key verify envelope.json\n  rialto key verify --now 2024-01-01T00:00:00Z vector.json\n  rialto key verify --window 24h --json < envelope.json\n\nPrints the signer, the signed form, and the SHA-256 of the signed bytes. Exits with 1 and the reason\nif the envelope is invalid, not signed by its sender, or not fresh."
)]
pub struct Args {
    /// File with the envelope; - is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// Time to verify at [default: now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    now: Option<Timestamp>,
    /// How far the timestamp may be from that time
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    window: Millis,
}

pub fn run(args: &Args, json: bool) -> Result<Exit, CliError> {
    let text = input_text::read_input(&args.file)?;
    let now = args.now.unwrap_or_else(now);
    let refused = |failure: Failure| CliError {
        exit: Exit::Failed,
        code: Some(failure.code.number().to_string()),
        message: failure.message.to_string(),
        next: failure.hint.map(|hint| hint.to_string()),
    };
    let parsed = envelope::read_json(text.as_bytes()).map_err(refused)?;
    let envelope = Envelope::read(&parsed).map_err(refused)?;
    let proof = prove(&envelope, now, args.window).map_err(refused)?;
    let document = proof_json(&envelope, &proof);
    let shown = if json { document.to_string() } else { lines(&document) };
    let _ = output::print_line(&shown);
    Ok(Exit::Ok)
}

/// The verified facts of an envelope.
pub fn proof_json(envelope: &Envelope<'_>, proof: &Proof) -> Value {
    let form = match proof.form {
        SignatureForm::Empty => "empty",
        SignatureForm::Removed => "removed",
    };
    let sha256: String = proof.canonical_sha256.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "signed_by": proof.key.did(),
        "form": form,
        "sha256": sha256,
        "id": envelope.id,
        "type": envelope.message_type.as_str(),
        "timestamp": envelope.timestamp_text,
        "recipient": envelope.recipient.map(|key| key.did()),
    })
}

fn lines(document: &Value) -> String {
    let line = |name: &str| {
        let value = document[name].as_str()?;
        Some(format!("{:10} {}", name.replace('_', " "), output::escape_line(value)))
    };
    let names = ["signed_by", "form", "sha256", "id", "type", "timestamp", "recipient"];
    names.into_iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp(i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX))
}

fn time(text: &str) -> Result<Timestamp, String> {
    rfc3339::parse(text).map_err(|bad| bad.to_string())
}

#[cfg(test)]
mod tests {
    use rialto_protocols::agora::wire::error::ENVELOPE_EXAMPLE;

    use super::*;

    #[test]
    fn the_published_vector_is_told_as_the_book_has_it() {
        let json = envelope::read_json(ENVELOPE_EXAMPLE.as_bytes()).expect("JSON");
        let envelope = Envelope::read(&json).expect("an envelope");
        let now = time("2024-01-01T00:01:00Z").expect("a time");
        let proof =
            prove(&envelope, now, parse_duration("60s").expect("a length")).expect("a proof");
        let lines = lines(&proof_json(&envelope, &proof));
        for part in [
            "signed by  did:key:z6MkiK6iPnt423Ycuhg83yfJ8PtX2HjH1Hqh3MywFmA2gB3s\n",
            "form       empty\n",
            "sha256     916b5ef1f8e9a0ac07de354beae6fbd0b6a56330a168d4f5bed3cae93b52dc48\n",
        ] {
            assert!(lines.contains(part), "{lines}");
        }
        assert!(prove(&envelope, now, parse_duration("59999ms").expect("a length")).is_err());
    }
}
