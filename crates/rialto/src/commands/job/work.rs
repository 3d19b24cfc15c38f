//! What the parties do with a job: list and accept offers, submit a result, decline and cancel.

use rialto_client::{CallError, RetryPolicy};
use rialto_core::money::Credits;
use serde_json::Value;

use super::{HINT_ASKED, HINT_OWN, HINT_WORKED, job_error, print_state};
use crate::commands::agent_names::resolve_agent;
use crate::commands::v1::{Amount, OfferChoice, OfferView, WorkerReply};
use crate::commands::{CliError, CliResult, Column, Exit, HubOptions, Table, V1, input, output};

/// Decimals of a price.
const DECIMALS: usize = 6;

#[derive(clap::Args)]
pub struct AcceptArgs {
    /// Id of the job: the hub's, or your own
    id: String,
    /// Offer to accept: its id in `rialto job offers`
    #[arg(long, value_name = "ID", required_unless_present = "from")]
    offer: Option<u32>,
    /// Agent whose offer to accept: any of its names, or its number in `rialto job offers`
    #[arg(long, value_name = "AGENT")]
    from: Option<String>,
    /// Price of the offer
    #[arg(long, value_name = "CREDITS", requires = "from", value_parser = price)]
    price: Option<Credits>,
}

#[derive(clap::Args)]
pub struct SubmitArgs {
    /// The hub's id of the job
    id: String,
    /// Result: a JSON object as text, @FILE, or - for standard input
    #[arg(
        long,
        value_name = "JSON",
        required_unless_present_any = ["failed", "refused"],
        conflicts_with_all = ["failed", "refused"]
    )]
    output: Option<String>,
    /// Error message for a failed job; the requester reads it
    #[arg(long, value_name = "MESSAGE", conflicts_with = "refused")]
    failed: Option<String>,
    /// Refuse the job for this reason, which ends it; `decline` lets the hub look for another worker
    #[arg(long, value_name = "REASON")]
    refused: Option<String>,
}

fn price(text: &str) -> Result<Credits, String> {
    Credits::parse(text, DECIMALS).map_err(|why| format!("the price {why}: write it like 0.10"))
}

pub async fn offers(options: &HubOptions, id: &str) -> CliResult {
    let (api, _) = options.client_with_key()?;
    let answer = api.offers(id).await.map_err(|error| job_error(error, HINT_OWN))?;
    if options.json {
        return Ok(output::print_data(answer.text));
    }
    Ok(table(answer.parse()?.offers).print())
}

fn table(offers: Vec<OfferView>) -> Table {
    let mut table = Table::new([
        Column::number("OFFER"),
        Column::number("AGENT"),
        Column::flexible("NAME"),
        Column::number("PRICE"),
        Column::time("UNTIL"),
        Column::text("ACCEPTED"),
    ]);
    for offer in offers {
        let (id, agent, until) =
            (offer.id.to_string(), offer.agent.to_string(), offer.valid_until.unwrap_or_default());
        let accepted = if offer.accepted { "yes" } else { "" };
        table.push_row([&id, &agent, &offer.name, offer.price.get(), &until, accepted]);
    }
    table
}

pub async fn accept(options: &HubOptions, args: &AcceptArgs) -> CliResult {
    let (api, _) = options.client_with_key()?;
    let from = match &args.from {
        Some(from) => Some(resolve_agent(options, &api, from).await?),
        None => None,
    };
    let number =
        |from: String| from.parse::<u64>().map_or_else(|_| Value::from(from.as_str()), Value::from);
    let (agent, price) = (from.map(number), args.price.map(Amount));
    let choice = OfferChoice { offer: args.offer, agent, price };
    let answer = api.accept_offer(&args.id, &choice).await.map_err(|error| {
        let offers = format!("`rialto job offers {}` lists what can be accepted", args.id);
        job_error(error, &format!("{offers}; {HINT_ASKED}"))
            .with_hint_on(Exit::Conflict, offers.as_str())
    })?;
    print_state(options, &answer)
}

pub async fn submit(options: &HubOptions, args: &SubmitArgs) -> CliResult {
    let output = args.output.as_deref().map(|given| input::read_json("--output", given));
    let output = output.transpose()?;
    let (api, _) = options.client_with_key()?;
    let reply = WorkerReply {
        epoch: current_epoch(&api, &args.id).await?,
        ok: Some(output.is_some()),
        output: output.as_deref(),
        message: args.failed.as_deref().or(args.refused.as_deref()),
        cause: args.refused.as_ref().map(|_| "refused"),
        ..WorkerReply::default()
    };
    // Safe to retry: the reply names the assignment, and the hub recognizes a repeat.
    let send = async || api.submit_result(&args.id, &reply).await;
    let answer = RetryPolicy::default().call(send).await.map_err(|error| {
        let next = "write it like --output '{\"text\":\"hello\"}'";
        reply_error(error, &args.id).with_hint_on(Exit::Usage, next)
    })?;
    print_state(options, &answer)
}

pub async fn decline(options: &HubOptions, id: &str, reason: Option<&str>) -> CliResult {
    let (api, _) = options.client_with_key()?;
    let epoch = current_epoch(&api, id).await?;
    let reply = WorkerReply { epoch, reason, ..WorkerReply::default() };
    let answer = api.decline(id, &reply).await.map_err(|error| reply_error(error, id))?;
    print_state(options, &answer)
}

/// The error for a worker's reply, with a hint for a job that has already ended.
fn reply_error(error: CallError, id: &str) -> CliError {
    let next = format!("`rialto job show {id}` shows its state");
    job_error(error, HINT_WORKED).with_hint_on(Exit::Conflict, next)
}

/// The job's current assignment, so that a late reply is never applied to another one.
pub async fn current_epoch(api: &V1, id: &str) -> CliResult<u32> {
    let answer = api.job(id, None).await.map_err(|error| job_error(error, HINT_WORKED))?;
    Ok(answer.parse()?.epoch)
}

pub async fn cancel(options: &HubOptions, id: &str, reason: Option<&str>) -> CliResult {
    let (api, _) = options.client_with_key()?;
    let answer = api.cancel(id, reason).await.map_err(|error| {
        let next = format!(
            "the job can no longer be cancelled; `rialto job watch {id}` follows it to its end"
        );
        job_error(error, HINT_ASKED).with_hint_on(Exit::Conflict, next)
    })?;
    print_state(options, &answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::table::assert_fits;
    use crate::commands::v1::{Offers, parse_json};

    #[test]
    fn offers_fit_a_terminal() {
        let name = "a worker whose name is as long as any name that a hub may ever accept";
        let text = format!(
            r#"{{"offers":[{{"id":1023,"agent":123456,"name":"{name}","price":100.00,
            "valid_until":"2026-02-11T14:15:09.123Z","accepted":true}}]}}"#
        );
        let Offers { offers } = parse_json(&text).expect("offers");
        assert_fits(&table(offers), "OFFER AGENT NAME PRICE UNTIL ACCEPTED");
    }
}
