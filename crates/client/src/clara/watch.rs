//! Watching a market: its messages to one address, as they come.
//!
//! All results are public and reading them leaves no trace, so that this is how to wait: orders that
//! read are signed messages, which a hub has to keep.

use std::collections::VecDeque;

use rialto_protocols::clara::result::Sent;

use super::server::Server;
use crate::call::CallError;

/// Results read at a time.
const PAGE: usize = 200;

/// A place in the results, and what was found there for one address.
#[derive(Clone, Debug)]
pub struct Watch {
    server: Server,
    address: String,
    cursor: Option<String>,
    found: VecDeque<Sent>,
}

impl Watch {
    /// What the market tells an address from now on.
    pub async fn from_now(server: &Server, address: &str) -> Result<Self, CallError> {
        let cursor = server.newest().await?;
        Ok(Self::after(server, address, cursor))
    }

    /// What it told an address after a place that was kept; all of it without one.
    pub fn after(server: &Server, address: &str, cursor: Option<String>) -> Self {
        let (server, address) = (server.clone(), address.to_owned());
        Self { server, address, cursor, found: VecDeque::new() }
    }

    /// The next message, if there is one by now.
    pub async fn next(&mut self) -> Result<Option<Sent>, CallError> {
        loop {
            if let Some(next) = self.found.pop_front() {
                return Ok(Some(next));
            }
            let page = self.server.results(self.cursor.as_deref(), PAGE).await?;
            let Some(last) = page.edges.last() else { return Ok(None) };
            // A server that stays where it is would have us ask for ever.
            if self.cursor.as_ref() == Some(&last.cursor) {
                return Err(CallError::Unreadable(
                    "the server returned the same cursor twice".to_owned(),
                ));
            }
            self.cursor = Some(last.cursor.clone());
            let messages = page.edges.into_iter().flat_map(|edge| edge.node.messages);
            self.found.extend(messages.filter(|message| message.target == self.address));
        }
    }

    /// Reads all there is by now, and says whether any of it has one of these actions.
    pub(super) async fn has_news(&mut self, actions: &[&str]) -> Result<bool, CallError> {
        let mut news = false;
        while let Some(message) = self.next().await? {
            news |= message.tag("Action").is_some_and(|action| actions.contains(&action));
        }
        Ok(news)
    }
}
