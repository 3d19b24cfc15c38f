//! The events of an inbox stream.

use std::io::Write;

use rialto_core::time::{Millis, Timestamp};

use super::a2a::{self, EnvelopeFormat};
use super::response::write_json_string;
use crate::kit::{rfc3339, sse};

/// How long a reader should wait before it reconnects.
const RETRY_MS: u32 = 2_000;

/// The first event of every connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectedEvent<'a> {
    /// The inbox's agent.
    pub agent_id: &'a str,
    /// The position after which events follow; also the event's id.
    pub resume_from: u64,
    /// The number of waiting messages.
    pub backlog: u64,
}

/// A message as its receiver gets it.
#[derive(Clone, Copy, Debug)]
pub struct MessageEvent<'a> {
    /// Its position in the receiver's inbox; also the event's id.
    pub position: u64,
    /// Its public id.
    pub trace_id: &'a str,
    /// The sender as registered.
    pub sender_id: &'a str,
    /// JSON text as sent.
    pub envelope: &'a str,
    /// When the hub accepted it.
    pub at: Timestamp,
    /// How the receiver wants the envelope wrapped.
    pub format: Option<EnvelopeFormat>,
    /// What the hub adds beside the envelope.
    pub annotations: &'a Annotations,
    /// Flags the receiver should know.
    pub flags: MessageFlags,
}

/// What the hub adds to an envelope it wrote for an agent of another protocol, each a JSON text. It
/// is beside the envelope, because clients read envelopes strictly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// The job the envelope is about.
    pub job: Option<String>,
    /// The protocol and the agent the hub writes for.
    pub bridge: Option<String>,
    /// Members of the request that have no field in an envelope (B11).
    pub meta: Option<String>,
    /// It is a question: the next message of this conversation is the answer.
    pub question: bool,
}

impl Annotations {
    /// Appends them to an object that already has members.
    pub fn write(&self, out: &mut Vec<u8>) {
        for (name, value) in [("job", &self.job), ("bridge", &self.bridge), ("meta", &self.meta)] {
            if let Some(value) = value {
                out.extend_from_slice(format!(",\"{name}\":{value}").as_bytes());
            }
        }
        if self.question {
            out.extend_from_slice(b",\"question\":true");
        }
    }
}

/// What is unusual about a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageFlags {
    /// The operator sent it in the sender's name (R35).
    pub by_operator: bool,
    /// It came from outside, and its sender is not proven (R85).
    pub unverified: bool,
    /// How long it was held back, since two agents seem to be in a loop (R89).
    pub loop_guard: Option<Millis>,
}

impl ConnectedEvent<'_> {
    /// Appends the event, with the time to wait before reconnecting.
    pub fn write(&self, out: &mut Vec<u8>) {
        const SAID: &str = "Inbox connected. Messages will be delivered here.";
        writeln!(out, "retry: {RETRY_MS}").expect("memory can be written to");
        sse::begin_frame(out, Some(self.resume_from), "connected");
        out.extend_from_slice(b"{\"agent_id\":");
        write_json_string(out, self.agent_id);
        let Self { resume_from, backlog, .. } = self;
        write!(out, r#","message":"{SAID}","resume_from":{resume_from},"backlog":{backlog}}}"#)
            .expect("memory can be written to");
        sse::end_frame(out);
    }
}

impl MessageEvent<'_> {
    /// Appends the event.
    pub fn write(&self, out: &mut Vec<u8>) {
        // Names, flags, ids and perhaps the A2A message around the envelope.
        out.reserve(self.envelope.len() + self.sender_id.len() + 512);
        sse::begin_frame(out, Some(self.position), "message");
        let start = out.len();
        out.extend_from_slice(b"{\"trace_id\":");
        write_json_string(out, self.trace_id);
        out.extend_from_slice(b",\"sender_id\":");
        write_json_string(out, self.sender_id);
        out.extend_from_slice(b",\"envelope\":");
        a2a::write_envelope(out, self.envelope, self.format, self.trace_id);
        self.annotations.write(out);
        out.extend_from_slice(b",\"timestamp\":\"");
        out.extend_from_slice(&rfc3339::format_millis_bytes(self.at));
        out.push(b'"');
        self.flags.write(out);
        out.push(b'}');
        sse::replace_newlines(&mut out[start..]);
        sse::end_frame(out);
    }
}

impl MessageFlags {
    fn write(self, out: &mut Vec<u8>) {
        let marks: [(bool, &[u8]); 3] = [
            (self.by_operator, b",\"sent_by\":\"operator\""),
            (self.unverified, b",\"verified\":false"),
            (self.loop_guard.is_some(), b",\"loop_guard\":true"),
        ];
        for (_, mark) in marks.into_iter().filter(|(set, _)| *set) {
            out.extend_from_slice(mark);
        }
    }
}

