//! Offers: prices named by workers, in a sealed auction or for the requester to accept.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::readiness::{self, Readiness};
use super::{
    AuctionRound, Cause, Job, Requester, Selection, State, acceptance, end, open, price_agreement,
    request, select, work,
};
use crate::agent::{key_limits, market_totals};
use crate::alias::{ClaimTarget, claim};
use crate::answer::Answer;
use crate::command::{AcceptOffer, AcceptedOffer, ExternalRef, JobRef, OfferRef, PaymentBinding};
use crate::draft::Draft;
use crate::event::Event;
use crate::id::{AgentId, OwnerId};
use crate::ledger::post;
use crate::message;
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::time::{Millis, Timestamp};
use crate::world::skills::Candidate;

/// Offers one worker may make for one job.
const OFFERS_PER_AGENT_MAX: usize = 4;
/// Agents invited to one auction.
const INVITED_MAX: usize = 1_024;

/// One price for one job. It binds its maker until it expires, even if the same worker made a lower
/// offer since. Its index in the job's list is its id, because offers are only added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    pub by: AgentId,
    /// The maker's own id for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub price: Credits,
    /// The maker's estimate of how long the work takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eta: Option<Millis>,
    pub at: Timestamp,
    pub valid_until: Timestamp,
    /// Position of its original text in the requester's inbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "told_at")]
    pub inbox_position: Option<u64>,
}

/// Invites candidates to make an offer. Refused when there is no candidate.
pub fn invite(draft: &mut Draft<'_>, job: &mut Job) -> Result<(), Refusal> {
    let closes = match job.selection {
        Selection::Auction { closes } => closes,
        Selection::Offers => job.request.deadline,
        _ => return Ok(()),
    };
    let all = select::candidates(draft, job, Readiness::AfterApproval);
    let affordable = |one: &AgentId| {
        price_agreement::fixed_price(draft, job, *one)
            .is_none_or(|price| price <= job.max_payment())
    };
    let all = all.map(|one| one.agent).filter(affordable);
    // An agent that gets no notice needs no inbox capacity.
    let has_room = |one: &AgentId| {
        message::can_receive_invitations(draft, *one, job)
            || price_agreement::fixed_price(draft, job, *one).is_some()
    };
    // An agent that offers the work under two of its skill names counts once.
    let mut seen = BTreeSet::new();
    let all = all.filter(has_room).filter(|one| seen.insert(*one));
    let mut invited = limit_by_owner(draft, all);
    let left = draft.invitations_left(&job.request.requester);
    if left == 0 {
        return Err(Refusal::TooManyOpen);
    }
    invited.truncate(left);
    if invited.is_empty() {
        return Err(select::no_candidate_reason(draft.world, job));
    }
    job.state = State::Negotiating;
    job.pending = true;
    job.candidates.invited.clone_from(&invited);
    let number = job.candidates.round.map_or(1, |round| round.number + 1);
    job.candidates.round = Some(AuctionRound { number, since: draft.now });
    for agent in invited {
        match price_agreement::fixed_price(draft, job, agent) {
            Some(price) => price_agreement::add_fixed_price_offer(draft, job, agent, price),
            None => {
                let url = draft.agent(agent).and_then(|agent| agent.delivery_url());
                draft.notify(Some(agent), NoticeKind::OfferRequested { job: job.id, closes }, url);
            }
        }
    }
    Ok(())
}

/// At most `INVITED_MAX` agents. If there are more, owners take turns, so that an owner with many
/// agents does not crowd out the others. As soon as so many owners have an agent, the first of each
/// owner are chosen, whichever agents follow.
fn limit_by_owner(draft: &Draft<'_>, all: impl Iterator<Item = AgentId>) -> Vec<AgentId> {
    let mut owners: BTreeMap<OwnerId, usize> = BTreeMap::new();
    let mut turns: Vec<(usize, usize, AgentId)> = Vec::new();
    for (rank, agent) in all.enumerate() {
        let Some(owner) = draft.agent(agent).map(|agent| agent.owner) else { continue };
        let turn = owners.entry(owner).or_default();
        turns.push((*turn, rank, agent));
        *turn += 1;
        if owners.len() == INVITED_MAX {
            break;
        }
    }
    if turns.len() > INVITED_MAX {
        turns.sort_unstable();
    }
    turns.into_iter().take(INVITED_MAX).map(|(_, _, agent)| agent).collect()
}

