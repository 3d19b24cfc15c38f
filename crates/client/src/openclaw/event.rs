//! Events from a hub to an agent, on the stream or as a webhook: the same names and bodies.

use rialto_protocols::kit::ijson::{self, Json, JsonValue};
use rialto_protocols::openclaw::Failure;
use rialto_protocols::openclaw::wire::{
    self, CollaborationResult, Message, MessageBody, ReputationUpdate, Request, Response,
    StatusUpdate, stream,
};
use uuid::Uuid;

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The stream is open, for the first time or again.
    Connected,
    /// A request to this agent.
    Request(Box<IncomingRequest>),
    /// A response to a request of this agent.
    Response(Box<Response>),
    /// A request of this agent has ended; with the original text.
    Result(Box<Message<CollaborationResult>>),
    /// The other party cancelled a collaboration.
    Cancelled(Cancellation),
    /// The status of this agent, or of a watched one, has changed.
    Status(Box<StatusUpdate>),
    /// The reputation of this agent, or of a watched one, has changed.
    Reputation(Box<ReputationUpdate>),
}

/// A request as its responder gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingRequest {
    /// The request.
    pub request: Request,
    /// The collaboration's id; it may have none before it is accepted.
    pub collaboration_id: Option<Uuid>,
    /// Whether the hub has already accepted it. If not, it waits for the agent's own response.
    pub accepted: bool,
    /// Whether it needs approval before it is accepted.
    pub awaiting_approval: bool,
}

/// A cancelled collaboration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancellation {
    /// The collaboration's id, if it had been accepted.
    pub collaboration_id: Option<Uuid>,
    /// The request's id.
    pub request_id: Option<Uuid>,
}

/// Parses the body of an event by its name. `None` for an unknown name.
pub(super) fn read(name: &str, body: &str) -> Option<Result<Event, String>> {
    let name = stream::Event::read(name)?;
    let json = match ijson::read(body.as_bytes()) {
        Ok(json) => json,
        Err(bad) => return Some(Err(format!("a {name} cannot be read: {bad}"))),
    };
    let event = match name {
        stream::Event::Connected => Ok(Event::Connected),
        stream::Event::Request => IncomingRequest::read(&json).map(Box::new).map(Event::Request),
        stream::Event::Response => message(&json).map(Event::Response),
        stream::Event::Result => wire::from_json(&json).map(Box::new).map(Event::Result),
        stream::Event::Cancelled => Ok(Event::Cancelled(Cancellation {
            collaboration_id: id(&json, "collaboration_id"),
            request_id: id(&json, "request_id"),
        })),
        stream::Event::Status => message(&json).map(Event::Status),
        stream::Event::Reputation => message(&json).map(Event::Reputation),
    };
    Some(event.map_err(|bad| format!("invalid {name} event: {}", bad.message)))
}

impl IncomingRequest {
    fn read(json: &Json<'_>) -> Result<Self, Failure> {
        let request = wire::from_json(json)?.body;
        let flag = |name| matches!(json.get(name).map(Json::value), Some(JsonValue::Bool(true)));
        let (accepted, awaiting_approval) = (flag("accepted"), flag("awaiting_approval"));
        let collaboration_id = id(json, "collaboration_id");
        if accepted && collaboration_id.is_none() {
            return Err(Failure::invalid("accepted work must have a collaboration_id"));
        }
        Ok(Self { request, collaboration_id, accepted, awaiting_approval })
    }
}

fn message<T: MessageBody>(json: &Json<'_>) -> Result<Box<T>, Failure> {
    wire::from_json(json).map(|message| Box::new(message.body))
}

fn id(json: &Json<'_>, name: &str) -> Option<Uuid> {
    match json.get(name)?.value() {
        JsonValue::String(text) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rialto_protocols::openclaw::Kind;

    const ID: Uuid = Uuid::from_u128(0x220e_8400_e29b_41d4_a716_4466_5544_0012);

    fn request(more: &str) -> Result<Event, String> {
        let body = Kind::Request.example();
        let body = format!("{}{more}}}", &body[..body.len() - 1]);
        read("collaboration_request", &body).expect("a known event")
    }

    #[test]
    fn a_request_says_whether_it_is_accepted_or_waits_for_approval() {
        for (more, id, accepted, waits) in [
            (format!(r#","collaboration_id":"{ID}","accepted":true"#), Some(ID), true, false),
            (r#","accepted":false"#.to_owned(), None, false, false),
            (r#","accepted":false,"awaiting_approval":true"#.to_owned(), None, false, true),
            (String::new(), None, false, false),
        ] {
            let Ok(Event::Request(incoming)) = request(&more) else { panic!("{more}") };
            assert_eq!(incoming.collaboration_id, id, "{more}");
            assert_eq!((incoming.accepted, incoming.awaiting_approval), (accepted, waits));
            assert_eq!(incoming.request.capability_id, "consume_trends");
        }
        assert!(request(r#","accepted":true"#).is_err(), "work without a name");
    }

    #[test]
    fn every_message_is_read_by_the_name_of_its_event() {
        for (kind, name) in [
            (Kind::Status, "status_update"),
            (Kind::Reputation, "reputation_update"),
            (Kind::Response, "collaboration_response"),
            (Kind::Result, "collaboration_result"),
        ] {
            assert!(matches!(read(name, kind.example()), Some(Ok(_))), "{name}");
            assert!(matches!(read(name, "{}"), Some(Err(_))), "{name}");
        }
        let cancelled = read("collaboration_cancelled", Kind::Result.example());
        assert!(matches!(cancelled, Some(Ok(Event::Cancelled(cancelled)))
            if cancelled.collaboration_id == Some(ID) && cancelled.request_id.is_some()));
        assert_eq!(read("connected", "{}"), Some(Ok(Event::Connected)));
        assert_eq!(read("of another version", "{}"), None);
        assert!(matches!(read("connected", "<html>"), Some(Err(_))));
    }
}
