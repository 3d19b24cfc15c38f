//! Publishing: a step becomes a record, and its messages get their numbers.

use std::sync::Arc;

use super::{MarketRecord, MarketRecorder, MarketStep, OrderOutcome, RecordContent};
use crate::alias::{ClaimTarget, Protocol, claim};
use crate::draft::Draft;
use crate::id::{NoticeId, PostingId};
use crate::job::{Job, Selection, State};
use crate::notice::{Notice, NoticeKind};

/// The notices of this step that concern the market: those to its agents, and assignments of its
/// jobs to others.
fn market_notices(draft: &Draft<'_>, market: Protocol) -> Vec<Arc<Notice>> {
    let ours = |notice: &&Arc<Notice>| {
        let agent = notice.to.and_then(|to| draft.agent(to));
        agent.is_some_and(|agent| agent.home == market)
    };
    let own = draft.notices().iter().filter(ours).cloned();
    own.chain(external_assignments(draft, market)).collect()
}

/// Assignments of the market's jobs to agents of other protocols in this step, whenever each of
/// them is notified.
fn external_assignments(draft: &Draft<'_>, market: Protocol) -> impl Iterator<Item = Arc<Notice>> {
    draft.changed_jobs().filter(move |job| job.request.origin == market).filter_map(move |job| {
        let before = draft.world.job(job.id).map_or(0, |before| before.epoch);
        let worker = job.active_worker().filter(|_| job.epoch > before)?;
        draft.agent(worker).filter(|worker| worker.home != market)?;
        let news = NoticeKind::Assigned { job: job.id, epoch: job.epoch };
        let (id, to, at) = (NoticeId::default(), Some(worker), draft.now);
        Some(Arc::new(Notice { id, to, position: 0, before: None, at, news }))
    })
}

/// Publishes the result of an order. If an order may close an auction, its notices to others are a
/// separate step: the bidder's answer must not reveal the winner.
pub(super) fn publish_order(
    draft: &mut Draft<'_>,
    (market, recorder): (Protocol, &dyn MarketRecorder),
    order: (&str, OrderOutcome<'_>),
    closes: bool,
) -> PostingId {
    let notices = market_notices(draft, market);
    let apart = closes && closed_auctions(draft, market).next().is_some();
    let (own, others) = if apart { (Vec::new(), notices) } else { (notices, Vec::new()) };
    let posting = write_record(draft, recorder, Some(order), own);
    if apart {
        // The result of the auction is public, while the reply to the bidder is shown to it alone.
        publish_step(draft, market, recorder, others);
    }
    posting
}

/// Publishes what happened without an order, if it concerns the market.
pub fn publish_without_order(draft: &mut Draft<'_>) {
    let world = draft.world;
    for (market, recorder) in &world.markets {
        let notices = market_notices(draft, *market);
        // An auction may end without any notice to the market's agents; its end is published
        // nevertheless.
        if !notices.is_empty() || closed_auctions(draft, *market).next().is_some() {
            publish_step(draft, *market, &**recorder, notices);
        }
    }
}

fn publish_step(
    draft: &mut Draft<'_>,
    market: Protocol,
    recorder: &dyn MarketRecorder,
    notices: Vec<Arc<Notice>>,
) {
    let posting = write_record(draft, recorder, None, notices);
    // The result of an auction is published once. A repeated auction is separate.
    let first = closed_auctions(draft, market)
        .filter(|job| job.candidates.round.is_none_or(|round| round.number == 1));
    let names: Vec<_> =
        first.map(|job| claim::closed_auction(market, &job.request.foreign_id)).collect();
    for name in names {
        draft.add_claim(name, ClaimTarget::MarketRecord(posting));
    }
}

/// Auctions of the market that this step closed.
fn closed_auctions<'d>(draft: &'d Draft<'_>, market: Protocol) -> impl Iterator<Item = &'d Job> {
    draft.changed_jobs().filter(move |job| {
        let auction =
            matches!(job.selection, Selection::Auction { .. }) && job.request.origin == market;
        let before = draft.world.job(job.id).map(|before| before.state);
        auction && before == Some(State::Negotiating) && job.state != State::Negotiating
    })
}

fn write_record(
    draft: &mut Draft<'_>,
    recorder: &dyn MarketRecorder,
    order: Option<(&str, OrderOutcome<'_>)>,
    notices: Vec<Arc<Notice>>,
) -> PostingId {
    let id = draft.next.market_record;
    let written = recorder.write(&MarketStep {
        draft,
        order: order.map(|(_, outcome)| outcome),
        notices,
        order_count: draft.next.market_orders,
        first_message: draft.next.market_messages,
    });
    draft.next.market_record = id.next();
    draft.next.market_messages += written.messages;
    let of = order.map(|(name, _)| name.to_owned());
    let RecordContent { text, shown, question, .. } = written;
    draft.add_market_record(MarketRecord {
        id,
        at: draft.now,
        order_id: of,
        is_public: shown,
        text,
        query: question,
    });
    id
}
