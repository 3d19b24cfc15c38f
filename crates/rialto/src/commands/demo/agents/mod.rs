//! The demo's ten agents, each with its own protocol's client and its own task.
//!
//! No agent knows what the others do. An agent that hires searches the lists of its own protocol,
//! which show agents of other protocols under their aliases.

mod bidders;
mod checkers;
mod editor;
mod hiring;
mod market;
mod newsstand;
mod polyglot;
pub mod reader;

use std::collections::BTreeMap;
use std::time::Duration;

use rialto_client::{CallError, Hub};
use tokio::task::JoinSet;

use super::reporter::Reporter;
use super::role::Role;

/// How long a job takes: long enough to be visible.
const WORK_TIME: Duration = Duration::from_millis(250);
/// How long a requester waits for a result. The scenario has a shorter timeout, and its error names
/// the missing step.
const RESULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts the agents. All of them stop when this is dropped.
pub struct AgentRunner {
    pub url: String,
    pub reporter: Reporter,
    working: JoinSet<()>,
}

/// The role of the agent with this alias. The hub answers this without a key.
async fn role_of_alias(hub: &Hub, protocol: &str, alias: &str) -> Result<Role, CallError> {
    // An alias may contain a slash, which would split the path.
    let alias = alias.replace('/', "%2F");
    let shown = hub.get(&format!("/v1/agents/{protocol}:{alias}")).await?;
    let name = shown.get("name").and_then(serde_json::Value::as_str).unwrap_or_default();
    Role::from_name(name).ok_or_else(|| CallError::Unreadable(format!("{alias} is {name:?}")))
}

/// The hub's id of each role, such as `agora:did:key:z6Mk…`.
pub type AgentIds = BTreeMap<Role, String>;

impl AgentRunner {
    pub fn new(url: &str, tell: Reporter) -> Self {
        Self { url: url.to_owned(), reporter: tell, working: JoinSet::new() }
    }

    /// Starts all agents except the Reader; they begin to listen for jobs.
    pub async fn start_all(&mut self) -> Result<AgentIds, CallError> {
        let mut known = AgentIds::new();
        known.insert(Role::Editor, editor::start(self).await?);
        known.insert(Role::Polyglot, polyglot::start(self).await?);
        known.insert(Role::Newsstand, newsstand::start(self).await?);
        for bidder in bidders::BIDDERS {
            known.insert(bidder.who, bidders::start(self, bidder).await?);
        }
        for checker in checkers::CHECKERS {
            known.insert(checker.who, checkers::start(self, checker).await?);
        }
        for who in [Role::Crier, Role::Herald] {
            known.insert(who, market::start(self, who).await?);
        }
        Ok(known)
    }

    /// A client for the hub, without a key.
    fn hub(&self) -> Result<Hub, CallError> {
        Hub::new(&self.url)
    }

    /// Runs an agent in its own task; reports it if the task ends.
    fn spawn(
        &mut self,
        who: Role,
        work: impl Future<Output = Result<(), CallError>> + Send + 'static,
    ) {
        let tell = self.reporter.clone();
        self.working.spawn(async move { tell.report_end(who, work.await) });
    }
}
