//! Types of the hub's own API: agents, accounts, the caller. Amounts keep their digits.

use std::collections::BTreeMap;

use rialto_client::{CallError, Hub, Method};
use rialto_core::money::Credits;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::uri;

/// Maximum page size of the hub.
const PAGE_MAX: usize = 200;

/// An agent.
#[derive(Deserialize)]
pub struct AgentView {
    pub id: u64,
    pub name: String,
    pub owner: String,
    pub protocol: String,
    pub names: BTreeMap<String, String>,
    pub skills: Vec<SkillView>,
    pub score: Box<RawValue>,
    pub jobs_settled: u64,
    /// The score of the hub's own ranking; older hubs do not send it.
    pub rank_score: Option<Box<RawValue>>,
    pub counterparties: Option<u64>,
    pub credits_paid: Option<Box<RawValue>>,
    pub owner_failures: Option<u64>,
    pub online: bool,
    pub registered_at: String,
}

impl AgentView {
    /// How it ranks and why, if the hub shows it.
    pub fn rank_text(&self) -> Option<String> {
        let (worth, paid) = (self.rank_score.as_ref()?, self.credits_paid.as_ref()?);
        let (owners, failures) = (self.counterparties?, self.owner_failures?);
        let rank = format!("ranks as {}: {owners} other owners paid {}", worth.get(), paid.get());
        Some(match failures {
            0 => rank,
            _ => format!("{rank}, its owner's other agents failed {failures} times"),
        })
    }
}

/// One skill of an agent.
#[derive(Deserialize)]
pub struct SkillView {
    pub name: String,
    pub price: Box<RawValue>,
    #[serde(default)]
    pub by_offer: bool,
    pub description: String,
    pub input_schema: Option<Box<RawValue>>,
    pub output_schema: Option<Box<RawValue>>,
}

/// An owner's account.
#[derive(Deserialize)]
pub struct AccountView {
    pub owner: String,
    pub available: Box<RawValue>,
    pub held: Box<RawValue>,
}

/// The agent of the caller's key.
#[derive(Deserialize)]
pub struct CallerView {
    pub agent: AgentView,
    pub account: AccountView,
}

/// A page of a list.
#[derive(Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

/// A list that is read page by page, each item as its original text.
pub struct Pages<'a> {
    hub: &'a Hub,
    path: &'a str,
    /// The query values of every page.
    values: Vec<(&'a str, Option<String>)>,
    /// The cursor of the next page; `None` at the end.
    next: Option<Option<String>>,
}

impl CallerView {
    pub async fn fetch(hub: &Hub) -> Result<Self, CallError> {
        parse_json(&get_text(hub, "/v1/me").await?)
    }
}

impl SkillView {
    /// The price as text.
    pub fn price_text(&self) -> &str {
        if self.by_offer { "by offer" } else { self.price.get() }
    }
}

impl<'a> Pages<'a> {
    pub fn new(hub: &'a Hub, path: &'a str, values: Vec<(&'a str, Option<String>)>) -> Self {
        Self { hub, path, values, next: Some(None) }
    }

    /// The next items, at most `most`; `None` at the end of the list.
    pub async fn next_page(
        &mut self,
        most: usize,
    ) -> Result<Option<Vec<Box<RawValue>>>, CallError> {
        let Some(cursor) = self.next.take() else { return Ok(None) };
        let own = [("limit", Some(most.clamp(1, PAGE_MAX).to_string())), ("cursor", cursor)];
        let path = uri::with_query(self.path, self.values.iter().cloned().chain(own));
        let page: Page = parse_json(&get_text(self.hub, &path).await?)?;
        self.next = page.next_cursor.map(Some);
        Ok(Some(page.items))
    }

    /// Whether there are more pages.
    pub fn has_more(&self) -> bool {
        self.next.is_some()
    }
}

/// The text at a path.
pub async fn get_text(hub: &Hub, path: &str) -> Result<String, CallError> {
    hub.call_text(Method::GET, path, None).await.map(|(_, text)| text)
}

/// Parses JSON text.
pub fn parse_json<T: DeserializeOwned>(text: &str) -> Result<T, CallError> {
    serde_json::from_str(text).map_err(|error| CallError::Unreadable(error.to_string()))
}

/// A decimal number in millionths, so that nothing is rounded.
pub fn millionths(text: &str) -> Option<i64> {
    // Credits are parsed by the same rules: no sign, at most six decimals.
    Credits::parse(text, 6).ok().map(Credits::micros)
}

/// The same, with an error for text that is not a number.
pub fn parse_millionths(number: &RawValue) -> Result<i64, CallError> {
    let text = number.get();
    millionths(text).ok_or_else(|| CallError::Unreadable(format!("{text} is not an amount")))
}