/// Holds the auction again, for as long as the first time, if there are candidates.
pub fn reopen_auction(draft: &mut Draft<'_>, job: &mut Job) -> bool {
    let Selection::Auction { closes } = job.selection else { return false };
    let since = job.candidates.round.map_or(job.request.opened_at, |round| round.since);
    let again = draft.now.plus(closes.since(since)).min(job.request.deadline);
    let before = std::mem::replace(&mut job.selection, Selection::Auction { closes: again });
    let invited = invite(draft, job).is_ok();
    if !invited {
        job.selection = before;
    }
    invited
}

/// A bid in a market's auction: one per invited agent. The last one closes the auction.
pub fn place_bid(
    draft: &mut Draft<'_>,
    wanted: &JobRef,
    by: AgentId,
    price: Credits,
    name: &str,
) -> Result<Answer, Refusal> {
    let job = work::find_job(draft, wanted).filter(|job| job.candidates.invited.contains(&by));
    let job = job.ok_or(Refusal::NotFound)?;
    if job.candidates.offers.iter().any(|offer| offer.by == by && offer.at >= job.request.opened_at)
    {
        return Err(Refusal::TooManyOffers { max: 1 });
    }
    let valid_for = job.request.deadline.since(draft.now);
    make_offer(draft, &JobRef::Id(job.id), by, price, (name, valid_for))?;
    let job = draft.job(job.id).cloned().ok_or(Refusal::NotFound)?;
    close_if_all_answered(draft, job)
}

/// A worker makes an offer. The order in which the hub received offers decides, and a closed
/// auction never reopens.
pub fn make_offer(
    draft: &mut Draft<'_>,
    wanted: &JobRef,
    by: AgentId,
    price: Credits,
    (name, valid_for): (&str, Millis),
) -> Result<Answer, Refusal> {
    let mut job = work::find_job(draft, wanted).ok_or(Refusal::NotFound)?;
    let able = draft.agent(by).is_some_and(|one| one.active && one.skill_for(&job).is_some());
    let own = match &job.request.requester {
        Requester::Agent(agent) => *agent == by,
        Requester::Guest(_) => false,
    };
    // If the requester chose the agents to invite, only they make offers, and by signed orders.
    let closed_circle = matches!(job.selection, Selection::Invited { .. });
    if !able || own || closed_circle || job.candidates.declined.contains(&by) {
        return Err(Refusal::NotFound);
    }
    let closed = matches!(job.selection, Selection::Auction { closes } if draft.now >= closes);
    if job.state != State::Negotiating || closed {
        return Err(Refusal::WrongState { state: job.state });
    }
    if price > job.max_payment() {
        return Err(Refusal::BudgetTooLow { price });
    }
    if is_at_offer_limit(&job, by) {
        return Err(Refusal::TooManyOffers { max: OFFERS_PER_AGENT_MAX });
    }
    let lowest =
        job.candidates.offers.iter().filter(|offer| offer.by == by).map(|offer| offer.price).min();
    if let Some(before) = lowest.filter(|before| price > *before) {
        return Err(Refusal::OfferAbovePrevious { before });
    }
    if let (Selection::Offers, Requester::Agent(requester)) =
        (job.selection, &job.request.requester)
        && message::is_inbox_full(draft, *requester)
    {
        return Err(Refusal::InboxFull);
    }
    message::knows_work(draft, by);
    let (at, valid_until) = (draft.now, draft.now.plus(valid_for));
    let (name, told_at) = (name.to_owned(), None);
    job.candidates.offers.push(Offer {
        by,
        name,
        price,
        eta: None,
        at,
        valid_until,
        inbox_position: told_at,
    });
    draft.add_event(Event::JobOffered { job: job.id, by });
    if job.selection == Selection::Offers {
        notify_offer(draft, &mut job, by);
    }
    let job = draft.put_job(job);
    Ok(Answer::Job { job, repeated: false })
}

