//! Notices as an agent reads them, in its inbox and on its stream.

use rialto_core::id::AgentId;
use rialto_core::notice::{Notice, NoticeKind};
use rialto_engine::{Engine, Failure};
use rialto_protocols::kit::api_doc::{Nullable, Time};
use rialto_protocols::kit::raw_json;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::jobs::progress::ReportView;
use super::public_ids::PublicIds;
use super::response::format_time;

/// One notice, ready to be sent.
#[derive(Serialize, JsonSchema)]
pub struct NoticeView {
    pub position: u64,
    #[schemars(with = "NoticeName")]
    pub kind: &'static str,
    at: Time,
    /// The job it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Nullable<Uuid>")]
    job: Option<Option<Uuid>>,
    /// The number of the assignment.
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u32>,
    /// When an approval or an answer must be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Time>,
    /// When offers must be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    closes: Option<Time>,
    /// The sender of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Nullable<u64>")]
    from: Option<Option<u64>>,
    /// The message: any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    /// The id of an offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    offer: Option<u32>,
    /// The number of a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<u32>,
    /// The number of a message of the requester.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<u32>,
    #[serde(flatten)]
    report: Option<ReportView>,
}

rialto_protocols::words! {
    /// What a notice is about.
    NoticeName: "assigned" | "approval_wanted" | "accepted" | "ended" | "taken_back" | "queued"
        | "offers_wanted" | "offered" | "price_taken" | "offer_closed" | "progress"
        | "input_requested" | "input_provided" | "message" | "step" | "log_entry"
        | "requester_message"
}

/// Notices of an inbox after a position, oldest first.
pub async fn load_after(
    engine: &Engine,
    agent: AgentId,
    position: u64,
    limit: usize,
) -> Result<Vec<NoticeView>, Failure> {
    let notices = engine.load_notices(agent, position, limit).await?;
    let jobs = notices.iter().filter_map(|notice| notice.news.job());
    let refs = PublicIds::load(engine, jobs, []).await?;
    Ok(notices.iter().map(|notice| NoticeView::of(notice, &refs)).collect())
}

impl NoticeView {
    fn of(notice: &Notice, refs: &PublicIds) -> Self {
        let mut view = Self {
            position: notice.position,
            kind: kind_name(&notice.news),
            at: format_time(notice.at),
            job: notice.news.job().map(|id| refs.job(id)),
            epoch: None,
            until: None,
            closes: None,
            from: None,
            body: None,
            offer: None,
            question: None,
            message: None,
            report: None,
        };
        match &notice.news {
            NoticeKind::Assigned { epoch, .. } | NoticeKind::Unassigned { epoch, .. } => {
                view.epoch = Some(*epoch);
            }
            NoticeKind::ApprovalRequested { until, .. } => view.until = Some(format_time(*until)),
            NoticeKind::OfferRequested { closes, .. } => view.closes = Some(format_time(*closes)),
            NoticeKind::Message { from, body, .. } => {
                view.from = Some(from.map(|from| from.0));
                view.body = Some(raw_json::verbatim(body));
            }
            NoticeKind::Progress { report, .. } | NoticeKind::OriginalProgress { report, .. } => {
                view.epoch = Some(report.epoch);
                view.report = Some(ReportView::of(report));
            }
            NoticeKind::InputRequested { question, until, .. } => {
                view.question = Some(*question);
                view.until = Some(format_time(*until));
            }
            NoticeKind::InputProvided { epoch, question, .. } => {
                view.epoch = Some(*epoch);
                view.question = Some(*question);
            }
            NoticeKind::OfferReceived { place, .. }
            | NoticeKind::PriceAgreed { place, .. }
            | NoticeKind::OfferLost { place, .. } => view.offer = Some(*place),
            NoticeKind::RequesterMessage { epoch, number, .. } => {
                view.epoch = Some(*epoch);
                view.message = Some(*number);
            }
            NoticeKind::Accepted { .. }
            | NoticeKind::Ended { .. }
            | NoticeKind::Step { .. }
            | NoticeKind::LogEntry { .. }
            | NoticeKind::Queued { .. } => {}
        }
        view
    }
}

/// The public name of a notice kind.
pub fn kind_name(news: &NoticeKind) -> &'static str {
    match news {
        NoticeKind::Assigned { .. } => "assigned",
        NoticeKind::ApprovalRequested { .. } => "approval_wanted",
        NoticeKind::Accepted { .. } => "accepted",
        NoticeKind::Ended { .. } => "ended",
        NoticeKind::Unassigned { .. } => "taken_back",
        NoticeKind::Queued { .. } => "queued",
        NoticeKind::OfferRequested { .. } => "offers_wanted",
        NoticeKind::OfferReceived { .. } => "offered",
        NoticeKind::PriceAgreed { .. } => "price_taken",
        NoticeKind::OfferLost { .. } => "offer_closed",
        NoticeKind::Progress { .. } | NoticeKind::OriginalProgress { .. } => "progress",
        NoticeKind::InputRequested { .. } => "input_requested",
        NoticeKind::InputProvided { .. } => "input_provided",
        NoticeKind::Message { .. } => "message",
        NoticeKind::Step { .. } => "step",
        NoticeKind::LogEntry { .. } => "log_entry",
        NoticeKind::RequesterMessage { .. } => "requester_message",
    }
}
