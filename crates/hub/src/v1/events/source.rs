//! Where a stream's events come from: an inbox, or the hub's history.

use std::sync::Arc;

use rialto_core::id::{AgentId, EventId};
use rialto_core::world::World;
use rialto_engine::{Engine, Failure};
use tokio::sync::{Notify, watch};

use super::history;
use crate::v1::auth::{AuthenticatedCaller, VerifiedKey};
use crate::v1::json_object::to_line;
use crate::v1::notices;

/// What is streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSource {
    Inbox(AgentId),
    History,
}

/// One event: its id, its kind, and its data on one line.
pub struct StreamEvent {
    pub id: u64,
    pub kind: &'static str,
    pub data: String,
}

impl EventSource {
    pub fn for_caller(proven: &VerifiedKey) -> Self {
        match proven.caller {
            AuthenticatedCaller::Agent(id) => Self::Inbox(id),
            AuthenticatedCaller::Operator => Self::History,
        }
    }

    /// The newest id.
    pub fn newest_id(self, engine: &Engine) -> u64 {
        engine.with_world(|world| self.newest_id_in(world))
    }

    /// The newest id in a world.
    pub fn newest_id_in(self, world: &World) -> u64 {
        match self {
            Self::Inbox(agent) => world.inbox(agent).head,
            Self::History => world.next.event.0 - 1,
        }
    }

    /// Where a stream begins by default.
    pub fn default_start(self, engine: &Engine) -> u64 {
        match self {
            Self::Inbox(agent) => engine.with_world(|world| world.inbox(agent).acked),
            Self::History => self.newest_id(engine),
        }
    }

    /// The signal for new events.
    pub fn new_event_signal(self, engine: &Engine) -> NewEventSignal {
        match self {
            Self::Inbox(agent) => NewEventSignal::Inbox(engine.subscribe_agent(agent)),
            Self::History => NewEventSignal::History(engine.subscribe_history()),
        }
    }

    /// Events after an id, oldest first.
    pub async fn load_page(
        self,
        engine: &Engine,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StreamEvent>, Failure> {
        match self {
            Self::Inbox(agent) => {
                let notices = notices::load_after(engine, agent, after, limit).await?;
                let event = |notice: notices::NoticeView| StreamEvent {
                    id: notice.position,
                    kind: notice.kind,
                    data: to_line(&notice),
                };
                Ok(notices.into_iter().map(event).collect())
            }
            Self::History => history::load_after(engine, EventId(after), limit).await,
        }
    }
}

/// Signals that there may be new events.
pub enum NewEventSignal {
    Inbox(Arc<Notify>),
    History(watch::Receiver<u64>),
}

impl NewEventSignal {
    /// Waits for the next signal, unless there are new events already.
    pub async fn wait(&mut self, is_news: impl Fn() -> bool) {
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
