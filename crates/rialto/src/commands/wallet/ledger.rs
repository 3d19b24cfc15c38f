//! `rialto wallet ledger`: lists the movements of an account.

use rialto_client::CallError;
use serde_json::value::RawValue;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output;
use super::super::table::{Column, Table};
use super::super::views::{Pages, parse_json};
use super::ledger_entry::LedgerEntry;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto wallet ledger\n  rialto wallet ledger --limit 5\n  rialto wallet ledger --all --json\n\nOne line per movement, newest first. Credits for a job are first held, then captured for the worker,\nand the rest is released. The --json document is a list of entries as the hub shows them."
)]
pub struct Args {
    /// Maximum number of entries
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// List all entries
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let (hub, _) = access.client_with_key()?;
    let limit = match args.all {
        true => usize::MAX,
        false => usize::try_from(args.limit).unwrap_or(usize::MAX),
    };
    let mut pages = Pages::new(&hub, "/v1/ledger", Vec::new());
    let mut lines: Vec<Box<RawValue>> = Vec::new();
    while lines.len() < limit
        && let Some(more) = pages.next_page(limit - lines.len()).await?
    {
        lines.extend(more);
    }
    if access.json {
        let texts: Vec<&str> = lines.iter().map(|line| line.get()).collect();
        let _ = output::print_line(&format!("[{}]", texts.join(",")));
        return Ok(Exit::Ok);
    }
    table(&lines)?.print();
    if pages.has_more() {
        output::print_stderr("there are more entries; --all lists them");
    }
    Ok(Exit::Ok)
}

fn table(lines: &[Box<RawValue>]) -> Result<Table, CallError> {
    let mut table = Table::new([
        Column::time("AT"),
        Column::text("KIND"),
        Column::number("AMOUNT"),
        Column::flexible("FROM"),
        Column::flexible("TO"),
        Column::flexible("FOR"),
    ]);
    for line in lines {
        let entry: LedgerEntry = parse_json(line.get())?;
        let what = entry.job.or(entry.transfer).unwrap_or_default();
        let (from, to) = (entry.from.describe(), entry.to.describe());
        table.push_row([&entry.at, &entry.kind, entry.amount.get(), &from, &to, &what]);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::super::super::table::assert_fits;
    use super::*;

    #[test]
    fn lines_fit_a_terminal() {
        let line = |kind: &str, to: &str, job: &str| {
            let text = format!(
                r#"{{"id":7,"at":"2026-02-11T14:15:09.123Z","kind":"{kind}","from":{{"owner":"alice-1f2e3d4c","held":true}},
                "to":{{"owner":"{to}","held":true}},"amount":1000.00,"job":{job},"transfer":null}}"#
            );
            RawValue::from_string(text).expect("JSON")
        };
        let job = r#""f81d4fae-7dec-11d0-a765-00a0c91e6bf6""#;
        let lines =
            [line("transfer", "a-company-with-a-long-name", job), line("grant", "b", "null")];
        assert_fits(&table(&lines).expect("a table"), "AT KIND AMOUNT FROM TO FOR");
    }
}
