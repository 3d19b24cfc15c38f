//! `rialto audit`: verifies the invariants of a hub's data, from its files or its database alone.

use rialto_engine::audit::{self, Report};
use rialto_engine::migrate::Location;
use rialto_engine::store::StoreError;

use super::{CliError, CliResult, Exit, database, output};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: database::Source,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Exit {
    let report = match audit(args) {
        Ok(report) => report,
        Err(error) => return error.report(args.json),
    };
    // The exit code counts even if the reader closes the pipe.
    let document = serde_json::to_string_pretty(&report).unwrap_or_default();
    output::print(args.json, document, || describe(&report));
    if report.is_clean() { Exit::Ok } else { Exit::Failed }
}

fn audit(args: &Args) -> CliResult<Report> {
    let dir = match args.source.location() {
        Location::Directory(dir) => dir,
        Location::Database(url) => {
            return audit::audit_database(&url).map_err(|error| database::cli_error(&error));
        }
    };
    audit::audit_dir(&dir).map_err(|error| {
        let next = "name a hub's data directory with --data, or its database with --database-url";
        match &error {
            StoreError::Missing(_) => CliError::not_found(error.to_string(), next),
            _ => CliError::failed(error.to_string(), next),
        }
    })
}

fn describe(report: &Report) -> String {
    let mut lines = Vec::new();
    for check in &report.checks {
        let verdict = if check.breaches_total == 0 { "ok" } else { "BREACH" };
        lines.push(format!("{verdict:7} {:18} {:>10} rows", check.name, check.rows));
        lines.extend(check.breaches.iter().map(|breach| format!("        {breach}")));
    }
    lines.join("\n")
}
