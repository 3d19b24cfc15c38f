//! Requests: the requester names the agents to invite and accepts one of their offers.
//!
//! A sole invitee may also just do the work. Agents of the requester's own protocol get the
//! original request; for any other agent its listed price is its offer.

use std::sync::Arc;

use uuid::Uuid;

use super::open::{self, HOPS_MAX};
use super::{
    DEFAULT_PRIORITY, Job, Offer, Policy, Requester, Selection, State, acceptance, end, readiness,
};
use crate::agent::Agent;
use crate::alias::{ClaimTarget, Digest, Protocol, claim};
use crate::answer::Answer;
use crate::command::{ExternalRef, JobRef, JobRequest, OpenJob, RequestTarget, UnfitAgent};
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::ledger::post;
use crate::message;
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::time::Millis;
use crate::world::World;
use crate::world::skills::Candidate;

/// How long a listed price is valid as an offer.
const LISTED_PRICE_VALIDITY: Millis = Millis::seconds(60);

/// Opens a job and invites the agents that may do it.
pub fn open_request(draft: &mut Draft<'_>, order: JobRequest) -> Result<Answer, Refusal> {
    let (by, id) = (order.by, &order.id);
    let candidates = invitees(draft, by, &order)?;
    if order.timeout <= Millis(0) {
        return Err(Refusal::DeadlineTooSoon);
    }
    if order.other_currency {
        return Err(Refusal::UnsupportedCurrency);
    }
    let requester = draft.agent(by).ok_or(Refusal::NotAuthenticated)?;
    let (home, native) = (requester.home, requester.native_id.clone());
    let mut job = open::new_job(
        draft,
        OpenJob {
            uuid: order.uuid,
            origin: home,
            foreign_id: qualified_id(&native, id),
            content: Digest::of(&[order.input.as_bytes()]),
            requester: Requester::Agent(by),
            skill: order.skill,
            alternative_skills: Vec::new(),
            input: order.input,
            budget: order.budget.unwrap_or(Credits::ZERO),
            price_step: order.price_step,
            selection: Selection::Invited { any_price: order.budget.is_none(), offers_only: false },
            unfit_agents: Vec::new(),
            policy: Policy::default(),
            deadline: draft.now.plus(order.timeout),
            lease: order.timeout,
            wanted_by: None,
            priority: DEFAULT_PRIORITY,
            callback: None,
            input_error: None,
            meta: order.meta,
            hops: 0,
            request_id: None,
        },
    )?;
    job.pending = true;
    let named = matches!(order.to, RequestTarget::Agent(_));
    job.candidates.invited = filter_able(draft, &job, candidates, (named, &order.unfit_agents))?;
    if draft.invitations_left(&job.request.requester) < job.candidates.invited.len() {
        return Err(Refusal::TooManyOpen);
    }
    let alone = job.candidates.invited.len() == 1;
    for provider in job.candidates.invited.clone() {
        let Some(agent) = draft.agent(provider) else { continue };
        match (agent.home == home, alone) {
            (true, true) => {
                let price = agent.listed_price(&job.request.skill);
                invite_sole_worker(draft, &mut job, (provider, price), order.is_bound)?;
            }
            (true, false) => notify_invited(draft, &job, provider),
            (false, _) => {
                if let Some(price) = listed(&job, agent) {
                    offer_listed(draft, &mut job, Candidate { agent: provider, price }, alone)?;
                }
            }
        }
        claim_name(draft, claim::invited_job(provider, id), ClaimTarget::Job(job.id));
    }
    let job = open::insert_new_job(draft, job);
    Ok(Answer::Job { job, repeated: false })
}

/// The id of a job across all requesters, because two requesters may choose the same id.
pub fn qualified_id(native: &str, id: &str) -> String {
    format!("{native}/{id}")
}

/// Claims an id. If it already stands for something else, it becomes ambiguous.
pub fn claim_name(draft: &mut Draft<'_>, name: Digest, target: ClaimTarget) {
    let known = draft.claim_target(name).is_some_and(|known| known != target);
    draft.add_claim(name, if known { ClaimTarget::Ambiguous } else { target });
}

