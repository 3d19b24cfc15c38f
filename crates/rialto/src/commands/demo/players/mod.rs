//! The players: ten agents, each over its own protocol's client and each a task of its own.
//!
//! Nothing here knows what the others do. Whoever hires looks for others in the lists of its own
//! protocol, where agents of other protocols stand under their aliases.

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

use super::cast::Who;
use super::teller::Teller;

/// How long a piece of work takes: long enough to be seen.
const WORK: Duration = Duration::from_millis(250);
/// How long somebody waits for work it asked for. The story itself is less patient, and knows better
/// what did not happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where players come from and what they need there. All of them stop when this is dropped.
pub struct Wings {
    pub url: String,
    pub tell: Teller,
    working: JoinSet<()>,
}

/// Who is meant by an alias. Everybody may ask the hub.
async fn who_is(hub: &Hub, protocol: &str, alias: &str) -> Result<Who, CallError> {
    // An alias may have a slash, which would be another path.
    let alias = alias.replace('/', "%2F");
    let shown = hub.get(&format!("/v1/agents/{protocol}:{alias}")).await?;
    let name = shown.get("name").and_then(serde_json::Value::as_str).unwrap_or_default();
    Who::named(name).ok_or_else(|| CallError::Unreadable(format!("{alias} is {name:?}")))
}

/// Whom the hub knows as what, such as `agora:did:key:z6Mk…`.
pub type Known = BTreeMap<Who, String>;

impl Wings {
    pub fn new(url: &str, tell: Teller) -> Self {
        Self { url: url.to_owned(), tell, working: JoinSet::new() }
    }

    /// Everybody but the Reader comes in and begins to listen for work.
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

    /// The hub, called by nobody in particular.
    fn hub(&self) -> Result<Hub, CallError> {
        Hub::new(&self.url)
    }

    /// Lets somebody work on its own; should that end, everybody hears of it.
    fn spawn(
        &mut self,
        who: Who,
        work: impl Future<Output = Result<(), CallError>> + Send + 'static,
    ) {
        let tell = self.tell.clone();
        self.working.spawn(async move { tell.ended(who, work.await) });
    }
}
