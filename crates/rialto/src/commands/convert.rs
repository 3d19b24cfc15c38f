//! `rialto convert`: shows a request of one protocol as an agent of another would get it, without a
//! hub.

use std::path::PathBuf;

use rialto_core::alias::Protocol;
use rialto_protocols::adapter::fidelity::{Conversion, Note, convert};
use serde::Serialize;

use super::notes::{NoteRow, table};
use super::time::now;
use super::{CliError, CliResult, Exit, input, output};

#[derive(clap::Args)]
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
    notes: &'c [Note],
}

pub fn run(args: &Args) -> Exit {
    convert_file(args).unwrap_or_else(|cli_error| cli_error.report(args.json))
}

fn convert_file(args: &Args) -> CliResult {
    let next = "name a file that contains a request, or pipe it in";
    let request = input::read_input(&args.file, input::read_bytes, next)?;
    let Conversion { source, target, notes } = convert(args.from, args.to, &request, now())
        .map_err(|why| CliError::plain(format!("not a request of {}: {why}", args.from)))?;
    let document = Document {
        from: args.from,
        to: args.to,
        asked: &source.payload,
        given: &target.payload,
        notes: &notes,
    };
    if args.explain && !args.json {
        let rows = serde_json::to_string(&notes).unwrap_or_default();
        let rows: Vec<NoteRow> = serde_json::from_str(&rows).unwrap_or_default();
        output::print_stderr(&table(&rows));
    }
    let document = serde_json::to_string(&document).unwrap_or_default();
    Ok(output::print(args.json, document, || target.payload.clone()))
}

fn protocol(text: &str) -> Result<Protocol, String> {
    let known = rialto_protocols::ALL.iter().map(|adapter| adapter.id());
    let all: Vec<Protocol> = known.collect();
    all.iter().find(|id| id.as_str() == text).copied().ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(Protocol::as_str).collect();
        format!("must be one of {}", names.join(", "))
    })
}
