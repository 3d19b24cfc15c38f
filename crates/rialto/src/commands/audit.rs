//! `rialto audit`: an offline recount of every promise that can be recounted.

use std::path::PathBuf;

use super::complain;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto audit --data ./rialto-data\n  rialto audit --data ./rialto-data --json"
)]
pub struct Args {
    /// Data directory of the hub
    #[arg(long, default_value = "./rialto-data")]
    data: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Exit {
    let report = match rialto_engine::audit::audit(&args.data) {
        Ok(report) => report,
        Err(error) if args.json => {
            println!("{}", serde_json::json!({"error": error.to_string()}));
            return Exit::Failed;
        }
        Err(error) => return complain(error),
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report).unwrap_or_default());
    } else {
        for check in &report.checks {
            let verdict = if check.breaches_total == 0 { "ok" } else { "BREACH" };
            println!("{verdict:7} {:18} {:>10} rows", check.name, check.rows);
            for breach in &check.breaches {
                println!("        {breach}");
            }
        }
    }
    if report.is_clean() { Exit::Ok } else { Exit::Failed }
}