/// The agents to invite.
fn invitees(draft: &Draft<'_>, by: AgentId, order: &JobRequest) -> Result<Vec<AgentId>, Refusal> {
    let RequestTarget::Agent(one) = order.to else {
        let best = best_candidates(draft.world, Some(by), order);
        if best.is_empty() {
            return Err(Refusal::NoSuchSkill);
        }
        return Ok(best);
    };
    let agent = draft.agent(one).filter(|agent| agent.active).ok_or(Refusal::NoSuchAgent)?;
    if one == by {
        return Err(Refusal::BridgeLoop { max: HOPS_MAX });
    }
    if agent.blocks(by) {
        return Err(Refusal::Blocked);
    }
    // An agent that lists no skills may be asked for anything.
    if !agent.skills.is_empty() && !offers(draft.agent(by), agent, &order.skill) {
        return Err(Refusal::SkillNotOffered);
    }
    // An agent of another protocol is not notified of the request, only of the work.
    let is_told = draft.agent(by).is_some_and(|by| by.home == agent.home);
    if is_told && message::is_inbox_full(draft, one) {
        return Err(Refusal::InboxFull);
    }
    Ok(vec![one])
}

/// The agents that can be invited now. If only one remains, it is treated as a sole invitee. If
/// none remains, returns the last refusal.
fn filter_able(
    draft: &Draft<'_>,
    job: &Job,
    all: Vec<AgentId>,
    limits: (bool, &[UnfitAgent]),
) -> Result<Vec<AgentId>, Refusal> {
    let (mut able, mut refusal) = (Vec::new(), Refusal::NoSuchSkill);
    for one in all {
        match invitation_refusal(draft, job, one, limits) {
            None => able.push(one),
            Some(why) => refusal = why,
        }
    }
    if able.is_empty() { Err(refusal) } else { Ok(able) }
}

/// Why an agent cannot be invited. Agents of the requester's protocol decide for themselves.
fn invitation_refusal(
    draft: &Draft<'_>,
    job: &Job,
    one: AgentId,
    (named, unfit): (bool, &[UnfitAgent]),
) -> Option<Refusal> {
    let agent = draft.agent(one)?;
    if draft.is_suspended(one) {
        return Some(Refusal::Offline);
    }
    if agent.home == job.request.origin {
        return None;
    }
    let Some(price) = listed(job, agent) else {
        return Some(if named { Refusal::SkillNotOffered } else { Refusal::NoSuchSkill });
    };
    match readiness::start_condition(draft, job, one) {
        // The job waits only for an agent that was named.
        Ok(readiness::StartCondition::OnReturn(_)) if !named => return Some(Refusal::Offline),
        Ok(_) => {}
        Err(why) => return Some(why),
    }
    if price > job.max_payment() {
        return Some(Refusal::BudgetTooLow { price });
    }
    let unfit = unfit.iter().find(|unfit| unfit.agent == one);
    unfit.map(|unfit| Refusal::InputRejected { reason: unfit.reason.clone() })
}

/// An agent's price as the requester is shown it.
fn listed(job: &Job, agent: &Agent) -> Option<Credits> {
    agent.skill_for(job).map(|skill| job.payment.price_step.round_price(skill.price))
}

/// Whether an agent offers a skill under the name the requester's protocol has for it.
fn offers(by: Option<&Agent>, agent: &Agent, name: &str) -> bool {
    let at_home = by.is_none_or(|by| by.home == agent.home);
    agent.skill(name).is_some_and(|skill| !at_home || skill.native_name.is_none())
}

