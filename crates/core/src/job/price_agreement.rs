//! Price agreement: prices of agents that work for a requester of another protocol.
//!
//! Such a requester cannot choose among offers. So the hub accepts the first price within the bid.
//! In an auction, the hub makes the offer of an agent with a fixed price.

use super::{
    AgreedPrice, Job, Offer, Requester, Selection, State, acceptance, grace_period, offer,
};
use crate::command::JobRef;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::signed_order::MakeOffer;

/// A worker of another protocol names its price: for a job assigned to it, or in an auction.
pub fn name_price(
    draft: &mut Draft<'_>,
    by: AgentId,
    name: &str,
    job: Job,
    order: &MakeOffer,
) -> Result<Job, Refusal> {
    if let Requester::Agent(requester) = job.request.requester
        && draft.agent(requester).is_some_and(|agent| agent.blocks(by))
    {
        return Err(Refusal::Blocked);
    }
    match job.selection {
        Selection::Auction { .. } if job.state == State::Negotiating => {
            bid(draft, by, name, &job, order)
        }
        Selection::Offers if job.state == State::Negotiating => {
            let (price, terms) =
                (job.payment.price_step.round_price(order.price), (name, order.valid_for));
            offer::make_offer(draft, &JobRef::Id(job.id), by, price, terms)?;
            draft.job(job.id).cloned().ok_or(Refusal::NotFound)
        }
        _ => agree(draft, by, name, job, order),
    }
}

/// One sealed bid. The last expected one closes the auction.
fn bid(
    draft: &mut Draft<'_>,
    by: AgentId,
    name: &str,
    job: &Job,
    order: &MakeOffer,
) -> Result<Job, Refusal> {
    offer::place_bid(
        draft,
        &JobRef::Id(job.id),
        by,
        job.payment.price_step.round_price(order.price),
        name,
    )?;
    draft.job(job.id).cloned().ok_or(Refusal::NotFound)
}

/// The price of a job that is already assigned.
fn agree(
    draft: &mut Draft<'_>,
    by: AgentId,
    name: &str,
    mut job: Job,
    order: &MakeOffer,
) -> Result<Job, Refusal> {
    let wrong = Refusal::WrongState { state: job.state };
    let turn = job.assignment.filter(|turn| turn.worker == by).ok_or(Refusal::NotFound)?;
    // One price is named per job: a worker that won with it, or deferred the job since, cannot
    // raise it.
    let named_before = job.candidates.offers.iter().any(|offer| offer.by == by);
    if job.state != State::Assigned || named_before {
        return Err(wrong);
    }
    // A worker that listed a price when it was chosen cannot ask for more, whatever it lists now.
    let limit = if turn.price_open { job.max_payment() } else { turn.price };
    let price = job.payment.price_step.round_price(order.price);
    if price > limit {
        return Err(Refusal::BudgetTooLow { price: order.price });
    }
    let own = Some(order.price).filter(|own| *own < price);
    if let Some(turn) = &mut job.assignment {
        (turn.price, turn.own, turn.price_open) = (price, own, false);
    }
    job.set_agreed_price(AgreedPrice {
        worker: by,
        price,
        unrounded_price: own,
        price_open: false,
    });
    let (at, valid_until) = (draft.now, draft.now.plus(order.valid_for));
    let place = u32::try_from(job.candidates.offers.len()).unwrap_or(u32::MAX);
    let (name, eta) = (name.to_owned(), Some(order.eta));
    let (price, told_at) = (order.price, None);
    job.candidates.offers.push(Offer {
        by,
        name,
        price,
        eta,
        at,
        valid_until,
        inbox_position: told_at,
    });
    draft.add_event(Event::JobOffered { job: job.id, by });
    if job.acceptance.accepted_at.is_none() {
        acceptance::mark_accepted(draft, &mut job, None);
        acceptance::notify_accepted(draft, &job);
    }
    grace_period::mark_received(&mut job, draft.now);
    job.state = State::Running;
    job.pending = true;
    draft.add_event(Event::JobStarted { job: job.id });
    let url = draft.agent(by).and_then(|agent| agent.delivery_url());
    draft.notify(Some(by), NoticeKind::PriceAgreed { job: job.id, place }, url);
    draft.put_job(job.clone());
    Ok(job)
}

/// The fixed price of an agent invited to another protocol's auction; `None` if it names its price.
pub fn fixed_price(draft: &Draft<'_>, job: &Job, agent: AgentId) -> Option<Credits> {
    let invited = draft.agent(agent).filter(|agent| agent.home != job.request.origin)?;
    let skill = invited.skill_for(job).filter(|skill| !skill.by_offer)?;
    Some(job.payment.price_step.round_price(skill.price))
}

/// Makes the offer of an agent with a fixed price. It is valid until the job's deadline.
pub fn add_fixed_price_offer(draft: &mut Draft<'_>, job: &mut Job, agent: AgentId, price: Credits) {
    let (at, valid_until, name) = (draft.now, job.request.deadline, String::new());
    job.candidates.offers.push(Offer {
        by: agent,
        name,
        price,
        eta: None,
        at,
        valid_until,
        inbox_position: None,
    });
    draft.add_event(Event::JobOffered { job: job.id, by: agent });
}
