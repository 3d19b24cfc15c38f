//! `rialto audit`: verifies the invariants of a data directory offline.

use std::path::PathBuf;

use rialto_engine::audit::Report;
use rialto_engine::store::StoreError;

use super::{CliError, Exit, output};

#[derive(clap::Args)]
pub struct Args {
    /// Data directory of the hub
    #[arg(long, default_value = "./rialto-data")]
    data: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Exit {
    let report = match rialto_engine::audit::audit_dir(&args.data) {
        Ok(report) => report,
        Err(error) => {
            let next = "name a hub's data directory with --data";
            let cli_error = match &error {
                StoreError::Missing(_) => CliError::not_found(error.to_string(), next),
                _ => CliError::failed(error.to_string(), next),
            };
            return cli_error.report(args.json);
        }
    };
    // The exit code counts even if the reader closes the pipe.
    let document = serde_json::to_string_pretty(&report).unwrap_or_default();
    output::print(args.json, document, || describe(&report));
    if report.is_clean() { Exit::Ok } else { Exit::Failed }
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