/// The best agents that offer a skill: online first, then by score, then by registration.
pub fn best_candidates(world: &World, by: Option<AgentId>, order: &JobRequest) -> Vec<AgentId> {
    let RequestTarget::Best { max } = order.to else { return Vec::new() };
    let limit = world.rules.inbox_messages_max;
    let full = |id: AgentId| limit > 0 && world.inbox(id).waiting_count() >= limit;
    let own = by.and_then(|by| world.agent(by)).map(|by| &**by);
    let willing = |id: &AgentId| {
        let takes = |agent: &Arc<Agent>| {
            let blocks = by.is_some_and(|by| agent.blocks(by));
            let is_told = own.is_none_or(|own| own.home == agent.home);
            !blocks && offers(own, agent, &order.skill) && !(is_told && full(*id))
        };
        Some(*id) != by && world.agent(*id).is_some_and(takes)
    };
    world.skills.all_by_rank(&order.skill).filter(willing).take(max).collect()
}

/// A sole invitee may do the work at once, for the listed price if the requester can pay it.
fn invite_sole_worker(
    draft: &mut Draft<'_>,
    job: &mut Job,
    (agent, price): (AgentId, Option<Credits>),
    is_bound: bool,
) -> Result<(), Refusal> {
    let Selection::Invited { any_price, .. } = job.selection else { return Ok(()) };
    if let Some(price) = price.filter(|_| !any_price) {
        if price > job.payment.budget {
            return Err(Refusal::BudgetTooLow { price });
        }
        // The same request could be submitted to another hub and would be paid for on both.
        if !is_bound && !price.is_zero() {
            job.selection = Selection::Invited { any_price, offers_only: true };
            notify_invited(draft, job, agent);
            return Ok(());
        }
        if let Some(payer) = job.payment.payer {
            post::hold(draft, job, payer, price)?;
        }
    }
    notify_invited(draft, job, agent);
    job.candidates.invitation_position = Some(draft.inbox(agent).head);
    Ok(())
}

fn notify_invited(draft: &mut Draft<'_>, job: &Job, provider: AgentId) {
    let news = NoticeKind::OfferRequested { job: job.id, closes: job.request.deadline };
    draft.notify_party(provider, news, None);
}

/// An agent of another protocol: free work is assigned at once, other work is offered at its listed
/// price.
fn offer_listed(
    draft: &mut Draft<'_>,
    job: &mut Job,
    listed: Candidate,
    alone: bool,
) -> Result<(), Refusal> {
    let Candidate { agent: by, price } = listed;
    if alone && price.is_zero() {
        return acceptance::assign_or_defer(draft, job, listed);
    }
    let place = job.candidates.offers.len();
    let name = format!("{}-{place}", job.uuid);
    let (at, valid_until) = (draft.now, draft.now.plus(LISTED_PRICE_VALIDITY));
    add_offer(
        draft,
        job,
        Offer { by, name, price, eta: None, at, valid_until, inbox_position: None },
    );
    Ok(())
}

/// Records an offer and notifies the requester.
pub fn add_offer(draft: &mut Draft<'_>, job: &mut Job, mut offer: Offer) {
    let Requester::Agent(requester) = job.request.requester else { return };
    let place = u32::try_from(job.candidates.offers.len()).unwrap_or(u32::MAX);
    let target = ClaimTarget::Offer { job: job.id, index: place };
    claim_name(draft, claim::offer(requester, None, &offer.name), target);
    claim_name(draft, claim::offer(requester, Some(offer.by), &offer.name), target);
    draft.add_event(Event::JobOffered { job: job.id, by: offer.by });
    job.state = State::Negotiating;
    let by_itself = draft.original.as_ref().is_some_and(|said| said.by == offer.by);
    if by_itself {
        offer.inbox_position = Some(draft.inbox(requester).head + 1);
    }
    job.candidates.offers.push(offer);
    let (news, url) =
        (NoticeKind::OfferReceived { job: job.id, place }, end::notify_url(draft, job));
    // An offer made from a listed price has no original text, so the requester is notified of it
    // as well.
    match by_itself {
        true => draft.notify_party(requester, news, url),
        false => drop(draft.notify(Some(requester), news, url)),
    }
}

