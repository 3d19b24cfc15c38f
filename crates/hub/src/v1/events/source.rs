//! Where a stream's events come from: an inbox, or the hub's history.

use std::sync::Arc;

use rialto_core::id::{AgentId, EventId};
use rialto_engine::{Engine, Failure};
use tokio::sync::{Notify, watch};

use super::history;
use crate::v1::notices;
use crate::v1::auth::{Proven, Who};

/// What is streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Inbox(AgentId),
    History,
}

/// One event: its id, its kind, and its data on one line.
pub struct Event {
    pub id: u64,
    pub kind: &'static str,
    pub data: String,
}

impl Source {
    pub fn of(proven: &Proven) -> Self {
        match proven.who {
            Who::Agent(id) => Self::Inbox(id),
            Who::Operator => Self::History,
        }
    }

    /// The newest id.
    pub fn head(self, engine: &Engine) -> u64 {
        engine.look(|world| match self {
            Self::Inbox(agent) => world.mailbox(agent).head,
            Self::History => world.next.event.0 - 1,
        })
    }

    /// Where a stream begins by default.
    pub fn start(self, engine: &Engine) -> u64 {
        match self {
            Self::Inbox(agent) => engine.look(|world| world.mailbox(agent).acked),
            Self::History => self.head(engine),
        }
    }

    /// The signal for new events.
    pub fn bell(self, engine: &Engine) -> Bell {
        match self {
            Self::Inbox(agent) => Bell::Inbox(engine.news_of(agent)),
            Self::History => Bell::History(engine.lines()),
        }
    }

    /// Events after an id, oldest first.
    pub async fn page(
        self,
        engine: &Engine,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        match self {
            Self::Inbox(agent) => {
                let told = notices::after(engine, agent, after, limit).await?;
                let event = |told: notices::Told| Event {
                    id: told.position,
                    kind: told.kind,
                    data: told.members.line(),
                };
                Ok(told.into_iter().map(event).collect())
            }
            Self::History => history::after(engine, EventId(after), limit).await,
        }
    }
}

/// Signals that there may be new events.
pub enum Bell {
    Inbox(Arc<Notify>),
    History(watch::Receiver<u64>),
}

impl Bell {
    /// Waits for the next signal, unless there are new events already.
    pub async fn heard(&mut self, is_news: impl Fn() -> bool) {
        match self {
            Self::Inbox(notify) => {
                let told = notify.notified();
                tokio::pin!(told);
                // The waiter is registered now, so checking after this cannot miss a signal.
                told.as_mut().enable();
                if !is_news() {
                    told.await;
                }
            }
            Self::History(lines) => {
                lines.borrow_and_update();
                if !is_news() && lines.changed().await.is_err() {
                    std::future::pending().await
                }
            }
        }
    }
}
