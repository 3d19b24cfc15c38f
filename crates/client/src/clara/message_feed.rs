//! Reads a market's messages to one address, as they come.
//!
//! All results are public, and reading them stores nothing at the hub. So this is the way to wait:
//! read actions are signed messages, which a hub has to store.

use std::collections::VecDeque;

use rialto_protocols::clara::wire::result::MarketMessage;

use super::server::Server;
use crate::call::CallError;

/// Results per page.
const PAGE: usize = 200;

/// A cursor in the results, and the messages found for one address.
#[derive(Clone, Debug)]
pub struct MessageFeed {
    server: Server,
    address: String,
    cursor: Option<String>,
    ready: VecDeque<MarketMessage>,
}

impl MessageFeed {
    /// Messages to an address from now on.
    pub async fn from_now(server: &Server, address: &str) -> Result<Self, CallError> {
        let cursor = server.newest_cursor().await?;
        Ok(Self::after(server, address, cursor))
    }

    /// Messages to an address after a saved cursor; all of them without one.
    pub fn after(server: &Server, address: &str, cursor: Option<String>) -> Self {
        let (server, address) = (server.clone(), address.to_owned());
        Self { server, address, cursor, ready: VecDeque::new() }
    }

    /// The next message, if there is one now.
    pub async fn next(&mut self) -> Result<Option<MarketMessage>, CallError> {
        loop {
            if let Some(next) = self.ready.pop_front() {
                return Ok(Some(next));
            }
            let page = self.server.results(self.cursor.as_deref(), PAGE).await?;
            let Some(last) = page.edges.last() else { return Ok(None) };
            // A server that never advances its cursor would cause an endless loop.
            if self.cursor.as_ref() == Some(&last.cursor) {
                return Err(CallError::Unreadable(
                    "the server returned the same cursor twice".to_owned(),
                ));
            }
            self.cursor = Some(last.cursor.clone());
            let messages = page.edges.into_iter().flat_map(|edge| edge.node.messages);
            self.ready.extend(messages.filter(|message| message.target == self.address));
        }
    }

    /// Reads everything there is now, and returns whether any message has one of these actions.
    pub(super) async fn has_action(&mut self, actions: &[&str]) -> Result<bool, CallError> {
        let mut news = false;
        while let Some(message) = self.next().await? {
            news |= message.tag("Action").is_some_and(|action| actions.contains(&action));
        }
        Ok(news)
    }
}
