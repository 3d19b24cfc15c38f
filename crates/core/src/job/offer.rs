//! Offers: prices asked by workers, in a sealed auction or to be accepted by the requester.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Cause, Job, Requester, Selection, State, end, open, select, work};
use crate::answer::Answer;
use crate::command::JobRef;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::money::Credits;
use crate::notice::News;
use crate::refusal::Refusal;
use crate::time::{Millis, Timestamp};
use crate::world::skills::Candidate;

/// Offers one worker may make on one job.
const OFFERS_PER_AGENT_MAX: usize = 4;
/// Workers invited to one auction.
const INVITED_MAX: usize = 256;

/// One price asked for one job. It binds whoever made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    pub by: AgentId,
    pub price: Credits,
    pub at: Timestamp,
    pub valid_until: Timestamp,
}

/// Opens the sealed auction and tells those who may bid; somebody must be there.
pub fn invite(draft: &mut Draft<'_>, job: &mut Job) -> Result<(), Refusal> {
    let Selection::Auction { closes } = job.selection else { return Ok(()) };
    let all = select::candidates(draft, job);
    let invited: Vec<AgentId> = all.take(INVITED_MAX).map(|one| one.agent).collect();
    if invited.is_empty() {
        return Err(select::why_nobody(draft.world, job));
    }
    job.state = State::Negotiating;
    job.pending = true;
    for agent in invited {
        draft.tell(Some(agent), News::OffersWanted { job: job.id, closes }, None);
    }
    Ok(())
}

/// A worker names its price. What the hub received when decides, and a closed set never reopens.
pub fn make(
    draft: &mut Draft<'_>,
    wanted: &JobRef,
    by: AgentId,
    price: Credits,
    valid_for: Millis,
) -> Result<Answer, Refusal> {
    let mut job = work::find(draft, wanted).ok_or(Refusal::NotYours)?;
    let able = draft.agent(by).is_some_and(|one| one.active && one.skill(&job.skill).is_some());
    let own = match &job.requester {
        Requester::Agent(agent) => *agent == by,
        Requester::Guest(_) => false,
    };
    if !able || own || job.declined.contains(&by) {
        return Err(Refusal::NotYours);
    }
    let closed = matches!(job.selection, Selection::Auction { closes } if draft.now >= closes);
    if job.state != State::Negotiating || closed {
        return Err(Refusal::WrongState { is: job.state });
    }
    if price > job.purse() {
        return Err(Refusal::BudgetTooLow { price });
    }
    if job.offers.iter().filter(|offer| offer.by == by).count() >= OFFERS_PER_AGENT_MAX {
        return Err(Refusal::AtCapacity);
    }
    job.offers.push(Offer { by, price, at: draft.now, valid_until: draft.now.plus(valid_for) });
    draft.event(Event::JobOffered { job: job.id, by });
    draft.put_job(job.clone());
    Ok(Answer::Job { job: Arc::new(job), repeated: false })
}

/// The requester takes one worker's newest offer.
pub fn accept(
    draft: &mut Draft<'_>,
    wanted: &JobRef,
    by: AgentId,
    from: AgentId,
) -> Result<Answer, Refusal> {
    let mut job =
        work::find(draft, wanted).filter(|job| job.asked_by(by)).ok_or(Refusal::NotYours)?;
    // The bids of an auction are sealed: nobody picks one by hand.
    if job.state != State::Negotiating || matches!(job.selection, Selection::Auction { .. }) {
        return Err(Refusal::WrongState { is: job.state });
    }
    let newest = job.offers.iter().rev().find(|offer| offer.by == from);
    let offer = *newest.ok_or(Refusal::NotYours)?;
    if draft.now >= offer.valid_until {
        return Err(Refusal::OfferExpired);
    }
    open::assign(draft, &mut job, Candidate { agent: offer.by, price: offer.price });
    draft.put_job(job.clone());
    Ok(Answer::Job { job: Arc::new(job), repeated: false })
}

/// The lowest price that still binds somebody; equal prices go to who registered first.
pub fn lowest(draft: &Draft<'_>, job: &Job) -> Option<Candidate> {
    let there = |by: AgentId| draft.agent(by).is_some_and(|agent| agent.active);
    let binding = |offer: &&Offer| {
        draft.now < offer.valid_until && there(offer.by) && !job.declined.contains(&offer.by)
    };
    let lowest = job.offers.iter().filter(binding).min_by_key(|offer| (offer.price, offer.by));
    lowest.map(|offer| Candidate { agent: offer.by, price: offer.price })
}

/// Closes a sealed auction: the lowest offer wins.
pub fn close(draft: &mut Draft<'_>, mut job: Job) -> Result<Answer, Refusal> {
    match lowest(draft, &job) {
        Some(winner) => open::assign(draft, &mut job, winner),
        None if job.policy.queue_unmatched => open::queue(draft, &mut job),
        None => {
            let text = Some("nobody made an offer".to_owned());
            return end::fail(draft, job, State::Failed, Cause::NobodyLeft, text);
        }
    }
    draft.put_job(job.clone());
    Ok(Answer::Job { job: Arc::new(job), repeated: false })
}
