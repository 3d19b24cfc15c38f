//! Event streams of a server: an inbox, and the reply of one receiver.
//!
//! An inbox returns every message once and in order, across reconnects: it tracks the position of the
//! last message, asks for what follows, and drops messages it already returned. A reply is chunks, an
//! end, and the outcome of the message; it is not repeated after a disconnect.

use std::collections::VecDeque;

use reqwest::Response;
use rialto_protocols::kit::sse::{Event, Parser};
use rialto_protocols::relay::wire::reply::ReplyEvent;

use super::message::Message;
use super::send::{DeliveryOutcome, SentMessage};
use super::server::{AckAnswer, Server};
use crate::call::CallError;
use crate::event_reader::EventReader;
use crate::origin_client::{add_query, refusal_from_body, transport_error};

/// Maximum event size of an inbox: a message is at most 64 KiB, and its event not much more.
const EVENT_BYTES_MAX: usize = 256 << 10;
/// Maximum event size of a reply: a receiver's whole text may be in one event.
const REPLY_EVENT_BYTES_MAX: usize = 1 << 20;

/// Options for reading an inbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InboxOptions {
    /// Start after this position; 0 is the very beginning. By default the server starts with the
    /// first unread message.
    pub after: Option<u64>,
    /// Keep every message unread until [`Inbox::ack`] acknowledges it.
    pub explicit_ack: bool,
}

/// An open inbox.
#[derive(Debug)]
pub struct Inbox {
    server: Server,
    events: EventReader,
    explicit_ack: bool,
    /// The cursor to send at a reconnect. The server takes everything up to it as read.
    resume_from: Option<String>,
    /// The position of the last message that was returned.
    last_position: u64,
    ended: bool,
}

impl Inbox {
    /// Opens an inbox. Fails if the server cannot be reached now; later the inbox reconnects
    /// instead.
    pub(super) async fn open(server: Server, options: InboxOptions) -> Result<Self, CallError> {
        let InboxOptions { after, explicit_ack } = options;
        let resume_from = after.map(|after| after.to_string());
        let first = connect(&server, explicit_ack, resume_from.as_deref()).await?;
        Ok(Self {
            server,
            events: EventReader::new(first, EVENT_BYTES_MAX),
            explicit_ack,
            resume_from,
            last_position: after.unwrap_or(0),
            ended: false,
        })
    }

