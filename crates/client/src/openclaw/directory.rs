//! The directory: agents, their capabilities, and their reputation.

use rialto_protocols::kit::ijson;
use rialto_protocols::openclaw::directory::{self, Entry};
use rialto_protocols::openclaw::message::{self, Reputation, StatusUpdate};
use rialto_protocols::openclaw::state::{Category, Status};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::server::Server;
use crate::call::CallError;

/// Maximum number of agent pages to read.
const PAGES_MAX: usize = 1_000;

/// Which agents to list; an empty filter matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only agents with this capability id.
    pub capability: Option<String>,
    /// Only agents with a capability of this category.
    pub category: Option<Category>,
    /// Only agents with this status.
    pub status: Option<Status>,
    /// Page size; the hub's default if not set.
    pub limit: Option<u32>,
}

/// An agent as the hub shows it.
#[derive(Clone, Debug)]
pub struct Found {
    /// The main fields.
    pub entry: Entry,
    raw: Box<RawValue>,
}

/// One page of agents.
#[derive(Clone, Debug)]
pub struct FoundPage {
    /// The agents.
    pub agents: Vec<Found>,
    /// The cursor of the next page; `None` on the last.
    pub next_cursor: Option<String>,
}

/// The reputation of an agent, as the hub measures it and as the agent claims it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reputed {
    /// The hub's last update; `None` before the first finished collaboration.
    pub by_hub: Option<Reputation>,
    /// The agent's own last update.
    pub claimed: Option<Reputation>,
}

impl Found {
    /// The identity with the hub's own figures: JSON text.
    pub fn raw(&self) -> &str {
        self.raw.get()
    }

    fn read(raw: Box<RawValue>) -> Result<Self, CallError> {
        let entry = serde_json::from_str(raw.get());
        Ok(Self { entry: entry.map_err(|error| CallError::Unreadable(error.to_string()))?, raw })
    }
}

impl Filter {
    fn pairs(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("capability", self.capability.clone()),
            ("category", self.category.map(|category| category.to_string())),
            ("status", self.status.map(|status| status.to_string())),
            ("limit", self.limit.map(|limit| limit.to_string())),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

impl Server {
    /// All agents that match a filter.
    pub async fn agents(&self, filter: &Filter) -> Result<Vec<Found>, CallError> {
        let (mut agents, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..PAGES_MAX {
            let page = self.agents_page(filter, cursor.as_deref()).await?;
            agents.extend(page.agents);
            match page.next_cursor {
                Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
                _ => return Ok(agents),
            }
        }
        Err(CallError::Unreadable(format!("the list has more than {PAGES_MAX} pages")))
    }

    /// One page of agents: the first, or the one at a cursor.
    pub async fn agents_page(
        &self,
        filter: &Filter,
        cursor: Option<&str>,
    ) -> Result<FoundPage, CallError> {
        let mut url = self.at(&["agents"]);
        let cursor = cursor.map(|cursor| ("cursor", cursor.to_owned()));
        url.query_pairs_mut().extend_pairs(filter.pairs().into_iter().chain(cursor));
        let page: directory::Page = self.get(url).await?.value()?;
        let agents = page.agents.into_iter().map(Found::read).collect::<Result<_, _>>()?;
        Ok(FoundPage { agents, next_cursor: page.next_cursor })
    }

    /// One agent.
    pub async fn agent(&self, id: Uuid) -> Result<Found, CallError> {
        Found::read(self.get(self.at(&["agents", &id.to_string()])).await?.value()?)
    }

    /// The last status an agent reported.
    pub async fn status(&self, id: Uuid) -> Result<StatusUpdate, CallError> {
        self.get(self.at(&["agents", &id.to_string(), "status"])).await?.message()
    }

    /// The reputation of an agent.
    pub async fn reputation(&self, id: Uuid) -> Result<Reputed, CallError> {
        let answer = self.get(self.at(&["agents", &id.to_string(), "reputation"])).await?;
        Reputed::read(&answer.text)
    }
}

impl Reputed {
    fn read(text: &str) -> Result<Self, CallError> {
        let unreadable = |bad: ijson::Unreadable| CallError::Unreadable(bad.to_string());
        let json = ijson::read(text.as_bytes()).map_err(unreadable)?;
        // Before the first finished collaboration the hub has no score, so the message is
        // incomplete.
        let of = |json| message::of::<Reputation>(json).ok().map(|message| message.said);
        Ok(Self { by_hub: of(&json), claimed: json.get("claimed").and_then(of) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPDATE: &str = r#""agent_id":"550e8400-e29b-41d4-a716-446655440000","correlation_id":"cc0e8400-e29b-41d4-a716-446655440007","timestamp":"2026-02-06T17:00:00Z""#;

    fn update(score: &str) -> String {
        let at = "2026-02-06T17:00:00Z";
        format!(
            r#"{UPDATE},"reputation_update":{{"update_type":"periodic_update","reputation_score":{score},"update_timestamp":"{at}"}}"#
        )
    }

    #[test]
    fn a_reputation_is_the_hubs_and_the_agents_own() {
        let (hub, own) = (update("0.9"), update("1.0"));
        let reputed = Reputed::read(&format!(r#"{{{hub},"claimed":{{{own}}}}}"#)).expect("JSON");
        assert_eq!(reputed.by_hub.map(|update| update.score.text()).as_deref(), Some("0.9"));
        assert_eq!(reputed.claimed.map(|update| update.score.text()).as_deref(), Some("1.0"));
        let none = Reputed::read(&format!(r#"{{{},"claimed":null}}"#, update("null")));
        assert_eq!(none.expect("JSON"), Reputed { by_hub: None, claimed: None });
        assert!(Reputed::read("<html>").is_err());
    }

    #[test]
    fn a_filter_asks_only_for_what_it_names() {
        assert!(Filter::default().pairs().is_empty());
        let some = Filter { status: Some(Status::Idle), limit: Some(7), ..Filter::default() };
        assert_eq!(some.pairs(), [("status", "idle".to_owned()), ("limit", "7".to_owned())]);
    }
}
