//! Price agreement: prices of agents that work for a requester of another protocol.
//!
//! Such a requester cannot choose among offers. So the hub accepts the first price within the bid.
//! In an auction, the hub makes the offer of an agent with a fixed price.

use super::offer::{self, InvitedTerms};
use super::{AgreedPrice, Job, Offer, Requester, Selection, State, acceptance, grace_period};
use crate::answer::Answer;
use crate::command::JobRef;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;

/// A worker of another protocol names its price: for a job assigned to it, or in an auction.
pub fn name_price(
    draft: &mut Draft<'_>,
    by: AgentId,
    job: Job,
    terms: &InvitedTerms,
) -> Result<Answer, Refusal> {
    if let Requester::Agent(requester) = job.request.requester
        && draft.agent(requester).is_some_and(|agent| agent.blocks(by))
    {
        return Err(Refusal::Blocked);
    }
    match job.selection {
        // One sealed bid. The last expected one closes the auction.
        Selection::Auction { .. } if job.state == State::Negotiating => {
            let price = job.payment.price_step.round_price(terms.price);
            offer::place_bid(draft, &JobRef::Id(job.id), by, price, &terms.name)
        }
        Selection::Offers if job.state == State::Negotiating => {
            let price = job.payment.price_step.round_price(terms.price);
            let validity = (&*terms.name, terms.valid_for);
            offer::make_offer(draft, &JobRef::Id(job.id), by, price, validity)
        }
        _ => agree(draft, by, job, terms),
    }
}

/// The price of a job that is already assigned.
fn agree(
    draft: &mut Draft<'_>,
    by: AgentId,
    mut job: Job,
    terms: &InvitedTerms,
) -> Result<Answer, Refusal> {
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
    let price = job.payment.price_step.round_price(terms.price);
    if price > limit {
        return Err(Refusal::BudgetTooLow { price: terms.price });
    }
    let own = Some(terms.price).filter(|own| *own < price);
    if let Some(turn) = &mut job.assignment {
        (turn.price, turn.own, turn.price_open) = (price, own, false);
    }
    job.set_agreed_price(AgreedPrice {
        worker: by,
        price,
        unrounded_price: own,
        price_open: false,
    });
    let (at, valid_until) = (draft.now, draft.now.plus(terms.valid_for));
    let place = u32::try_from(job.candidates.offers.len()).unwrap_or(u32::MAX);
    let (name, eta) = (terms.name.clone(), Some(terms.eta));
    let (price, told_at) = (terms.price, None);
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
    let job = draft.put_job(job);
    Ok(Answer::Job { job, repeated: false })
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
