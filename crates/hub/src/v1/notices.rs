//! Notices as an agent reads them, in its inbox and on its stream.

use rialto_core::id::AgentId;
use rialto_core::notice::{Notice, NoticeKind};
use rialto_engine::{Engine, Failure};
use rialto_protocols::kit::raw_json;

use super::jobs::progress::report_members;
use super::json_object::JsonObject;
use super::public_ids::PublicIds;
use super::response::format_time;

/// One notice, ready to be sent.
pub struct NoticeView {
    pub position: u64,
    pub kind: &'static str,
    pub members: JsonObject,
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
        let kind = kind_name(&notice.news);
        let members = JsonObject::default()
            .with("position", notice.position)
            .with("kind", kind)
            .with("at", format_time(notice.at));
        let members = match notice.news.job() {
            Some(id) => members.with("job", refs.job(id)),
            None => members,
        };
        let members = match &notice.news {
            NoticeKind::Assigned { epoch, .. } | NoticeKind::Unassigned { epoch, .. } => {
                members.with("epoch", epoch)
            }
            NoticeKind::ApprovalRequested { until, .. } => {
                members.with("until", format_time(*until))
            }
            NoticeKind::OfferRequested { closes, .. } => {
                members.with("closes", format_time(*closes))
            }
            NoticeKind::Message { from, body, .. } => {
                members.with("from", from.map(|from| from.0)).with("body", raw_json::verbatim(body))
            }
            NoticeKind::Progress { report, .. } => {
                let members = members.with("number", report.number).with("epoch", report.epoch);
                report_members(members, &report.update)
            }
            NoticeKind::InputRequested { question, until, .. } => {
                members.with("question", question).with("until", format_time(*until))
            }
            NoticeKind::InputProvided { epoch, question, .. } => {
                members.with("epoch", epoch).with("question", question)
            }
            NoticeKind::OfferReceived { place, .. }
            | NoticeKind::PriceAgreed { place, .. }
            | NoticeKind::OfferLost { place, .. } => members.with("offer", place),
            NoticeKind::Accepted { .. } | NoticeKind::Ended { .. } | NoticeKind::Queued { .. } => {
                members
            }
        };
        Self { position: notice.position, kind, members }
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
        NoticeKind::Progress { .. } => "progress",
        NoticeKind::InputRequested { .. } => "input_requested",
        NoticeKind::InputProvided { .. } => "input_provided",
        NoticeKind::Message { .. } => "message",
    }
}
