//! A market for tests: its recorder only writes down its input.

use std::sync::Arc;

use super::TestHub;
use crate::alias::Protocol;
use crate::answer::Answer;
use crate::command::{Command, Registration};
use crate::envelope::{Envelope, MarketSubmission};
use crate::id::PostingId;
use crate::market::{MarketRecord, MarketRecorder, MarketStep, RecordContent};
use crate::notice::Notice;
use crate::time::Timestamp;
use crate::world::Rules;

/// Writes its input: the order's result and the numbers first, then one line per notice. The reply
/// to an executed order and every notice are one message each.
#[derive(Clone, Copy, Debug)]
pub struct PlainRecorder;

impl MarketRecorder for PlainRecorder {
    fn write(&self, step: &MarketStep<'_, '_>) -> RecordContent {
        let outcome = match step.order.map(|order| order.result) {
            None => "nothing ordered".to_owned(),
            Some(Ok(_)) => "done".to_owned(),
            Some(Err(refusal)) => format!("refused {refusal:?}"),
        };
        let replies = u64::from(step.order.is_some_and(|order| order.result.is_ok()));
        let mut text = format!("{}|{}|{outcome}", step.order_count, step.first_message);
        for notice in &step.notices {
            text.push('\n');
            text.push_str(&notice_json(notice));
        }
        let shown = step.order.is_none_or(|order| order.result.is_ok());
        let messages = replies + step.notices.len() as u64;
        RecordContent { text, messages, shown, question: None }
    }
}

/// An order to a market.
pub fn market_order(
    market: Protocol,
    id: &str,
    registration: Option<Registration>,
    command: Command,
) -> Envelope {
    let (id, registration, reply) = (id.to_owned(), registration.map(Box::new), String::new());
    Envelope::for_market(MarketSubmission { market, id, registration, reply }, command)
}

/// How a notice is written.
pub fn notice_json(notice: &Notice) -> String {
    serde_json::to_string(notice).expect("notices can be written")
}

/// A record, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedRecord {
    pub of: Option<String>,
    pub at: Timestamp,
    pub posts: u64,
    pub first_message: u64,
    pub outcome: String,
    pub lines: Vec<String>,
}

impl ParsedRecord {
    pub fn parse(posting: &MarketRecord) -> Self {
        let mut lines = posting.text.lines().map(str::to_owned);
        let head = lines.next().expect("the first line is always there");
        let parts: Vec<&str> = head.splitn(3, '|').collect();
        let number = |at: usize| parts[at].parse().expect("a number");
        let (posts, first_message) = (number(0), number(1));
        let (of, outcome) = (posting.order_id.clone(), parts[2].to_owned());
        Self { of, at: posting.at, posts, first_message, outcome, lines: lines.collect() }
    }

    /// How many messages it contains.
    pub fn messages(&self) -> u64 {
        u64::from(self.outcome == "done") + self.lines.len() as u64
    }

    /// The notices in it, in order.
    pub fn notices(&self) -> Vec<Notice> {
        let read = |line: &String| serde_json::from_str(line).expect("a notice was written");
        self.lines.iter().map(read).collect()
    }
}

impl TestHub {
    /// A hub where this protocol publishes its records.
    pub fn with_market(rules: Rules, protocol: Protocol) -> Self {
        let mut scene = Self::new(rules);
        scene.world.markets.insert(protocol, Arc::new(PlainRecorder));
        scene
    }

    /// Submits an order to the market; returns its record, and whether it was submitted before.
    pub fn submit(&mut self, id: &str, command: Command) -> (PostingId, bool) {
        self.submit_for(id, None, command)
    }

    /// The same, registering the requester of a job if it is unknown.
    pub fn submit_for(
        &mut self,
        id: &str,
        registration: Option<Registration>,
        command: Command,
    ) -> (PostingId, bool) {
        let market = *self.world.markets.keys().next().expect("a hub with a market");
        let answer = self.run(market_order(market, id, registration, command));
        match answer.expect("submissions are never refused") {
            Answer::MarketOrder { record, repeated } => (record, repeated),
            other => panic!("expected a market record, got {other:?}"),
        }
    }

    /// Submits an order; returns what was published for it.
    pub fn submit_and_read(&mut self, id: &str, command: Command) -> ParsedRecord {
        let (posting, repeated) = self.submit(id, command);
        assert!(!repeated, "{id} was submitted before");
        self.read_record(posting)
    }

    /// The content of a record.
    pub fn read_record(&self, id: PostingId) -> ParsedRecord {
        let found = self.store.rows.market_records.iter().find(|posting| posting.id == id);
        ParsedRecord::parse(found.expect("it was published"))
    }

    /// Everything that was published after a record.
    pub fn records_after(&self, id: PostingId) -> Vec<ParsedRecord> {
        let later = self.store.rows.market_records.iter().filter(|posting| posting.id > id);
        later.map(|posting| ParsedRecord::parse(posting)).collect()
    }

    /// The newest record.
    pub fn newest_record(&self) -> PostingId {
        PostingId(self.world.next.market_record.0 - 1)
    }
}