/// Appends a keep-alive comment.
pub fn write_ping(out: &mut Vec<u8>) {
    sse::write_comment(out, "ping");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ijson;
    use proptest::prelude::*;

    const NONE: Annotations = Annotations { job: None, bridge: None, meta: None, question: false };
    const AT: Timestamp = Timestamp(1_774_000_800_000);

    fn message(envelope: &str) -> MessageEvent<'_> {
        MessageEvent {
            position: 42,
            trace_id: "t-1",
            sender_id: "alice@chorus",
            envelope,
            at: AT,
            format: None,
            annotations: &NONE,
            flags: MessageFlags::default(),
        }
    }

    fn written(message: MessageEvent<'_>) -> String {
        let mut out = Vec::new();
        message.write(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn an_inbox_opens_as_the_book_shows() {
        let mut out = Vec::new();
        let opened = ConnectedEvent { agent_id: "my-agent@chorus", resume_from: 41, backlog: 2 };
        opened.write(&mut out);
        write_ping(&mut out);
        let wanted = "retry: 2000\nid: 41\nevent: connected\ndata: {\"agent_id\":\"my-agent@chorus\",\
                      \"message\":\"Inbox connected. Messages will be delivered here.\",\
                      \"resume_from\":41,\"backlog\":2}\n\n: ping\n\n";
        assert_eq!(String::from_utf8(out).expect("text"), wanted);
    }

    #[test]
    fn a_message_carries_its_envelope_whole() {
        let wanted = "id: 42\nevent: message\ndata: {\"trace_id\":\"t-1\",\
                      \"sender_id\":\"alice@chorus\",\"envelope\":{\"a\" :1.0},\
                      \"timestamp\":\"2026-03-20T10:00:00.000Z\"}\n\n";
        assert_eq!(written(message("{\"a\" :1.0}")), wanted);
    }

    #[test]
    fn what_the_hub_says_of_a_message_stands_beside_its_envelope() {
        let annotations = Annotations {
            job: Some(r#"{"id":"j"}"#.to_owned()),
            bridge: Some(r#"{"protocol":"agora"}"#.to_owned()),
            meta: Some(r#"{"a":1.0}"#.to_owned()),
            question: true,
        };
        let said = written(MessageEvent { annotations: &annotations, ..message("{}") });
        let wanted = r#","envelope":{},"job":{"id":"j"},"bridge":{"protocol":"agora"},"meta":{"a":1.0},"question":true,"timestamp":"#;
        assert!(said.contains(wanted), "{said}");
    }

    #[test]
    fn marks_are_shown_where_they_are_set() {
        let mut marked = message("{}");
        marked.flags =
            MessageFlags { by_operator: true, unverified: true, loop_guard: Some(Millis(500)) };
        let wanted = r#"Z","sent_by":"operator","verified":false,"loop_guard":true}"#;
        assert!(written(marked).trim_end().ends_with(wanted));
    }

    #[test]
    fn an_envelope_is_wrapped_for_readers_that_request_it() {
        let mut wrapped = message("{}");
        wrapped.format = Some(EnvelopeFormat::A2a10);
        let wanted = r#""envelope":{"role":"ROLE_USER","parts":[{"data":{},"#;
        assert!(written(wrapped).contains(wanted));
    }

    proptest! {
        #[test]
        fn no_envelope_makes_a_second_event_or_changes_on_the_way(
            said in any::<String>(), gap in "[ \\t\\r\\n]{0,4}", wrap in any::<bool>(),
        ) {
            let said = serde_json::to_string(&said).expect("a string");
            let envelope = format!("{{{gap}\"original_text\"{gap}:{gap}{said}{gap},{gap}\"data: \":[]}}");
            let mut message = message(&envelope);
            message.format = wrap.then_some(EnvelopeFormat::A2a03);
            let mut events = Vec::new();
            let stream = written(message);
            sse::Parser::new(100_000).push(stream.as_bytes(), &mut events).expect("short");
            prop_assert_eq!(events.len(), 1);
            prop_assert_eq!(events[0].id.as_deref(), Some("42"));
            let data = ijson::read(events[0].data.as_bytes()).expect("JSON");
            let inner = a2a::find_envelope(data.get("envelope").expect("it"), "").expect("one").envelope;
            prop_assert_eq!(inner.raw().to_owned(), envelope.replace(['\r', '\n'], " "));
        }
    }
}
