//! Publishing: a step becomes a posting, and its messages get their numbers.

use std::sync::Arc;

use super::{Posting, Scribe, Step};
use crate::alias::{Protocol, Target, claim};
use crate::answer::Answer;
use crate::draft::Draft;
use crate::id::PostingId;
use crate::job::{Job, Selection, State};
use crate::notice::{News, Notice};
use crate::refusal::Refusal;

/// The market's own part of what was told in this step: what its agents are told, and who is given its
/// work, of whatever protocol.
fn told(draft: &Draft<'_>, market: Protocol) -> Vec<Arc<Notice>> {
    let ours = |notice: &&Arc<Notice>| {
        let agent = notice.to.and_then(|to| draft.agent(to));
        let given = match notice.news {
            News::Assigned { job, .. } => draft.job(job).is_some_and(|job| job.origin == market),
            _ => false,
        };
        given || agent.is_some_and(|agent| agent.home == market)
    };
    draft.notices().iter().filter(ours).cloned().collect()
}

/// Publishes what came of an order. What a deed that may close an auction tells others is a step of its
/// own: the bidder's answer must not say who won.
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
        by_itself(draft, market, scribe, others);
    }
    posting
}

/// Publishes what happened without an order, if the market has a word in it.
pub fn rest(draft: &mut Draft<'_>) {
    let Some(market) = draft.world.market.clone() else { return };
    let notices = told(draft, market.protocol);
    // An auction may end without a word to anybody of the market, and has ended all the same.
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
    // What came of an auction is said once; one held again is another matter.
    let first = closed(draft, market).filter(|job| job.round.is_none_or(|round| round.number == 1));
    let names: Vec<_> = first.map(|job| claim::closed(market, &job.foreign)).collect();
    for name in names {
        draft.claim(name, Target::Posting(posting));
    }
}

/// Auctions of the market that this step ended.
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
    let (at, shown, text) = (draft.now, written.shown, written.text);
    draft.posting(Posting { id, at, of, shown, text });
    id
}
