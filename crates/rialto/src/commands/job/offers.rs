//! `rialto job offers` and `rialto job accept`: list offers and accept one.

use rialto_client::Method;
use rialto_core::money::Credits;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::agent_names::resolve_agent;
use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output;
use super::super::table::{Column, Table};
use super::super::uri::encode_part;
use super::super::views::{get_text, parse_json};
use super::post::unreadable;
use super::{HINT_ASKED, HINT_OWN, JobState, job_error};
use crate::exit::Exit;

/// Decimals of a price.
const DECIMALS: usize = 6;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto job offers f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n  rialto job offers f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --json | jq .offers[0].price\n\nThe requester sees all visible offers, a worker its own. One line per offer: id, agent, name,\nprice, expiry, and whether it was accepted. The --json document is the hub's answer."
)]
pub struct Args {
    /// Id of the job: the hub's, or your own
    id: String,
}

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto job accept f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --offer 0\n  rialto job accept f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --from adder --price 0.06\n  rialto job accept f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --from 7 --json\n\nAccepts an offer at exactly its price and assigns the job to its agent. The agent's name is enough\nif it made only one offer. Only the requester can accept."
)]
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

#[derive(Deserialize)]
struct Offers {
    offers: Vec<Offer>,
}

#[derive(Deserialize)]
struct Offer {
    id: u64,
    agent: u64,
    name: String,
    price: Box<RawValue>,
    valid_until: Option<String>,
    accepted: bool,
}

/// Identifies the offer. Amounts keep their own digits.
#[derive(Serialize)]
struct AcceptBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    offer: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<Box<RawValue>>,
}

fn accept_body(args: &AcceptArgs, from: Option<String>) -> Result<String, serde_json::Error> {
    let number =
        |from: String| from.parse::<u64>().map_or_else(|_| Value::from(from.as_str()), Value::from);
    let price = |price: Credits| RawValue::from_string(price.to_text(DECIMALS));
    serde_json::to_string(&AcceptBody {
        offer: args.offer,
        agent: from.map(number),
        price: args.price.map(price).transpose()?,
    })
}

fn price(text: &str) -> Result<Credits, String> {
    Credits::parse(text, DECIMALS).map_err(|why| format!("the price {why}: write it like 0.10"))
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let (hub, _) = access.client_with_key()?;
    let path = format!("/v1/jobs/{}/offers", encode_part(&args.id));
    let text = get_text(&hub, &path).await.map_err(|error| job_error(error, HINT_OWN))?;
    if access.json {
        let _ = output::print_line(&text);
        return Ok(Exit::Ok);
    }
    let Offers { offers } = parse_json(&text)?;
    table(offers).print();
    Ok(Exit::Ok)
}

fn table(offers: Vec<Offer>) -> Table {
    let mut table = Table::new([
        Column::number("OFFER"),
        Column::number("AGENT"),
        Column::flexible("NAME"),
        Column::number("PRICE"),
        Column::time("UNTIL"),
        Column::text("ACCEPTED"),
    ]);
    for offer in offers {
        let accepted = if offer.accepted { "yes" } else { "" };
        table.push_row([
            offer.id.to_string(),
            offer.agent.to_string(),
            offer.name,
            offer.price.get().to_owned(),
            offer.valid_until.unwrap_or_default(),
            accepted.to_owned(),
        ]);
    }
    table
}

pub async fn accept(access: &HubOptions, args: &AcceptArgs) -> Result<Exit, CliError> {
    let (hub, _) = access.client_with_key()?;
    let path = format!("/v1/jobs/{}/accept", encode_part(&args.id));
    let from = match &args.from {
        Some(from) => Some(resolve_agent(access, &hub, from).await?),
        None => None,
    };
    let body = accept_body(args, from).map_err(|error| CliError::from(unreadable(error)))?;
    let (_, text) = hub.call_text(Method::POST, &path, Some(body)).await.map_err(|error| {
        let offers = format!("`rialto job offers {}` lists what can be accepted", args.id);
        job_error(error, &format!("{offers}; {HINT_ASKED}"))
            .with_hint_on(Exit::Conflict, offers.as_str())
    })?;
    JobState::print(access, &text)
}

#[cfg(test)]
mod tests {
    use super::super::super::table::assert_fits;
    use super::*;

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
