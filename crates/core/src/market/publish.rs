//! Publishing: a step becomes a record, and its messages get their numbers.

use std::sync::Arc;

use super::{Posting, Scribe, Step, Written};
use crate::alias::{Protocol, Target, claim};
use crate::answer::Answer;
use crate::draft::Draft;
use crate::id::{NoticeId, PostingId};
use crate::job::{Job, Selection, State};
use crate::notice::{News, Notice};
use crate::refusal::Refusal;

/// The notices of this step that concern the market: those to its agents, and assignments of its
/// jobs to others.
fn told(draft: &Draft<'_>, market: Protocol) -> Vec<Arc<Notice>> {
    let ours = |notice: &&Arc<Notice>| {
        let agent = notice.to.and_then(|to| draft.agent(to));
        agent.is_some_and(|agent| agent.home == market)
    };
    let own = draft.notices().iter().filter(ours).cloned();
    own.chain(given_away(draft, market)).collect()
}

/// Assignments of the market's jobs to agents of other protocols in this step, whenever each of
/// them is notified.
fn given_away(draft: &Draft<'_>, market: Protocol) -> impl Iterator<Item = Arc<Notice>> {
    draft.touched_jobs().filter(move |job| job.origin == market).filter_map(move |job| {
        let before = draft.world.job(job.id).map_or(0, |before| before.epoch);
        let worker = job.in_hand_of().filter(|_| job.epoch > before)?;
        draft.agent(worker).filter(|worker| worker.home != market)?;
        let news = News::Assigned { job: job.id, epoch: job.epoch };
        let (id, to, at) = (NoticeId::default(), Some(worker), draft.now);
        Some(Arc::new(Notice { id, to, position: 0, before: None, at, news }))
    })
}

/// Publishes the result of an order. If an order may close an auction, its notices to others are a
/// separate step: the bidder's answer must not reveal the winner.
pub(super) fn order(
    draft: &mut Draft<'_>,
    (market, scribe): (Protocol, &dyn Scribe),
    id: &str,
    outcome: Result<&Answer, &Refusal>,
    closes: bool,
) -> PostingId {
    let notices = told(draft, market);
    let apart = closes && closed(draft, market).next().is_some();
    let (own, others) = if apart { (Vec::new(), notices) } else { (notices, Vec::new()) };
    let posting = write(draft, scribe, Some((id, outcome)), own);
    if apart {
        // The result of the auction is public, while the bidder's own recorder would show it only
        // to the bidder.
        let public = draft.world.market.clone();
        let scribe = public.as_ref().map_or(scribe, |public| &*public.scribe);
        by_itself(draft, market, scribe, others);
    }
    posting
}

/// Publishes what happened without an order, if it concerns the market.
pub fn rest(draft: &mut Draft<'_>) {
    let Some(market) = draft.world.market.clone() else { return };
    let notices = told(draft, market.protocol);
    // An auction may end without any notice to the market's agents; its end is published
    // nevertheless.
    if !notices.is_empty() || closed(draft, market.protocol).next().is_some() {
        by_itself(draft, market.protocol, &*market.scribe, notices);
    }
}

fn by_itself(
    draft: &mut Draft<'_>,
    market: Protocol,
    scribe: &dyn Scribe,
    notices: Vec<Arc<Notice>>,
) {
    let posting = write(draft, scribe, None, notices);
    // The result of an auction is published once. A repeated auction is separate.
    let first = closed(draft, market).filter(|job| job.round.is_none_or(|round| round.number == 1));
    let names: Vec<_> = first.map(|job| claim::closed(market, &job.foreign)).collect();
    for name in names {
        draft.claim(name, Target::Posting(posting));
    }
}

/// Auctions of the market that this step closed.
fn closed<'d>(draft: &'d Draft<'_>, market: Protocol) -> impl Iterator<Item = &'d Job> {
    draft.touched_jobs().filter(move |job| {
        let auction = matches!(job.selection, Selection::Auction { .. }) && job.origin == market;
        let before = draft.world.job(job.id).map(|before| before.state);
        auction && before == Some(State::Negotiating) && job.state != State::Negotiating
    })
}

fn write(
    draft: &mut Draft<'_>,
    scribe: &dyn Scribe,
    order: Option<(&str, Result<&Answer, &Refusal>)>,
    notices: Vec<Arc<Notice>>,
) -> PostingId {
    let id = draft.next.posting;
    let written = scribe.write(&Step {
        draft,
        outcome: order.map(|(_, outcome)| outcome),
        notices,
        posts: draft.next.posts,
        first_message: draft.next.sent,
    });
    draft.next.posting = id.next();
    draft.next.sent += written.messages;
    let of = order.map(|(name, _)| name.to_owned());
    let Written { text, shown, question, .. } = written;
    draft.posting(Posting { id, at: draft.now, of, shown, text, question });
    id
}