/// Notifies the requester of an offer it may accept. An agent that was not invited is treated as
/// invited.
fn notify_offer(draft: &mut Draft<'_>, job: &mut Job, by: AgentId) {
    if !job.candidates.invited.contains(&by) {
        job.candidates.invited.push(by);
    }
    let place = u32::try_from(job.candidates.offers.len().saturating_sub(1)).unwrap_or(u32::MAX);
    if let Requester::Agent(requester) = job.request.requester {
        draft.notify(Some(requester), NoticeKind::OfferReceived { job: job.id, place }, None);
    }
}

/// An invited agent declines to bid, or the worker declines the job.
pub fn pass_or_decline(
    draft: &mut Draft<'_>,
    wanted: &JobRef,
    by: AgentId,
) -> Result<Answer, Refusal> {
    let job = work::find_job(draft, wanted).ok_or(Refusal::NotFound)?;
    let bids = matches!(job.selection, Selection::Auction { .. });
    if job.state != State::Negotiating || !bids {
        return work::decline(draft, wanted, by, None, None);
    }
    if !job.candidates.invited.contains(&by) || job.candidates.declined.contains(&by) {
        return Err(Refusal::NotFound);
    }
    // An offer binds its maker until the auction closes.
    if job.candidates.offers.iter().any(|offer| offer.by == by) {
        return Err(Refusal::TooManyOffers { max: 1 });
    }
    message::knows_work(draft, by);
    let mut job = job;
    job.candidates.declined.push(by);
    market_totals::record_declined(draft, by, &job);
    draft.add_event(Event::JobDeclined { job: job.id, worker: by });
    close_if_all_answered(draft, job)
}

/// Closes an auction once every invited agent has answered.
pub fn close_if_all_answered(draft: &mut Draft<'_>, job: Job) -> Result<Answer, Refusal> {
    let has_answered = |agent: &AgentId| {
        job.candidates.declined.contains(agent)
            || job.candidates.offers.iter().any(|offer| offer.by == *agent)
    };
    if !job.candidates.invited.is_empty() && job.candidates.invited.iter().all(has_answered) {
        return close_auction(draft, job);
    }
    let job = draft.put_job(job);
    Ok(Answer::Job { job, repeated: false })
}

/// The requester accepts an offer, at exactly the price it was shown.
pub fn accept_offer(draft: &mut Draft<'_>, order: AcceptOffer) -> Result<Answer, Refusal> {
    let AcceptOffer { by, offer, payment_proof, binding } = order;
    let (job, index) = match offer {
        AcceptedOffer::InJob { job, offer } => find_offer_in_job(draft, by, &job, offer)?,
        AcceptedOffer::Named(offer) => find_named_offer(draft, by, &offer)?,
    };
    if job
        .candidates
        .offers
        .get(index)
        .is_some_and(|offer| !was_read_here(draft, by, offer, binding))
    {
        return Err(Refusal::OfferNotRead);
    }
    let mut job = assign_offer(draft, job, index)?;
    job.payment.proof = payment_proof;
    let job = draft.put_job(job);
    Ok(Answer::Job { job, repeated: false })
}

/// The job of this requester, and the index of the offer that is meant.
fn find_offer_in_job(
    draft: &Draft<'_>,
    by: AgentId,
    job: &JobRef,
    offer: OfferRef,
) -> Result<(Job, usize), Refusal> {
    let job = work::find_job(draft, job).filter(|job| job.is_requested_by(by));
    let job = job.ok_or(Refusal::NotFound)?;
    // The bids of an auction are sealed: they cannot be accepted one by one.
    if matches!(job.selection, Selection::Auction { .. }) {
        return Err(Refusal::WrongState { state: job.state });
    }
    let index = find_offer_index(&job, offer, draft.now)?;
    Ok((job, index))
}