/// A job the agent was invited to do, or is doing, by the id its requester gave it.
pub fn find_request(draft: &Draft<'_>, by: AgentId, wanted: &ExternalRef) -> Result<Job, Refusal> {
    let asked = draft.claim_target(claim::invited_job(by, &wanted.id));
    let job = match (wanted.counterparty, asked) {
        (Some(with), _) => {
            find_by_requester_id(draft, with, &wanted.id).filter(|job| involves(job, by))
        }
        // Reusing the id of an assigned job must not take the job away from its worker.
        (None, Some(ClaimTarget::Ambiguous)) => {
            Some(assigned_job_named(draft, by, &wanted.id).ok_or(Refusal::Ambiguous)?)
        }
        (None, Some(ClaimTarget::Job(id))) => draft.job(id).cloned(),
        (None, _) => None,
    };
    let given = find_by_uuid(draft, by, &wanted.id);
    // The job exists, but with another counterparty than the one given.
    let elsewhere = asked.is_some() || given.is_some();
    let with = |job: &Job| wanted.counterparty.is_none_or(|with| job.is_requested_by(with));
    let Some(job) = job.or_else(|| given.filter(with)) else {
        return Err(if elsewhere { Refusal::WrongParty } else { Refusal::NotFound });
    };
    if draft.now >= job.request.deadline && !job.state.is_final() {
        return Err(Refusal::WrongState { state: State::Expired });
    }
    Ok(job)
}

/// The only job of that id assigned to the agent.
fn assigned_job_named(draft: &Draft<'_>, by: AgentId, id: &str) -> Option<Job> {
    let mut called = draft.world.assigned_jobs(by).filter(|job| is_named(job, id));
    let only = called.next().filter(|_| called.next().is_none())?;
    draft.job(only.id).cloned()
}

/// The only live job of that id the agent was invited to do. An offer can only be for a live job,
/// while a result may come late for a finished one.
pub fn only_job_named<'w>(world: &'w World, by: AgentId, id: &str) -> Option<&'w Arc<Job>> {
    let mut called = jobs_named(world, by, id);
    called.next().filter(|_| called.next().is_none())
}

/// The live jobs of that id the agent was invited to do, oldest first: independent requesters may
/// choose the same id.
pub fn jobs_named<'w>(
    world: &'w World,
    by: AgentId,
    id: &str,
) -> impl Iterator<Item = &'w Arc<Job>> {
    world.jobs_inviting(by).filter(move |job| is_named(job, id))
}

fn is_named(job: &Job, id: &str) -> bool {
    job.request.foreign_id.split_once('/').is_some_and(|(_, own)| own == id)
}

/// The job of that id among those the agent requested.
pub fn find_by_requester_id(draft: &Draft<'_>, requester: AgentId, id: &str) -> Option<Job> {
    let (origin, name) = requester_job_name(draft.world, requester, id)?;
    let known = draft.world.job_by_name(origin, &name).map(|job| job.id);
    let id = known.or_else(|| match draft.claim_target(claim::job(origin, &name)) {
        Some(ClaimTarget::Job(id)) => Some(id),
        _ => None,
    })?;
    draft.job(id).filter(|job| job.is_requested_by(requester)).cloned()
}

/// An agent's own id for a job, as the hub stores it.
pub fn requester_job_name(
    world: &World,
    requester: AgentId,
    id: &str,
) -> Option<(Protocol, String)> {
    let agent = world.agent(requester)?;
    Some((agent.home, qualified_id(&agent.native_id, id)))
}

/// A job of another protocol, by the hub's own id. Its worker and possible bidders know it by that.
fn find_by_uuid(draft: &Draft<'_>, by: AgentId, id: &str) -> Option<Job> {
    let uuid: Uuid = id.parse().ok()?;
    let home = draft.agent(by)?.home;
    let job = super::work::find_job(draft, &JobRef::Uuid(uuid))?;
    let named_so = uuid.to_string() == id && job.request.origin != home;
    let theirs = job.worker() == Some(by) || job.candidates.invited.contains(&by);
    (named_so && theirs).then_some(job)
}

/// Whether the agent was ever invited to do the job, or has it.
pub fn involves(job: &Job, by: AgentId) -> bool {
    job.candidates.invited.contains(&by)
        || job.candidates.declined.contains(&by)
        || job.worker() == Some(by)
}
