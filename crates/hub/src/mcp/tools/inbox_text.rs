//! What stands in an inbox, in the form that models read: who wrote it, and its text.

use std::sync::Arc;

use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester};
use rialto_core::notice::{Notice, NoticeKind};
use rialto_engine::{Engine, Failure};
use rialto_protocols::adapter;
use rialto_protocols::kit::ijson::{self, JsonValue};
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::rfc3339;

use super::names::address_of;
use super::stranger_text::cut;
use crate::v1::notices::kind_name;

/// The longest text of an item, in characters.
const TEXT_MAX: usize = 4_000;
/// The longest item, in characters of its JSON.
const ITEM_MAX: usize = 20_000;

/// A notice, and the job it is about.
pub struct InboxItem {
    pub notice: Notice,
    job: Option<Arc<Job>>,
}

impl InboxItem {
    /// The first notices of an inbox after a position.
    pub async fn load_after(
        engine: &Engine,
        agent: AgentId,
        position: u64,
        limit: usize,
    ) -> Result<Vec<Self>, Failure> {
        let notices = engine.load_notices(agent, position, limit).await?;
        let mut items = Vec::with_capacity(notices.len());
        for notice in notices {
            let job = match notice.news.job() {
                Some(id) => engine.load_job(id).await?,
                None => None,
            };
            items.push(Self { notice, job });
        }
        Ok(items)
    }

    /// The question that the worker of the reader's job asks, and the job.
    pub fn asked_question(&self) -> Option<(&Arc<Job>, u32)> {
        match self.notice.news {
            NoticeKind::InputRequested { question, .. } => Some((self.job.as_ref()?, question)),
            _ => None,
        }
    }

    /// The agent to whom a reply goes: the sender of a message, else the other party of the job.
    pub fn from(&self) -> Option<AgentId> {
        if let NoticeKind::Message { from, .. } = &self.notice.news {
            return *from;
        }
        let job = self.job.as_ref()?;
        match &self.notice.news {
            NoticeKind::OfferReceived { place, .. } => {
                job.candidates.offers.get(usize::try_from(*place).ok()?).map(|offer| offer.by)
            }
            _ if self.notice.to.is_some_and(|to| job.is_requested_by(to)) => job.worker(),
            _ => match job.request.requester {
                Requester::Agent(agent) => Some(agent),
                Requester::Guest(_) => None,
            },
        }
    }

    /// What the other party wrote.
    fn text(&self) -> Option<String> {
        match &self.notice.news {
            NoticeKind::Message { protocol, body, .. } => {
                Some(adapter::message_text(*protocol, body))
            }
            NoticeKind::Progress { report, .. } | NoticeKind::OriginalProgress { report, .. } => {
                let part = report.update.part.as_ref().map(|part| part.content.clone());
                report.update.text.clone().or(part)
            }
            NoticeKind::InputRequested { question, .. } => {
                self.question(*question).map(|question| question.text.clone())
            }
            NoticeKind::InputProvided { question, .. } => {
                self.question(*question)?.answer.as_deref().map(text_of_input)
            }
            NoticeKind::RequesterMessage { number, .. } => {
                let mut sent = (1..).zip(&self.job.as_ref()?.messages);
                sent.find(|(sent, _)| sent == number).map(|(_, sent)| text_of_input(&sent.input))
            }
            _ => None,
        }
    }

    fn question(&self, number: u32) -> Option<&rialto_core::job::Question> {
        let asked = (1..).zip(&self.job.as_ref()?.questions);
        asked.into_iter().find(|(asked, _)| *asked == number).map(|(_, question)| question)
    }

    /// The number of the assignment.
    fn epoch(&self) -> Option<u32> {
        match &self.notice.news {
            NoticeKind::Assigned { epoch, .. }
            | NoticeKind::Unassigned { epoch, .. }
            | NoticeKind::InputProvided { epoch, .. }
            | NoticeKind::RequesterMessage { epoch, .. } => Some(*epoch),
            NoticeKind::Progress { report, .. } | NoticeKind::OriginalProgress { report, .. } => {
                Some(report.epoch)
            }
            _ => None,
        }
    }

    /// JSON text of the item.
    pub fn write(&self, engine: &Engine) -> String {
        let from = self.from().map(|from| engine.with_world(|world| address_of(world, from)));
        let text = self.text();
        let mut max = TEXT_MAX;
        loop {
            let item = self.write_with(from.as_deref(), text.as_deref(), max);
            // Escapes may make a text much longer.
            if max == 0 || item.chars().count() <= ITEM_MAX {
                return item;
            }
            max /= 2;
        }
    }

    fn write_with(&self, from: Option<&str>, text: Option<&str>, max: usize) -> String {
        let shown = text.map(|text| cut(text, max));
        let item = ObjectWriter::new()
            .integer("position", self.notice.position.cast_signed())
            .text("kind", kind_name(&self.notice.news))
            .text("at", &rfc3339::format_millis(self.notice.at))
            .maybe_text("from", from)
            .maybe_text("text", shown);
        let item =
            if shown.map(str::len) < text.map(str::len) { item.flag("cut", true) } else { item };
        item.maybe_uuid("job_id", self.job.as_ref().map(|job| job.uuid))
            .maybe_integer("epoch", self.epoch().map(i64::from))
            .finish()
    }
}

/// The text of `{"text":…}`, else the JSON itself.
fn text_of_input(json: &str) -> String {
    let read = ijson::read(json.as_bytes()).ok();
    let text = read.as_ref().and_then(|read| match read.value() {
        JsonValue::Object(members) => match &members[..] {
            [(name, value)] if name == "text" => Some(value),
            _ => None,
        },
        _ => None,
    });
    match text.map(ijson::Json::value) {
        Some(JsonValue::String(text)) => text.to_string(),
        _ => json.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rialto_core::alias::Protocol;
    use rialto_core::id::NoticeId;
    use rialto_core::time::Timestamp;

    use super::*;

    fn message(protocol: &str, body: &str) -> InboxItem {
        let protocol = Protocol::parse(protocol).expect("a protocol");
        let news =
            NoticeKind::Message { from: None, protocol, body: body.to_owned(), previous: None };
        let notice =
            Notice { id: NoticeId(1), to: None, position: 3, before: None, at: Timestamp(0), news };
        InboxItem { notice, job: None }
    }

    #[test]
    fn envelopes_show_their_text_and_other_messages_their_string_or_json() {
        let text = |protocol: &str, body: &str| message(protocol, body).text().expect("a text");
        assert_eq!(text("v1", r#""hi \"you\"""#), "hi \"you\"");
        assert_eq!(text("v1", r#"{"a":1.50}"#), r#"{"a":1.50}"#);
        assert_eq!(text("relay", r#"{"sender_id":"a@b","original_text":"hi"}"#), "hi");
        assert_eq!(text("relay", r#"["unverified",{"original_text":"hi"}]"#), "hi");
        assert_eq!(text_of_input(r#"{"text":"yes"}"#), "yes");
        assert_eq!(text_of_input(r#"{"text":"yes","x":1}"#), r#"{"text":"yes","x":1}"#);
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let of = |length: usize, c: &str| {
            let body = serde_json::Value::from(c.repeat(length)).to_string();
            let item = message("v1", &body);
            item.write_with(None, item.text().as_deref(), TEXT_MAX)
        };
        assert!(!of(TEXT_MAX, "é").contains("cut"));
        let long = of(TEXT_MAX + 1, "é");
        assert!(long.contains(&format!(r#""text":"{}","cut":true"#, "é".repeat(TEXT_MAX))));
    }
}
