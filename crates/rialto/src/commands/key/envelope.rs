//! `rialto key sign`, `verify` and `canonical`: envelopes and the bytes that are signed.

use std::path::{Path, PathBuf};

use rialto_client::agora::{
    Failure, Identity, MessageType, Millis, PublicKey, Timestamp, canonical_json, signing_input,
};
use rialto_protocols::agora::wire::envelope::{self, Envelope};
use rialto_protocols::agora::wire::signature;
use rialto_protocols::agora::{Proof, SignatureForm, prove};
use rialto_protocols::kit::rfc3339;
use serde_json::{Value, json};

use super::AgoraKeyOptions;
use crate::commands::time::{now, parse_duration};
use crate::commands::{CliError, CliResult, Exit, input, output};

#[derive(clap::Args)]
pub struct SignArgs {
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

#[derive(clap::Args)]
pub struct VerifyArgs {
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

fn kind(text: &str) -> Result<MessageType, String> {
    let types = "must be HELLO, WELCOME, STATUS, REQUEST, OFFER, ACCEPT, RESULT or ERROR";
    MessageType::read(&text.to_ascii_uppercase()).ok_or_else(|| types.to_owned())
}

fn key(text: &str) -> Result<PublicKey, String> {
    PublicKey::parse(text).map_err(|bad| bad.to_string())
}

fn time(text: &str) -> Result<Timestamp, String> {
    rfc3339::parse(text).map_err(|bad| bad.to_string())
}

/// Reads an envelope or other JSON.
fn read_json_file(path: &Path) -> CliResult<String> {
    let next = "name a file that contains JSON in UTF-8, or pipe it in";
    input::read_input(path, input::read_text, next)
}

pub fn sign(args: &SignArgs, json: bool) -> CliResult {
    let signed = sign_envelope(args, &args.source.identity()?)?;
    let text = if json { document(&signed)? } else { signed };
    Ok(output::print_data(text))
}

fn sign_envelope(args: &SignArgs, identity: &Identity) -> CliResult<String> {
    Ok(match args.kind {
        Some(kind) => identity.sign(kind, &args.payload, args.to)?.as_str().to_owned(),
        None => identity.sign_envelope(&read_json_file(&args.file)?)?,
    })
}

/// The envelope unchanged, with a summary of its content.
fn document(signed: &str) -> CliResult<String> {
    let wrong = |failure: Failure| CliError::plain(failure.message.to_string());
    let json = envelope::read_json(signed.as_bytes()).map_err(wrong)?;
    let envelope = Envelope::read(&json).map_err(wrong)?;
    let proof = signature::verify(&envelope).map_err(wrong)?;
    let summary = proof_json(&envelope, &proof).to_string();
    Ok(format!("{},\"envelope\":{signed}}}", summary.trim_end_matches('}')))
}

pub fn verify(args: &VerifyArgs, json: bool) -> CliResult {
    let text = read_json_file(&args.file)?;
    let refused = |failure: Failure| CliError {
        exit: Exit::Failed,
        code: Some(failure.code.number().to_string()),
        message: failure.message.to_string(),
        next: failure.hint.map(|hint| hint.to_string()),
    };
    let parsed = envelope::read_json(text.as_bytes()).map_err(refused)?;
    let envelope = Envelope::read(&parsed).map_err(refused)?;
    let proof = prove(&envelope, args.now.unwrap_or_else(now), args.window).map_err(refused)?;
    let document = proof_json(&envelope, &proof);
    Ok(output::print(json, &document, || lines(&document)))
}

/// The verified facts of an envelope.
fn proof_json(envelope: &Envelope<'_>, proof: &Proof) -> Value {
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

pub fn print_canonical(file: &Path, to_sign: bool, json: bool) -> CliResult {
    let text = read_json_file(file)?;
    let canonical = if to_sign { signing_input(&text) } else { canonical_json(&text) };
    // The command line is correct, but the file is not, so this is not a usage error.
    let canonical =
        canonical.map_err(|error| CliError { exit: Exit::Failed, ..CliError::from(error) })?;
    let _ = if json {
        let document = json!({"canonical": canonical, "bytes": canonical.len()});
        output::print_line(&document.to_string())
    } else {
        output::print_text(&canonical)
    };
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use rialto_client::agora::Seed;
    use rialto_protocols::agora::wire::error::ENVELOPE_EXAMPLE;

    use super::*;

    #[test]
    fn what_is_made_is_signed_and_told_with_its_envelope() {
        let identity = Identity::new(&Seed::from_bytes([1; 32]));
        let args = SignArgs {
            source: AgoraKeyOptions { key_file: None },
            file: "-".into(),
            kind: Some(kind("status").expect("a type")),
            payload: r#"{"status":"idle"}"#.to_owned(),
            to: Some(identity.key()),
        };
        let signed = sign_envelope(&args, &identity).expect("signed");
        let document: Value =
            serde_json::from_str(&document(&signed).expect("a document")).expect("JSON");
        assert_eq!(document["signed_by"], identity.did());
        assert_eq!(document["envelope"]["payload"]["status"], "idle");
        assert_eq!(document["form"], "empty");
        assert!(kind("DEBATE").is_err());
    }

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
