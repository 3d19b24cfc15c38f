//! The messages of the send benchmark, as whole requests (relay 2.4 and 2.6).
//!
//! All messages of one sender differ only in a few digits and in the receiver's name, all of fixed
//! length. So each message is a copy of one template with these places overwritten.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::{Bytes, BytesMut};

use crate::connection::RawRequest;
use crate::relay::RelayAgent;

/// Messages per conversation: fewer than the loop guard allows per minute (relay R89).
pub const PER_CONVERSATION: u64 = 16;
/// Limits on conversations per sender and senders per run, so that numbers fit their digits.
const CONVERSATIONS_MAX: u64 = 10_000_000;
const SENDERS_MAX: u64 = 10_000;
/// Marks the send time of a message. Appears nowhere else in an inbox.
const TIME_MARK: char = '#';
/// Digits of a time: enough for eleven days.
const TIME_DIGITS: usize = 15;

/// Zero of the benchmark's clock.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);
/// Each run uses its own conversations.
static RUNS: AtomicU64 = AtomicU64::new(1);

/// Nanoseconds from the start of the benchmark's clock to `at`.
pub fn clock_ns(at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(*EPOCH).as_nanos()).unwrap_or(u64::MAX)
}

/// The send time of the message in this inbox line, if it contains one.
pub fn sent_ns(line: &[u8]) -> Option<u64> {
    let mark = line.iter().position(|byte| *byte == TIME_MARK as u8)?;
    let digits = line.get(mark + 1..)?.get(..TIME_DIGITS)?;
    str::from_utf8(digits).ok()?.parse().ok()
}

/// All messages of one run.
pub struct Messages {
    run: u64,
    receivers: Vec<Bytes>,
    senders: Vec<MessageTemplate>,
}

/// One sender's message, and the places where it differs from the next.
struct MessageTemplate {
    request: Bytes,
    receiver: Range<usize>,
    number: Range<usize>,
    time: Range<usize>,
    conversation: Range<usize>,
}

impl Messages {
    /// Messages from all `senders` to all `receivers`, with `padding` extra characters.
    pub fn new(
        to: SocketAddr,
        senders: &[RelayAgent],
        receivers: &[RelayAgent],
        padding: usize,
    ) -> Self {
        let longest = receivers.first().map_or(0, |receiver| receiver.id.len());
        assert!(
            !receivers.is_empty() && receivers.iter().all(|receiver| receiver.id.len() == longest),
            "receivers must exist and have names of equal length"
        );
        assert!((senders.len() as u64) < SENDERS_MAX, "too many senders for the conversation ids");
        let template = |sender| MessageTemplate::new(to, sender, &receivers[0].id, padding);
        Self {
            run: RUNS.fetch_add(1, Ordering::Relaxed),
            receivers: receivers.iter().map(|one| Bytes::from(one.id.clone())).collect(),
            senders: senders.iter().map(template).collect(),
        }
    }

    /// Which receiver gets the `n`th message of a sender.
    pub fn receiver_of(&self, sender: usize, n: u64) -> usize {
        let conversation = sender as u64 + n / PER_CONVERSATION;
        (conversation % self.receivers.len() as u64) as usize
    }

    /// The `n`th message of a sender, with the current time.
    pub fn nth(&self, sender: usize, n: u64) -> RawRequest {
        let number = n / PER_CONVERSATION;
        let conversation = (self.run * SENDERS_MAX + sender as u64) * CONVERSATIONS_MAX
            + number % CONVERSATIONS_MAX;
        let receiver = self.receiver_of(sender, n);
        let template = &self.senders[sender];
        let mut outbound = BytesMut::from(&template.request[..]);
        outbound[template.receiver.clone()].copy_from_slice(&self.receivers[receiver]);
        write_digits(&mut outbound[template.conversation.clone()], conversation);
        write_digits(&mut outbound[template.number.clone()], n);
        write_digits(&mut outbound[template.time.clone()], clock_ns(Instant::now()));
        RawRequest(outbound.freeze())
    }
}

