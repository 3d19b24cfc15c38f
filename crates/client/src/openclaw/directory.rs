//! The directory: agents, their capabilities, and their reputation.

use rialto_protocols::kit::ijson;
use rialto_protocols::openclaw::wire::directory::{self, AgentEntry};
use rialto_protocols::openclaw::wire::words::{Category, Status};
use rialto_protocols::openclaw::wire::{self, ReputationUpdate, StatusUpdate};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::response::parse_message;
use super::server::Server;
use crate::call::CallError;
use crate::json;
use crate::origin_client::{add_query, read_pages};

/// Which agents to list; an empty filter matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentFilter {
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
pub struct ListedAgent {
    /// The main fields.
    pub entry: AgentEntry,
    raw: Box<RawValue>,
}

/// One page of agents.
#[derive(Clone, Debug)]
pub struct AgentPage {
    /// The agents.
    pub agents: Vec<ListedAgent>,
    /// The cursor of the next page; `None` on the last.
    pub next_cursor: Option<String>,
}

/// The reputation of an agent, as the hub measures it and as the agent claims it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReputationView {
    /// The hub's last update; `None` before the first finished collaboration.
    pub by_hub: Option<ReputationUpdate>,
    /// The agent's own last update.
    pub claimed: Option<ReputationUpdate>,
}

impl ListedAgent {
    /// The identity with the hub's own figures: JSON text.
    pub fn raw(&self) -> &str {
        self.raw.get()
    }

    fn read(raw: Box<RawValue>) -> Result<Self, CallError> {
        Ok(Self { entry: json::parse(raw.get().as_bytes())?, raw })
    }
}

impl AgentFilter {
    fn query(&self) -> [(&'static str, Option<String>); 4] {
        [
            ("capability", self.capability.clone()),
            ("category", self.category.map(|category| category.to_string())),
            ("status", self.status.map(|status| status.to_string())),
            ("limit", self.limit.map(|limit| limit.to_string())),
        ]
    }
}

impl Server {
    /// All agents that match a filter.
    pub async fn agents(&self, filter: &AgentFilter) -> Result<Vec<ListedAgent>, CallError> {
        read_pages(|cursor| async move {
            let page = self.agents_page(filter, cursor.as_deref()).await?;
            Ok((page.agents, page.next_cursor))
        })
        .await
    }

    /// One page of agents: the first, or the one at a cursor.
    pub async fn agents_page(
        &self,
        filter: &AgentFilter,
        cursor: Option<&str>,
    ) -> Result<AgentPage, CallError> {
        let mut url = self.url(&["agents"]);
        let cursor = ("cursor", cursor.map(str::to_owned));
        add_query(&mut url, filter.query().into_iter().chain([cursor]));
        let page: directory::Page = self.get(url).await?.json()?;
        let agents = page.agents.into_iter().map(ListedAgent::read).collect::<Result<_, _>>()?;
        Ok(AgentPage { agents, next_cursor: page.next_cursor })
    }

    /// One agent.
    pub async fn agent(&self, id: Uuid) -> Result<ListedAgent, CallError> {
        ListedAgent::read(self.get(self.url(&["agents", &id.to_string()])).await?.json()?)
    }

    /// The last status an agent reported.
    pub async fn status(&self, id: Uuid) -> Result<StatusUpdate, CallError> {
        parse_message(&self.get(self.url(&["agents", &id.to_string(), "status"])).await?.body)
    }

    /// The reputation of an agent.
    pub async fn reputation(&self, id: Uuid) -> Result<ReputationView, CallError> {
        let reply = self.get(self.url(&["agents", &id.to_string(), "reputation"])).await?;
        ReputationView::read(&reply.body)
    }
}

impl ReputationView {
    fn read(text: &[u8]) -> Result<Self, CallError> {
        let json = ijson::read(text).map_err(CallError::unreadable)?;
        // Before the first finished collaboration the hub has no score, so the message is
        // incomplete.
        let of = |json| wire::from_json::<ReputationUpdate>(json).ok().map(|message| message.body);
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
        let text = format!(r#"{{{hub},"claimed":{{{own}}}}}"#);
        let reputation = ReputationView::read(text.as_bytes()).expect("JSON");
        assert_eq!(reputation.by_hub.map(|update| update.score.text()).as_deref(), Some("0.9"));
        assert_eq!(reputation.claimed.map(|update| update.score.text()).as_deref(), Some("1.0"));
        let text = format!(r#"{{{},"claimed":null}}"#, update("null"));
        let none = ReputationView::read(text.as_bytes()).expect("JSON");
        assert_eq!(none, ReputationView { by_hub: None, claimed: None });
        assert!(ReputationView::read(b"<html>").is_err());
    }

    #[test]
    fn a_filter_asks_only_for_what_it_names() {
        assert!(AgentFilter::default().query().iter().all(|(_, value)| value.is_none()));
        let filter =
            AgentFilter { status: Some(Status::Idle), limit: Some(7), ..AgentFilter::default() };
        let mut url = url::Url::parse("http://h/agents").expect("a URL");
        add_query(&mut url, filter.query());
        assert_eq!(url.query(), Some("status=idle&limit=7"));
    }
}
