//! An inbox: every envelope once, in order and verified, across reconnects; and single reads with an
//! inbox token.
//!
//! The inbox tracks the position of the last envelope. After a disconnect it reconnects, with a new
//! token if the old one has expired, asks for what follows that position, and drops envelopes it
//! already returned.

use std::collections::VecDeque;
use std::future::Future;

use reqwest::{Method, Response};
use rialto_protocols::agora::BODY_MAX;
use rialto_protocols::agora::wire::responses::{
    Ack, AckAnswer, InboxEvent, InboxPage, RequestView,
};
use rialto_protocols::kit::sse::Event;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::agent::Agent;
use super::incoming::{IncomingEnvelope, TrustError, parse_refusal};
use crate::call::CallError;
use crate::event_reader::EventReader;
use crate::json;
use crate::key::Key;
use crate::origin_client::add_query;

/// Maximum event size: the longest envelope and its receipt.
const EVENT_BYTES_MAX: usize = BODY_MAX + (64 << 10);

/// Where to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InboxOptions {
    /// After this position; 0 is the very beginning. By default the server starts with the first
    /// envelope that is not acknowledged.
    pub after: Option<u64>,
}

/// An open inbox.
#[derive(Debug)]
pub struct Inbox {
    agent: Agent,
    events: EventReader,
    /// The cursor to send at a reconnect.
    resume_from: Option<String>,
    /// The position of the last envelope that was returned.
    last_position: u64,
    /// The end of the inbox when it was first opened; envelopes up to it are from before.
    backlog_to: Option<u64>,
    /// Envelopes that were put back.
    returned: VecDeque<IncomingEnvelope>,
    ended: bool,
}

/// One page of an inbox.
#[derive(Debug)]
pub struct EnvelopePage {
    /// Envelopes, oldest first; one that cannot be trusted is an error with the reason.
    pub items: Vec<Result<IncomingEnvelope, TrustError>>,
    /// The position to continue after.
    pub next_after: u64,
}

/// An error that ends the inbox, or affects one envelope.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// One envelope cannot be trusted; the following ones still arrive.
    #[error("{0}")]
    NotTrusted(#[from] TrustError),
    /// The server no longer gives this agent its inbox.
    #[error("{0}")]
    Ended(#[from] CallError),
}

#[derive(Deserialize)]
struct Connected {
    #[serde(default)]
    resume_from: u64,
    #[serde(default)]
    backlog: u64,
}

impl Agent {
    /// Opens the inbox. Fails if the server cannot be reached now; later the inbox reconnects
    /// instead.
    pub async fn inbox(&self, options: InboxOptions) -> Result<Inbox, CallError> {
        let resume_from = options.after.map(|after| after.to_string());
        let first = self.open_inbox(resume_from.as_deref()).await?;
        Ok(Inbox {
            agent: self.clone(),
            events: EventReader::new(first, EVENT_BYTES_MAX),
            resume_from,
            last_position: options.after.unwrap_or(0),
            backlog_to: None,
            returned: VecDeque::new(),
            ended: false,
        })
    }

    /// A page of the inbox: what follows a position, or what is not acknowledged.
    pub async fn messages(
        &self,
        after: Option<u64>,
        limit: u32,
    ) -> Result<EnvelopePage, CallError> {
        let mut url = self.server().url(&["messages"]);
        let after = after.map(|after| after.to_string());
        add_query(&mut url, [("limit", Some(limit.to_string())), ("after", after)]);
        let get = |token| self.server().call_with_token(token, Method::GET, url.clone(), None);
        let raw: Box<RawValue> = self.with_token(get).await?;
        let page: InboxPage<'_> = json::parse(raw.get().as_bytes())?;
        let items = page.messages.iter().map(|item| {
            let receipt = item.receipt.map(RawValue::get);
            let (envelope, position) = (item.envelope.get(), Some(item.position));
            IncomingEnvelope::verify_receipt(envelope, receipt, position, self.trust_context())
        });
        Ok(EnvelopePage { items: items.collect(), next_after: page.next_after })
    }

    /// Acknowledges everything up to a position, so that it is not sent again.
    pub async fn ack(&self, up_to: u64) -> Result<AckAnswer, CallError> {
        let url = self.server().url(&["inbox", "ack"]);
        let body = serde_json::to_string(&Ack { up_to }).map_err(CallError::unreadable)?;
        let post = |token| {
            self.server().call_with_token(token, Method::POST, url.clone(), Some(body.clone()))
        };
        self.with_token(post).await
    }

    /// The state of a request. Only its parties may read it.
    pub async fn thread(&self, request_id: &str) -> Result<RequestView, CallError> {
        let url = self.server().url(&["requests", request_id]);
        let get = |token| self.server().call_with_token(token, Method::GET, url.clone(), None);
        self.with_token(get).await
    }

    /// Calls with a token, and once more with a new token if the first is refused.
    async fn with_token<T, F>(&self, call: impl Fn(Key) -> F) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        let token = self.inbox_token().await?;
        match call(token.clone()).await {
            Err(CallError::Refused { status: 401, .. }) => {
                self.forget_token(&token).await;
                call(self.inbox_token().await?).await
            }
            answer => answer,
        }
    }

    /// Opens a connection to the inbox, after a position.
    async fn open_inbox(&self, resume_from: Option<&str>) -> Result<Response, CallError> {
        let open = |token| async {
            let client = self.server().client().with_key(token);
            client.open_events(self.server().url(&["inbox"]), resume_from, parse_refusal).await
        };
        self.with_token(open).await
    }
}

