//! A market for tests: its scribe writes down what it was given, and nothing else.

use std::sync::Arc;

use super::Scene;
use crate::alias::Protocol;
use crate::answer::Answer;
use crate::command::Command;
use crate::id::PostingId;
use crate::market::{Deed, Market, Post, Posting, Scribe, Step, Written};
use crate::notice::Notice;
use crate::time::Timestamp;
use crate::world::Rules;

/// Writes what it was given: what came of the order and the numbers first, then one line for each
/// notice. A reply to a carried-out order and every notice are a message each.
#[derive(Clone, Copy, Debug)]
pub struct Teller;

impl Scribe for Teller {
    fn write(&self, step: &Step<'_, '_>) -> Written {
        let outcome = match step.outcome {
            None => "nothing ordered".to_owned(),
            Some(Ok(_)) => "done".to_owned(),
            Some(Err(refusal)) => format!("refused {refusal:?}"),
        };
        let replies = u64::from(matches!(step.outcome, Some(Ok(_))));
        let mut text = format!("{}|{}|{outcome}", step.posts, step.first_message);
        for notice in &step.notices {
            text.push('\n');
            text.push_str(&line(notice));
        }
        let shown = !matches!(step.outcome, Some(Err(_)));
        let messages = replies + step.notices.len() as u64;
        Written { text, messages, shown, question: None }
    }
}

/// How a notice is written.
pub fn line(notice: &Notice) -> String {
    serde_json::to_string(notice).expect("notices can be written")
}

/// A posting, read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub of: Option<String>,
    pub at: Timestamp,
    pub posts: u64,
    pub first_message: u64,
    pub outcome: String,
    pub lines: Vec<String>,
}

impl Told {
    pub fn of(posting: &Posting) -> Self {
        let mut lines = posting.text.lines().map(str::to_owned);
        let head = lines.next().expect("the first line is always there");
        let parts: Vec<&str> = head.splitn(3, '|').collect();
        let number = |at: usize| parts[at].parse().expect("a number");
        let (posts, first_message) = (number(0), number(1));
        let (of, outcome) = (posting.of.clone(), parts[2].to_owned());
        Self { of, at: posting.at, posts, first_message, outcome, lines: lines.collect() }
    }

    /// How many messages it is made of.
    pub fn messages(&self) -> u64 {
        u64::from(self.outcome == "done") + self.lines.len() as u64
    }

    /// Who is told something in it, and what, in that order.
    pub fn notices(&self) -> Vec<Notice> {
        let read = |line: &String| serde_json::from_str(line).expect("a notice was written");
        self.lines.iter().map(read).collect()
    }
}

impl Scene {
    /// A hub where this protocol publishes what it does.
    pub fn with_market(rules: Rules, protocol: Protocol) -> Self {
        let mut scene = Self::new(rules);
        scene.world.market = Some(Arc::new(Market { protocol, scribe: Arc::new(Teller) }));
        scene
    }

    /// Posts an order to the market; its posting, and whether it was posted before.
    pub fn post(&mut self, id: &str, deed: Deed) -> (PostingId, bool) {
        let market = self.world.market.as_ref().expect("a scene with a market").protocol;
        let scribe = Arc::new(Teller);
        let order = Post { market, id: id.to_owned(), deed, scribe };
        match self.run(Command::Post(Box::new(order))).expect("postings are never refused") {
            Answer::Posted { posting, repeated } => (posting, repeated),
            other => panic!("expected a posting, got {other:?}"),
        }
    }

    /// Posts an order; what was published of it.
    pub fn posted(&mut self, id: &str, deed: Deed) -> Told {
        let (posting, repeated) = self.post(id, deed);
        assert!(!repeated, "{id} was posted before");
        self.told_in(posting)
    }

    /// What a posting says.
    pub fn told_in(&self, id: PostingId) -> Told {
        let found = self.store.rows.postings.iter().find(|posting| posting.id == id);
        Told::of(found.expect("it was published"))
    }

    /// Everything that was published after a posting.
    pub fn published_after(&self, id: PostingId) -> Vec<Told> {
        let later = self.store.rows.postings.iter().filter(|posting| posting.id > id);
        later.map(|posting| Told::of(posting)).collect()
    }

    /// The last posting there is.
    pub fn newest_posting(&self) -> PostingId {
        PostingId(self.world.next.posting.0 - 1)
    }
}
