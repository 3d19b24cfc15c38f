//! Hops: the crossings of a job between its two parties: the request, the newest progress and
//! question, and the result.

use rialto_core::alias::Protocol;
use rialto_core::job::Question;
use rialto_core::job::progress::{Fraction, ProgressUpdate};
use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_core::world::World;

use super::message_view::{FieldParts, MessageView};
use super::note::{Note, compare_fields};
use super::part::Part;
use super::{FieldMap, TracedJob};
use crate::adapter::HubContext;
use crate::kit::object::ObjectWriter;

/// One crossing.
#[derive(Clone, Debug)]
pub struct Hop {
    pub kind: HopKind,
    pub from: Protocol,
    pub to: Protocol,
    pub at: Timestamp,
    /// The message as sent; `None` where the hub wrote it because the party had sent nothing.
    pub sent: Option<MessageView>,
    /// The message as received.
    pub received: MessageView,
}

/// What crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopKind {
    Request,
    Progress,
    Question,
    Result,
}

impl HopKind {
    /// Its name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Progress => "progress",
            Self::Question => "question",
            Self::Result => "result",
        }
    }
}

impl Hop {
    /// What became of every field.
    pub fn notes(&self) -> Vec<Note> {
        let nothing =
            || MessageView { protocol: self.from, payload: String::new(), fields: Vec::new() };
        compare_fields(&self.sent.clone().unwrap_or_else(nothing), &self.received)
    }
}

/// The field map of a protocol the hub speaks.
pub(super) fn field_map_of(protocol: Protocol) -> Option<&'static dyn FieldMap> {
    crate::ALL.iter().find(|adapter| adapter.id() == protocol).map(|adapter| adapter.field_map())
}

/// The hops of a job so far: none before it has a worker.
pub fn hops(context: &HubContext, shown: TracedJob<'_>) -> Vec<Hop> {
    let job = shown.job;
    let home = |world: &World| job.worker().and_then(|id| world.agent(id)).map(|agent| agent.home);
    let Some(home) = context.engine.with_world(home) else { return Vec::new() };
    let messages = |of| Some(context.protocol(of)?.clone().job_messages(context));
    let (Some(requester), Some(worker)) = (messages(job.request.origin), messages(home)) else {
        return Vec::new();
    };
    let request = worker.request_received(shown).map(|received| Hop {
        kind: HopKind::Request,
        from: job.request.origin,
        to: home,
        at: job.assignment.map_or(job.request.opened_at, |turn| turn.since),
        sent: Some(requester.request_sent(shown)),
        received,
    });
    let to_requester = |kind, at, sent: MessageView, received: Option<MessageView>| {
        let (from, to) = (home, job.request.origin);
        let nothing = || MessageView { protocol: to, payload: String::new(), fields: Vec::new() };
        let received = received.unwrap_or_else(nothing);
        Hop { kind, from, to, at, sent: Some(sent), received }
    };
    let progress = shown.report.map(|logged| {
        let received = requester.progress_received(shown, logged);
        let sent = report_sent(home, &logged.report.update);
        to_requester(HopKind::Progress, logged.at, sent, received)
    });
    let question = job.questions.last().map(|question| {
        let received = requester.question_received(shown, question);
        to_requester(HopKind::Question, question.asked_at, question_sent(home, question), received)
    });
    let result = job.ended_at.and_then(|at| {
        let received = requester.result_received(shown)?;
        let sent = worker.result_sent(shown);
        Some(Hop { kind: HopKind::Result, from: home, to: job.request.origin, at, sent, received })
    });
    request.into_iter().chain(progress).chain(question).chain(result).collect()
}

/// A report in the neutral form in which every worker can send it.
fn report_sent(home: Protocol, update: &ProgressUpdate) -> MessageView {
    const FIELDS: FieldParts = &[
        ("/fraction", Part::Progress),
        ("/text", Part::Progress),
        ("/artifact", Part::PartialOutput),
    ];
    let fraction = update.fraction.map(fraction_text);
    let part = update.part.as_ref().map(|part| part.content.as_str());
    let report = ObjectWriter::new()
        .maybe_raw("fraction", fraction.as_deref())
        .maybe_text("text", update.text.as_deref())
        .maybe_raw("artifact", part)
        .finish();
    MessageView::from_json(home, report, FIELDS)
}

/// A question in the neutral form in which every worker can send it.
fn question_sent(home: Protocol, question: &Question) -> MessageView {
    const FIELDS: FieldParts = &[("/text", Part::Question), ("/schema", Part::Question)];
    let asked = ObjectWriter::new()
        .text("text", &question.text)
        .maybe_raw("schema", question.schema.as_deref())
        .finish();
    MessageView::from_json(home, asked, FIELDS)
}

/// A question in the member `question` of a job, as its requester gets it.
pub fn question_member(protocol: Protocol, question: &Question) -> MessageView {
    const FIELDS: FieldParts =
        &[("/question/text", Part::Question), ("/question/schema", Part::Question)];
    let asked = question_sent(protocol, question).payload;
    let shown = ObjectWriter::new().raw("question", &asked).finish();
    MessageView::from_json(protocol, shown, FIELDS)
}

/// A fraction as a decimal number between 0 and 1.
pub fn fraction_text(fraction: Fraction) -> String {
    Credits::from_micros(i64::from(fraction.millionths())).to_text(0)
}
