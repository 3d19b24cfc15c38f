//! Notices as an agent reads them, in its inbox and on its stream.

use rialto_core::id::AgentId;
use rialto_core::notice::{News, Notice};
use rialto_engine::{Engine, Failure};
use rialto_protocols::kit::raw_json;

use super::response::time;
use super::json_object::Members;
use super::public_ids::Refs;

/// One notice, ready to be sent.
pub struct Told {
    pub position: u64,
    pub kind: &'static str,
    pub members: Members,
}

/// Notices of an inbox after a position, oldest first.
pub async fn after(
    engine: &Engine,
    agent: AgentId,
    position: u64,
    limit: usize,
) -> Result<Vec<Told>, Failure> {
    let notices = engine.notices_of(agent, position, limit).await?;
    let jobs = notices.iter().filter_map(|notice| notice.news.job());
    let refs = Refs::look_up(engine, jobs, []).await?;
    Ok(notices.iter().map(|notice| Told::of(notice, &refs)).collect())
}

impl Told {
    fn of(notice: &Notice, refs: &Refs) -> Self {
        let kind = kind(&notice.news);
        let members = Members::default()
            .with("position", notice.position)
            .with("kind", kind)
            .with("at", time(notice.at));
        let members = match notice.news.job() {
            Some(id) => members.with("job", refs.job(id)),
            None => members,
        };
        let members = match &notice.news {
            News::Assigned { epoch, .. } | News::TakenBack { epoch, .. } => {
                members.with("epoch", epoch)
            }
            News::ApprovalWanted { until, .. } => members.with("until", time(*until)),
            News::OffersWanted { closes, .. } => members.with("closes", time(*closes)),
            News::Message { from, body, .. } => {
                members.with("from", from.map(|from| from.0)).with("body", raw_json::verbatim(body))
            }
            News::Offered { place, .. }
            | News::PriceTaken { place, .. }
            | News::OfferClosed { place, .. } => members.with("offer", place),
            News::Accepted { .. } | News::Ended { .. } | News::Queued { .. } => members,
        };
        Self { position: notice.position, kind, members }
    }
}

/// The public name of a notice kind.
pub fn kind(news: &News) -> &'static str {
    match news {
        News::Assigned { .. } => "assigned",
        News::ApprovalWanted { .. } => "approval_wanted",
        News::Accepted { .. } => "accepted",
        News::Ended { .. } => "ended",
        News::TakenBack { .. } => "taken_back",
        News::Queued { .. } => "queued",
        News::OffersWanted { .. } => "offers_wanted",
        News::Offered { .. } => "offered",
        News::PriceTaken { .. } => "price_taken",
        News::OfferClosed { .. } => "offer_closed",
        News::Message { .. } => "message",
    }
}