    /// Waits for the next message.
    ///
    /// Returns `None` after the server has closed the inbox permanently, which is first returned as
    /// an error: the key is no longer valid, or there is no such inbox. A message that cannot be
    /// read is an error too, and the next ones follow.
    pub async fn next(&mut self) -> Option<Result<Message, CallError>> {
        while !self.ended {
            let reconnect =
                || connect(&self.server, self.explicit_ack, self.resume_from.as_deref());
            match self.events.next(reconnect).await {
                Ok(event) => {
                    if let Some(message) = self.handle_event(event) {
                        return Some(message);
                    }
                }
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    /// Acknowledges every message up to a position, so that they are not sent again.
    pub async fn ack(&mut self, up_to: u64) -> Result<AckAnswer, CallError> {
        let acked = self.server.ack(up_to).await?;
        if self.explicit_ack {
            self.resume_from = Some(acked.acked_to.to_string());
        }
        Ok(acked)
    }

    /// The message of an event; `None` for other events, and for a message that was returned before.
    fn handle_event(&mut self, event: Event) -> Option<Result<Message, CallError>> {
        let position = event.id.as_deref().and_then(|id| id.parse::<u64>().ok());
        match event.event.as_str() {
            // The start of this connection. If it breaks before the first message, the next one
            // must not start later, and this is the only known position.
            "connected" if self.resume_from.is_none() => {
                self.resume_from = event.id;
                None
            }
            "message" if position.is_none_or(|position| position > self.last_position) => {
                self.last_position = position.unwrap_or(self.last_position);
                // Resuming after a message acknowledges it, which explicit mode leaves to the
                // caller.
                if !self.explicit_ack && event.id.is_some() {
                    self.resume_from = event.id;
                }
                Some(Message::read(position, event.data))
            }
            _ => None,
        }
    }
}

/// Opens a connection to an inbox.
async fn connect(
    server: &Server,
    explicit_ack: bool,
    resume_from: Option<&str>,
) -> Result<Response, CallError> {
    let mut url = server.url(&server.paths().inbox)?;
    add_query(&mut url, [("ack", explicit_ack.then(|| "explicit".to_owned()))]);
    server.client().open_events(url, resume_from, refusal_from_body).await
}

/// One item of the stream.
#[derive(Clone, Debug)]
pub enum ReplyStreamItem {
    /// A chunk, the end, or a failure of the receiver's work.
    Event(ReplyEvent),
    /// The outcome of the message: the last item.
    Delivery(SentMessage),
}

/// A reply that arrives in chunks.
#[derive(Debug)]
pub struct ReplyStream {
    /// `None` once the stream has ended.
    response: Option<Response>,
    parser: Parser,
    waiting: VecDeque<Event>,
    /// The delivery state according to the last event, until the server reports it itself.
    delivery: DeliveryState,
}

#[derive(Debug)]
enum DeliveryState {
    Unknown,
    Implied(SentMessage),
    Reported,
}

impl ReplyStream {
    pub(super) fn new(response: Response) -> Self {
        Self {
            response: Some(response),
            parser: Parser::new(REPLY_EVENT_BYTES_MAX),
            waiting: VecDeque::new(),
            delivery: DeliveryState::Unknown,
        }
    }

    /// The next item; `None` at the end. The last item is the outcome of the message. If a server
    /// does not send it, it follows from the receiver's last event (spec, section 9). A stream that
    /// ends before that event is an error: the message may or may not have been delivered.
    pub async fn next(&mut self) -> Option<Result<ReplyStreamItem, CallError>> {
        loop {
            while let Some(event) = self.waiting.pop_front() {
                if let Some(item) = self.read(&event) {
                    return Some(item);
                }
            }
            let response = self.response.as_mut()?;
            let more = response.chunk().await;
            let more = more.map_err(|error| transport_error(response.url().as_str(), error));
            match more.and_then(|more| self.take(more)) {
                Ok(None) => {}
                Ok(Some(sent)) => return Some(Ok(ReplyStreamItem::Delivery(sent))),
                Err(error) => {
                    self.response = None;
                    return Some(Err(error));
                }
            }
        }
    }

    /// Reads the next bytes; at the end, returns what the last event implies.
    fn take(&mut self, more: Option<bytes::Bytes>) -> Result<Option<SentMessage>, CallError> {
        let Some(bytes) = more else {
            self.response = None;
            return match std::mem::replace(&mut self.delivery, DeliveryState::Reported) {
                DeliveryState::Reported => Ok(None),
                DeliveryState::Implied(sent) => Ok(Some(sent)),
                DeliveryState::Unknown => {
                    Err(CallError::unreadable("the stream ended before the receiver finished"))
                }
            };
        };
        let mut events = Vec::new();
        let pushed = self.parser.push(&bytes, &mut events);
        self.waiting.extend(events);
        pushed.map(|()| None).map_err(CallError::unreadable)
    }

    /// Converts an event; unknown events are skipped.
    fn read(&mut self, event: &Event) -> Option<Result<ReplyStreamItem, CallError>> {
        if event.event == "delivery" {
            self.delivery = DeliveryState::Reported;
            return Some(SentMessage::read(&event.data, false).map(ReplyStreamItem::Delivery));
        }
        let reply = ReplyEvent::read(event)?;
        let implied = match &reply {
            ReplyEvent::Chunk { .. } => None,
            ReplyEvent::Done { .. } => Some(DeliveryOutcome::Delivered { reply: None }),
            ReplyEvent::Error { code, message } => {
                Some(DeliveryOutcome::Failed { code: code.clone(), detail: message.clone() })
            }
        };
        if let Some(outcome) = implied {
            self.delivery = DeliveryState::Implied(SentMessage::from_outcome(outcome));
        }
        Some(Ok(ReplyStreamItem::Event(reply)))
    }
}
