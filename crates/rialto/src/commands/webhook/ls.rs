//! `rialto webhook ls`: lists deliveries.

use rialto_client::CallError;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output;
use super::super::table::{Column, Table};
use super::super::views::{Pages, parse_json};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto webhook ls\n  rialto webhook ls --delivered --limit 10\n  rialto webhook ls --json | jq '.[] | select(.state == \"given_up\") | .id'\n\nOne line per pending or failed delivery, oldest first: id, state, kind, attempts, next attempt, error,\nURL. With --delivered, lists successful deliveries. The --json document is a list of deliveries as\nthe hub shows them."
)]
pub struct Args {
    /// Maximum number of deliveries
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Successful deliveries, newest first
    #[arg(long)]
    delivered: bool,
}

/// A delivery of the hub to one of the caller's endpoints.
#[derive(Deserialize)]
struct DeliveryView {
    id: u64,
    state: String,
    kind: String,
    url: String,
    tries: u32,
    next_try: Option<String>,
    error: Option<String>,
    delivered_at: Option<String>,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let (hub, _) = access.client_with_key()?;
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let state = args.delivered.then(|| "delivered".to_owned());
    let mut pages = Pages::new(&hub, "/v1/webhooks", vec![("state", state)]);
    let mut calls = Vec::new();
    while calls.len() < limit {
        match pages.next_page(limit - calls.len()).await? {
            Some(more) => calls.extend(more),
            None => break,
        }
    }
    if access.json {
        let texts: Vec<&str> = calls.iter().map(|call| call.get()).collect();
        let _ = output::print_line(&format!("[{}]", texts.join(",")));
        return Ok(Exit::Ok);
    }
    table(&calls, args.delivered)?.print();
    Ok(Exit::Ok)
}

fn table(calls: &[Box<RawValue>], delivered: bool) -> Result<Table, CallError> {
    let mut table = Table::new([
        Column::number("ID"),
        Column::text("STATE"),
        Column::text("KIND"),
        Column::number("TRIES"),
        Column::time(if delivered { "ARRIVED" } else { "NEXT" }),
        Column::flexible("ERROR"),
        Column::flexible("URL"),
    ]);
    for call in calls {
        let DeliveryView { id, state, kind, url, tries, next_try, error, delivered_at } =
            parse_json(call.get())?;
        let (id, tries) = (id.to_string(), tries.to_string());
        let (next, error) =
            (delivered_at.or(next_try).unwrap_or_default(), error.unwrap_or_default());
        table.push_row([id, state, kind, tries, next, error, url]);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::super::super::table::assert_fits;
    use super::*;

    #[test]
    fn calls_fit_a_terminal() {
        let text = r#"{"id":123456,"state":"given_up","kind":"offers_wanted","url":"https://hooks.example/agents/notify",
            "tries":10,"next_try":"2026-02-11T14:15:09.123Z","error":"the endpoint answered with HTTP 500"}"#;
        let calls = [RawValue::from_string(text.to_owned()).expect("JSON")];
        let table = table(&calls, false).expect("a table");
        assert_fits(&table, "ID STATE KIND TRIES NEXT ERROR URL");
    }
}
