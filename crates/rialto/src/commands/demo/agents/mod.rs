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

use super::role::Who;
use super::reporter::Teller;

/// How long a job takes: long enough to be visible.
const WORK: Duration = Duration::from_millis(250);
/// How long a requester waits for a result. The scenario has a shorter timeout, and its error names
/// the missing step.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts the agents. All of them stop when this is dropped.
pub struct Wings {
    pub url: String,
    pub tell: Teller,
    working: JoinSet<()>,
}

/// The role of the agent with this alias. The hub answers this without a key.
async fn who_is(hub: &Hub, protocol: &str, alias: &str) -> Result<Who, CallError> {
    // An alias may contain a slash, which would split the path.
    let alias = alias.replace('/', "%2F");
    let shown = hub.get(&format!("/v1/agents/{protocol}:{alias}")).await?;
    let name = shown.get("name").and_then(serde_json::Value::as_str).unwrap_or_default();
    Who::named(name).ok_or_else(|| CallError::Unreadable(format!("{alias} is {name:?}")))
}

/// The hub's id of each role, such as `agora:did:key:z6Mk…`.
pub type Known = BTreeMap<Who, String>;

impl Wings {
    pub fn new(url: &str, tell: Teller) -> Self {
        Self { url: url.to_owned(), tell, working: JoinSet::new() }
    }

    /// Starts all agents except the Reader; they begin to listen for jobs.
    pub async fn enter(&mut self) -> Result<Known, CallError> {
        let mut known = Known::new();
        known.insert(Who::Editor, editor::enter(self).await?);
        known.insert(Who::Polyglot, polyglot::enter(self).await?);
        known.insert(Who::Newsstand, newsstand::enter(self).await?);
        for bidder in bidders::BOTH {
            known.insert(bidder.who, bidders::enter(self, bidder).await?);
        }
        for checker in checkers::BOTH {
            known.insert(checker.who, checkers::enter(self, checker).await?);
        }
        for who in [Who::Crier, Who::Herald] {
            known.insert(who, market::enter(self, who).await?);
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
        who: Who,
        work: impl Future<Output = Result<(), CallError>> + Send + 'static,
    ) {
        let tell = self.tell.clone();
        self.working.spawn(async move { tell.ended(who, work.await) });
    }
}