/// The index of the offer that is meant. A caller that names no price could be shown one and
/// charged another, so that is allowed only if there was a single offer.
fn find_offer_index(job: &Job, offer: OfferRef, now: Timestamp) -> Result<usize, Refusal> {
    match offer {
        OfferRef::Index(place) => {
            let place = usize::try_from(place).unwrap_or(usize::MAX);
            Some(place)
                .filter(|place| *place < job.candidates.offers.len())
                .ok_or(Refusal::NoSuchOffer)
        }
        OfferRef::Price { by, price } => {
            let asks = |offer: &Offer| offer.by == by && offer.price == price;
            let stands = |offer: &Offer| asks(offer) && now < offer.valid_until;
            // The same price offered twice is one price: the one that is still valid.
            let place = job.candidates.offers.iter().rposition(stands);
            let place = place.or_else(|| job.candidates.offers.iter().rposition(asks));
            place.ok_or(Refusal::NoSuchOffer)
        }
        OfferRef::Only { by } => {
            let mut own = (0..).zip(&job.candidates.offers).filter(|(_, offer)| offer.by == by);
            let (place, _) = own.next().ok_or(Refusal::NotFound)?;
            if own.next().is_some() { Err(Refusal::OfferAmbiguous) } else { Ok(place) }
        }
    }
}

/// The offer of an agent that was invited or has the job.
pub struct InvitedTerms {
    /// The maker's own id for it.
    pub name: String,
    pub price: Credits,
    pub valid_for: Millis,
    pub eta: Millis,
}

/// An invited agent makes an offer.
pub fn make_invited_offer(
    draft: &mut Draft<'_>,
    request: &JobRef,
    by: AgentId,
    terms: InvitedTerms,
) -> Result<Answer, Refusal> {
    let JobRef::Named(request) = request else { return Err(Refusal::NotFound) };
    let mut job = match request::find_request(draft, by, request) {
        Err(Refusal::Ambiguous) => {
            let only = request::only_job_named(draft.world, by, &request.id);
            let only = only.filter(|job| draft.now < job.request.deadline);
            only.and_then(|job| draft.job(job.id)).cloned().ok_or(Refusal::Ambiguous)?
        }
        job => job?,
    };
    if !matches!(job.selection, Selection::Invited { .. }) {
        return price_agreement::name_price(draft, by, job, &terms);
    }
    let Requester::Agent(requester) = job.request.requester else { return Err(Refusal::NotFound) };
    if draft.agent(requester).is_some_and(|agent| agent.blocks(by)) {
        return Err(Refusal::Blocked);
    }
    let (Selection::Invited { any_price, .. }, State::Open | State::Negotiating) =
        (job.selection, job.state)
    else {
        return Err(Refusal::WrongState { state: job.state });
    };
    if !job.candidates.invited.contains(&by) {
        return Err(Refusal::WrongState { state: job.state });
    }
    if is_at_offer_limit(&job, by) {
        return Err(Refusal::TooManyOffers { max: OFFERS_PER_AGENT_MAX });
    }
    if message::is_inbox_full(draft, requester) {
        return Err(Refusal::InboxFull);
    }
    let InvitedTerms { name, price, valid_for, eta } = terms;
    if !any_price && price > job.payment.budget {
        return Err(Refusal::BudgetTooLow { price });
    }
    // An agent that makes an offer does not work for its listed price.
    end::release_hold(draft, &mut job, None)?;
    let (at, eta) = (draft.now, Some(eta));
    let valid_until = at.plus(valid_for);
    let offer = Offer { by, name, price, eta, at, valid_until, inbox_position: None };
    request::add_offer(draft, &mut job, offer);
    let job = draft.put_job(job);
    Ok(Answer::Job { job, repeated: false })
}

/// Whether the offer that is accepted is the one made here. Its maker chose the offer's id and may
/// use it on another hub as well; the hub's own ids exist nowhere else.
fn was_read_here(draft: &Draft<'_>, to: AgentId, offer: &Offer, binding: PaymentBinding) -> bool {
    let PaymentBinding::ReadUpTo(read) = binding else { return true };
    let read = read.max(draft.inbox(to).read_position());
    offer.price.is_zero() || offer.inbox_position.is_none_or(|at| at <= read)
}

