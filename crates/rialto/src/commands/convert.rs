//! `rialto convert`: shows a request of one protocol as an agent of another would get it, without a
//! hub.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rialto_core::alias::Protocol;
use rialto_core::time::Timestamp;
use rialto_protocols::adapter::fidelity::{Conversion, convert};
use serde::Serialize;

use super::error::CliError;
use super::notes::{NoteRow, table};
use super::output;
use crate::exit::Exit;

/// The maximum length of a request.
const BYTES_MAX: u64 = 16 << 20;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto convert --from registry --to openclaw job.json\n  rialto convert --from agora --to registry --explain < envelope.json\n  rialto convert --from clara --to agora --json task.json\n\nA request is what a requester posts; for clara, the JSON of a dry-run or a signed item. Values that\nonly a hub can create (ids, aliases, signatures) appear as placeholders."
)]
pub struct Args {
    /// Protocol of the request
    #[arg(long, value_name = "PROTOCOL", value_parser = protocol)]
    from: Protocol,
    /// Protocol of the agent that would get it
    #[arg(long, value_name = "PROTOCOL", value_parser = protocol)]
    to: Protocol,
    /// Explain on standard error what happened to each field
    #[arg(long)]
    explain: bool,
    /// Print JSON: both messages and the notes
    #[arg(long)]
    json: bool,
    /// File with the request; - is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
}

#[derive(Serialize)]
struct Document<'c> {
    from: Protocol,
    to: Protocol,
    asked: &'c str,
    given: &'c str,
    notes: &'c [rialto_protocols::adapter::fidelity::Note],
}

pub fn run(args: &Args) -> Exit {
    convert_file(args).unwrap_or_else(|cli_error| cli_error.report(args.json))
}

fn convert_file(args: &Args) -> Result<Exit, CliError> {
    let request = read(&args.file)?;
    let refused = |why: String| {
        let message = format!("not a {} request: {why}", args.from);
        CliError { exit: Exit::Failed, code: None, message, next: None }
    };
    let converted = convert(args.from, args.to, &request, now()).map_err(refused)?;
    let Conversion { source: asked, target: given, notes } = &converted;
    let document = Document {
        from: args.from,
        to: args.to,
        asked: &asked.payload,
        given: &given.payload,
        notes,
    };
    if args.json {
        let _ = output::print_line(&serde_json::to_string(&document).unwrap_or_default());
        return Ok(Exit::Ok);
    }
    if args.explain {
        output::print_stderr(&table(&rows(&converted)));
    }
    let _ = output::print_line(&given.payload);
    Ok(Exit::Ok)
}

fn rows(converted: &Conversion) -> Vec<NoteRow> {
    let notes = serde_json::to_string(&converted.notes).unwrap_or_default();
    serde_json::from_str(&notes).unwrap_or_default()
}

/// Reads a file, or standard input for `-`.
fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => io::stdin().lock().take(BYTES_MAX).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes)),
    };
    match read {
        Ok(_) => Ok(bytes),
        Err(error) => Err(CliError::usage(
            format!("cannot read {}: {error}", path.display()),
            "name a file that contains a request, or pipe it in",
        )),
    }
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp(i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX))
}

fn protocol(text: &str) -> Result<Protocol, String> {
    let known = rialto_protocols::ALL.iter().map(|adapter| adapter.id());
    let all: Vec<Protocol> = known.collect();
    all.iter().find(|id| id.as_str() == text).copied().ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(Protocol::as_str).collect();
        format!("must be one of {}", names.join(", "))
    })
}