impl MessageTemplate {
    fn new(to: SocketAddr, sender: &RelayAgent, receiver: &str, padding: usize) -> Self {
        let (number, time, conversation) = ("N".repeat(9), "T".repeat(TIME_DIGITS), "C".repeat(18));
        let padding = "-".repeat(padding);
        let RelayAgent { id, key, .. } = sender;
        let text =
            format!("Benchmark message {number}, sent at {TIME_MARK}{time} nanoseconds{padding}");
        let body = format!(
            r#"{{"receiver_id":"{receiver}","envelope":{{"chorus_version":"0.4","sender_id":"{id}","original_text":"{text}","sender_culture":"en","conversation_id":"{conversation}"}}}}"#
        );
        let headers = format!("authorization: Bearer {key}\r\ncontent-type: application/json\r\n");
        let RawRequest(request) =
            RawRequest::post(to, "/relay/messages", &headers, body.as_bytes());
        let text = str::from_utf8(&request).expect("the request is text");
        let place = |of: &str| {
            let start = text.find(of).expect("the request contains the placeholder");
            start..start + of.len()
        };
        let receiver_start = place(r#"{"receiver_id":""#).end;
        Self {
            receiver: receiver_start..receiver_start + receiver.len(),
            number: place(&number),
            time: place(&time),
            conversation: place(&conversation),
            request: request.clone(),
        }
    }
}

fn write_digits(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn agents(prefix: &str, count: usize) -> Vec<RelayAgent> {
        let one = |at| RelayAgent::new(format!("{prefix}-{at:05}@chorus"), "ca_0f".to_owned());
        (0..count).map(one).collect()
    }

    fn messages(padding: usize) -> Messages {
        let to = ([127, 0, 0, 1], 7425).into();
        Messages::new(to, &agents("from", 2), &agents("away", 3), padding)
    }

    fn body(raw: &RawRequest) -> Value {
        let text = str::from_utf8(&raw.0).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /relay/messages HTTP/1.1\r\nhost: 127.0.0.1:7425\r\n"));
        assert!(head.contains("\r\nauthorization: Bearer ca_0f\r\n"));
        assert!(head.ends_with(&format!("\r\ncontent-length: {}", body.len())));
        serde_json::from_str(body).unwrap()
    }

    #[test]
    fn a_message_is_a_plain_envelope_with_its_own_number_and_time() {
        let before = clock_ns(Instant::now());
        let outbound = body(&messages(0).nth(1, 12_345));
        let envelope = &outbound["envelope"];
        assert_eq!(envelope["chorus_version"], "0.4");
        assert_eq!(envelope["sender_id"], "from-00001@chorus");
        assert_eq!(envelope["sender_culture"], "en");
        assert!(envelope.get("turn_number").is_none());
        let text = envelope["original_text"].as_str().unwrap();
        assert!(text.starts_with("Benchmark message 000012345, sent at #"), "{text}");
        let sent = sent_ns(text.as_bytes()).unwrap();
        assert!((before..=clock_ns(Instant::now())).contains(&sent));
        assert!(body(&messages(100).nth(0, 0)).to_string().len() > outbound.to_string().len() + 90);
    }

    #[test]
    fn a_conversation_has_one_receiver_and_ends_before_the_limit_of_the_loop_guard() {
        let messages = messages(0);
        let of = |sender, n| {
            let outbound = body(&messages.nth(sender, n));
            (outbound["receiver_id"].clone(), outbound["envelope"]["conversation_id"].clone())
        };
        assert_eq!(of(0, 0), of(0, 15));
        assert_ne!(of(0, 15).1, of(0, 16).1);
        assert_ne!(of(0, 15).0, of(0, 16).0);
        assert_ne!(of(0, 0).1, of(1, 0).1);
        assert_eq!(of(0, 48).0, of(0, 0).0);
    }

    #[test]
    fn no_two_runs_share_a_conversation() {
        let of =
            |messages: Messages| body(&messages.nth(0, 0))["envelope"]["conversation_id"].clone();
        assert_ne!(of(messages(0)), of(messages(0)));
    }

    #[test]
    fn a_line_without_a_message_has_no_time() {
        for line in ["data: {}", "data: #12", "data: #12345678901234x", ""] {
            assert_eq!(sent_ns(line.as_bytes()), None, "{line}");
        }
    }
}