/// Holds the price of an accepted offer, then assigns the job.
fn assign_offer(draft: &mut Draft<'_>, mut job: Job, place: usize) -> Result<Job, Refusal> {
    if draft.now >= job.request.deadline && !job.state.is_final() {
        return Err(Refusal::WrongState { state: State::Expired });
    }
    if job.state != State::Negotiating {
        return Err(Refusal::WrongState { state: job.state });
    }
    let offer = job.candidates.offers.get(place).ok_or(Refusal::NotFound)?;
    let there = draft.agent(offer.by).is_some_and(|agent| agent.active);
    if draft.now >= offer.valid_until || !there || !job.candidates.invited.contains(&offer.by) {
        return Err(Refusal::OfferExpired);
    }
    let chosen = Candidate { agent: offer.by, price: offer.price };
    // With `Selection::Offers` the whole budget is already held.
    if job.selection != Selection::Offers {
        let payer = job.payment.payer.ok_or(Refusal::GuestCannotPay)?;
        if let Requester::Agent(requester) = job.request.requester {
            job.payment.key = key_limits::spending_key(draft, requester);
        }
        post::hold(draft, &mut job, payer, chosen.price)?;
    }
    acceptance::assign_or_defer(draft, &mut job, chosen)?;
    notify_losers(draft, &job, chosen.agent);
    Ok(job)
}

/// The job an offer was made for, and the offer's index.
fn find_named_offer(
    draft: &Draft<'_>,
    to: AgentId,
    wanted: &ExternalRef,
) -> Result<(Job, usize), Refusal> {
    match draft.claim_target(claim::offer(to, wanted.counterparty, &wanted.id)) {
        Some(ClaimTarget::Offer { job, index: place }) => {
            let job = draft.job(job).cloned().ok_or(Refusal::NotFound)?;
            Ok((job, usize::try_from(place).unwrap_or(usize::MAX)))
        }
        Some(_) => Err(Refusal::Ambiguous),
        None if draft.claim_target(claim::offer(to, None, &wanted.id)).is_some() => {
            Err(Refusal::WrongParty)
        }
        None => Err(Refusal::NotFound),
    }
}

/// Notifies those whose offers were not accepted, once each.
fn notify_losers(draft: &mut Draft<'_>, job: &Job, chosen: AgentId) {
    let mut told = vec![chosen];
    for (place, offer) in (0..).zip(&job.candidates.offers) {
        if job.candidates.invited.contains(&offer.by) && !told.contains(&offer.by) {
            told.push(offer.by);
            let url = draft.agent(offer.by).and_then(|agent| agent.delivery_url());
            draft.notify(Some(offer.by), NoticeKind::OfferLost { job: job.id, place }, url);
        }
    }
}

fn is_at_offer_limit(job: &Job, by: AgentId) -> bool {
    job.candidates.offers.iter().filter(|offer| offer.by == by).count() >= OFFERS_PER_AGENT_MAX
}

/// The lowest valid offer. Equal prices go to the agent that registered first.
pub fn lowest_offer(draft: &Draft<'_>, job: &Job, ready: Readiness) -> Option<Candidate> {
    let binding = |offer: &&Offer| {
        draft.now < offer.valid_until && readiness::can_start(draft, job, offer.by, ready)
    };
    let lowest =
        job.candidates.offers.iter().filter(binding).min_by_key(|offer| (offer.price, offer.by));
    lowest.map(|offer| Candidate { agent: offer.by, price: offer.price })
}

/// Closes a sealed auction: the lowest offer wins.
pub fn close_auction(draft: &mut Draft<'_>, mut job: Job) -> Result<Answer, Refusal> {
    match lowest_offer(draft, &job, Readiness::AfterApproval) {
        Some(winner) => {
            acceptance::assign_or_defer(draft, &mut job, winner)?;
            notify_losers(draft, &job, winner.agent);
        }
        None if job.policy.queueing.when_unmatched => open::queue(draft, &mut job),
        None => {
            let text = Some("no offer was made".to_owned());
            return end::fail(draft, job, State::Failed, Cause::NoWorkerLeft, text);
        }
    }
    let job = draft.put_job(job);
    Ok(Answer::Job { job, repeated: false })
}
