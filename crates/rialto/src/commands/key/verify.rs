//! `rialto key verify`: verifies an envelope.

use std::path::PathBuf;

use rialto_client::agora::{Failure, Millis, Timestamp};
use rialto_protocols::agora::envelope::{self, Envelope};
use rialto_protocols::agora::{Form, Proof, prove};
use rialto_protocols::kit::rfc3339;
use serde_json::{Value, json};

use super::super::duration::length;
use super::super::output;
use super::super::error::Trouble;
use super::input_text;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto key verify envelope.json\n  rialto key verify --now 2024-01-01T00:00:00Z vector.json\n  rialto key verify --window 24h --json < envelope.json\n\nPrints the signer, the signed form, and the SHA-256 of the signed bytes. Exits with 1 and the reason\nif the envelope is invalid, not signed by its sender, or not fresh."
)]
pub struct Args {
    /// File with the envelope; - is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// Time to verify at [default: now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    now: Option<Timestamp>,
    /// How far the timestamp may be from that time
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = length)]
    window: Millis,
}

pub fn run(args: &Args, json: bool) -> Result<Exit, Trouble> {
    let text = input_text::read(&args.file)?;
    let now = args.now.unwrap_or_else(present);
    let refused = |failure: Failure| Trouble {
        exit: Exit::Failed,
        code: Some(failure.code.number().to_string()),
        message: failure.message.to_string(),
        next: failure.hint.map(|hint| hint.to_string()),
    };
    let parsed = envelope::parse(text.as_bytes()).map_err(refused)?;
    let envelope = Envelope::read(&parsed).map_err(refused)?;
    let proof = prove(&envelope, now, args.window).map_err(refused)?;
    let document = document(&envelope, &proof);
    let shown = if json { document.to_string() } else { lines(&document) };
    let _ = output::line(&shown);
    Ok(Exit::Ok)
}

/// The verified facts of an envelope.
pub fn document(envelope: &Envelope<'_>, proof: &Proof) -> Value {
    let form = match proof.form {
        Form::Empty => "empty",
        Form::Removed => "removed",
    };
    let sha256: String = proof.canonical_sha256.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "signed_by": proof.key.did(),
        "form": form,
        "sha256": sha256,
        "id": envelope.id,
        "type": envelope.kind.as_str(),
        "timestamp": envelope.timestamp_text,
        "recipient": envelope.recipient.map(|key| key.did()),
    })
}

fn lines(document: &Value) -> String {
    let line = |name: &str| {
        let value = document[name].as_str()?;
        Some(format!("{:10} {}", name.replace('_', " "), output::one_line(value)))
    };
    let names = ["signed_by", "form", "sha256", "id", "type", "timestamp", "recipient"];
    names.into_iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

fn present() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp(i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX))
}

fn time(text: &str) -> Result<Timestamp, String> {
    rfc3339::parse(text).map_err(|bad| bad.to_string())
}

#[cfg(test)]
mod tests {
    use rialto_protocols::agora::examples::ENVELOPE;

    use super::*;

    #[test]
    fn the_published_vector_is_told_as_the_book_has_it() {
        let json = envelope::parse(ENVELOPE.as_bytes()).expect("JSON");
        let envelope = Envelope::read(&json).expect("an envelope");
        let now = time("2024-01-01T00:01:00Z").expect("a time");
        let proof = prove(&envelope, now, length("60s").expect("a length")).expect("a proof");
        let lines = lines(&document(&envelope, &proof));
        for part in [
            "signed by  did:key:z6MkiK6iPnt423Ycuhg83yfJ8PtX2HjH1Hqh3MywFmA2gB3s\n",
            "form       empty\n",
            "sha256     916b5ef1f8e9a0ac07de354beae6fbd0b6a56330a168d4f5bed3cae93b52dc48\n",
        ] {
            assert!(lines.contains(part), "{lines}");
        }
        assert!(prove(&envelope, now, length("59999ms").expect("a length")).is_err());
    }
}
