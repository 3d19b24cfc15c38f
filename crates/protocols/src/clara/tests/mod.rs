//! Tests with the real client's requests, with the spec's examples, and with messages that are
//! slightly wrong.

mod client;
mod errors;
mod examples;
mod laws;
mod messages;
mod orders;
mod outgoing;
mod paging;
mod prices;
mod records;
mod results;

use rialto_core::money::Credits;

use super::wire::register::{self as good, Example};
use super::{Dialect, IncomingMessage, Order, OrderError, PROCESS, Topics};
use crate::kit::ans104::{ItemId, Tag};

/// The first test wallet.
const ALICE: &str = "mjP2droAo5EfDd9GbW0oVRhG_bRK1IF1xm3iiR2GwcY";
/// The second test wallet.
const BOB: &str = "-SMm_voAstPnLTpM5pRdKH7YPqDdGDKm0iV2WsC4_xE";
/// The id of a task.
const TASK: &str = "iwJQJ7GBCuc4xTdVE1b0v2dH3kqeCZcIihvQgY-KFKA";

/// Tags to change.
type Tags<'a> = Vec<(&'a str, &'a str)>;

fn process() -> ItemId {
    ItemId::read(PROCESS).expect("an id")
}

fn credits(whole: i64) -> Credits {
    Credits::from_micros(whole * 1_000_000)
}

/// A signed message from Alice.
fn message<'a>(tags: &[(&'a str, &'a str)], data: &'a str) -> IncomingMessage<'a> {
    IncomingMessage {
        id: TASK.into(),
        from: ALICE.into(),
        signed: true,
        target: process(),
        tags: tags.iter().map(|(name, value)| Tag { name, value }).collect(),
        data,
        item: None,
    }
}

/// The order of a message from Alice, to a market with the spec's topics.
fn order<'a>(tags: &[(&'a str, &'a str)], data: &'a str) -> Result<Order<'a>, OrderError> {
    Order::read(&message(tags, data), &Topics::default(), Dialect::Spec)
}

/// The Error text of an invalid message from Alice.
fn fault(tags: &[(&str, &str)], data: &str) -> String {
    order(tags, data).expect_err("something is wrong").to_string()
}

/// An example's tags with one changed or added.
fn with<'a>(example: Example, name: &'a str, value: &'a str) -> Tags<'a> {
    let mut tags = example.tags.to_vec();
    match tags.iter_mut().find(|(given, _)| *given == name) {
        Some(tag) => tag.1 = value,
        None => tags.push((name, value)),
    }
    tags
}

/// An example's tags without one of them.
fn without(example: Example, name: &str) -> Tags<'static> {
    example.tags.iter().copied().filter(|(given, _)| *given != name).collect()
}

/// The data of an example.
fn data(example: Example) -> &'static str {
    example.data.unwrap_or(" ")
}