impl Inbox {
    /// Waits for the next envelope; `None` after the end, which is first returned as an error. An
    /// envelope that cannot be trusted is an error too, and the next ones follow.
    pub async fn next(&mut self) -> Option<Result<IncomingEnvelope, InboxError>> {
        if let Some(envelope) = self.returned.pop_front() {
            return Some(Ok(envelope));
        }
        while !self.ended {
            let reconnect = || self.agent.open_inbox(self.resume_from.as_deref());
            match self.events.next(reconnect).await {
                Ok(event) => {
                    if let Some(envelope) = self.handle_event(event) {
                        return Some(envelope.map_err(InboxError::from));
                    }
                }
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error.into()));
                }
            }
        }
        None
    }

    /// Acknowledges everything up to a position, so that it is not sent again.
    pub async fn ack(&self, up_to: u64) -> Result<AckAnswer, CallError> {
        self.agent.ack(up_to).await
    }

    /// Whether an envelope was there before this inbox was opened.
    pub fn is_backlog(&self, position: u64) -> bool {
        self.backlog_to.is_some_and(|to| position <= to)
    }

    /// Puts envelopes back for another reader; they come next, in this order.
    pub fn put_back(&mut self, items: impl DoubleEndedIterator<Item = IncomingEnvelope>) {
        for item in items.rev() {
            self.returned.push_front(item);
        }
    }

    /// The envelope of an event; `None` for other events, and for an envelope that was returned
    /// before.
    fn handle_event(&mut self, event: Event) -> Option<Result<IncomingEnvelope, TrustError>> {
        match event.event.as_str() {
            "connected" => {
                if let Ok(connected) = serde_json::from_str::<Connected>(&event.data) {
                    let end = connected.resume_from.saturating_add(connected.backlog);
                    self.backlog_to.get_or_insert(end);
                }
                // If the connection breaks before the first envelope, this is the only known
                // position.
                if self.resume_from.is_none() {
                    self.resume_from = event.id;
                }
                None
            }
            "envelope" => {
                let position = event.id.as_deref().and_then(|id| id.parse::<u64>().ok());
                if position.is_some_and(|position| position <= self.last_position) {
                    return None;
                }
                if let Some(position) = position {
                    self.last_position = position;
                    self.resume_from = event.id;
                }
                Some(self.read(position, &event.data))
            }
            _ => None,
        }
    }

    fn read(&self, position: Option<u64>, data: &str) -> Result<IncomingEnvelope, TrustError> {
        let event: InboxEvent<'_> = serde_json::from_str(data)
            .map_err(|error| TrustError::Unreadable(error.to_string()))?;
        let (envelope, receipt) = (event.envelope.get(), event.receipt.map(RawValue::get));
        IncomingEnvelope::verify_receipt(envelope, receipt, position, self.agent.trust_context())
    }
}
