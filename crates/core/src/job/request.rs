//! Requests: the requester names the agents to invite and accepts one of their offers.
//!
//! A sole invitee may also just do the work. Agents of the requester's own protocol get the
//! original request; for any other agent its listed price is its offer.

use std::sync::Arc;

use uuid::Uuid;

use super::open::{self, HOPS_MAX};
use super::{Job, Offer, PRIORITY, Policy, Requester, Selection, State, end, readiness, acceptance};
use crate::agent::Agent;
use crate::alias::{Digest, Protocol, Target, claim};
use crate::command::{OpenJob, Unfit};
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::ledger::post;
use crate::message;
use crate::money::Credits;
use crate::notice::News;
use crate::refusal::Refusal;
use crate::signed_order::{Ask, Named, Whom};
use crate::time::Millis;
use crate::world::World;
use crate::world::skills::Candidate;

/// How long a listed price is valid as an offer.
const LISTED_PRICE_STANDS: Millis = Millis::seconds(60);

/// Opens a job and invites the agents that may do it.
pub fn ask(draft: &mut Draft<'_>, by: AgentId, id: &str, order: Ask) -> Result<Job, Refusal> {
    let asked = whom(draft, by, &order)?;
    if order.timeout <= Millis(0) {
        return Err(Refusal::DeadlineTooSoon);
    }
    if order.other_currency {
        return Err(Refusal::OtherCurrency);
    }
    let requester = draft.agent(by).ok_or(Refusal::NotAuthenticated)?;
    let (home, native) = (requester.home, requester.native.clone());
    let mut job = open::fresh(
        draft,
        OpenJob {
            uuid: order.uuid,
            origin: home,
            foreign: full_name(&native, id),
            content: Digest::of(&[order.input.as_bytes()]),
            requester: Requester::Agent(by),
            skill: order.skill,
            also: Vec::new(),
            input: order.input,
            budget: order.budget.unwrap_or(Credits::ZERO),
            grain: order.grain,
            selection: Selection::Asked { any_price: order.budget.is_none(), offers_only: false },
            unfit: Vec::new(),
            policy: Policy::default(),
            deadline: draft.now.plus(order.timeout),
            lease: order.timeout,
            promised: None,
            priority: PRIORITY,
            callback: None,
            flaw: None,
            meta: order.meta,
            hops: 0,
            request_id: None,
        },
    )?;
    job.pending = true;
    let named = matches!(order.to, Whom::Agent(_));
    job.asked = able(draft, &job, asked, (named, &order.unfit))?;
    if draft.world.invitations_left(&job.requester) < job.asked.len() {
        return Err(Refusal::TooManyOpen);
    }
    let alone = job.asked.len() == 1;
    for provider in job.asked.clone() {
        let Some(agent) = draft.agent(provider).cloned() else { continue };
        match (agent.home == home, alone) {
            (true, true) => ask_alone(draft, &mut job, &agent, order.is_bound)?,
            (true, false) => tell_asked(draft, &job, provider),
            (false, _) => offer_listed(draft, &mut job, &agent, alone)?,
        }
        remember(draft, claim::asked(provider, id), Target::Job(job.id));
    }
    open::keep(draft, job.clone());
    Ok(job)
}

/// The id of a job across all requesters, because two requesters may choose the same id.
pub fn full_name(native: &str, id: &str) -> String {
    format!("{native}/{id}")
}

/// Claims an id. If it already stands for something else, it becomes ambiguous.
pub fn remember(draft: &mut Draft<'_>, name: Digest, target: Target) {
    let known = draft.claimed(name).is_some_and(|known| known != target);
    draft.claim(name, if known { Target::Several } else { target });
}

/// The agents to invite.
fn whom(draft: &Draft<'_>, by: AgentId, order: &Ask) -> Result<Vec<AgentId>, Refusal> {
    let Whom::Agent(one) = order.to else {
        let best = best(draft.world, Some(by), order);
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
    if is_told && message::is_full(draft, one) {
        return Err(Refusal::InboxFull);
    }
    Ok(vec![one])
}

/// The agents that can be invited now. If only one remains, it is treated as a sole invitee. If
/// none remains, returns the last refusal.
fn able(
    draft: &Draft<'_>,
    job: &Job,
    all: Vec<AgentId>,
    limits: (bool, &[Unfit]),
) -> Result<Vec<AgentId>, Refusal> {
    let (mut able, mut refusal) = (Vec::new(), Refusal::NoSuchSkill);
    for one in all {
        match cannot(draft, job, one, limits) {
            None => able.push(one),
            Some(why) => refusal = why,
        }
    }
    if able.is_empty() { Err(refusal) } else { Ok(able) }
}

/// Why an agent cannot be invited. Agents of the requester's protocol decide for themselves.
fn cannot(
    draft: &Draft<'_>,
    job: &Job,
    one: AgentId,
    (named, unfit): (bool, &[Unfit]),
) -> Option<Refusal> {
    let agent = draft.agent(one)?;
    if draft.is_suspended(one) {
        return Some(Refusal::Offline);
    }
    if agent.home == job.origin {
        return None;
    }
    let Some(price) = listed(job, agent) else {
        return Some(if named { Refusal::SkillNotOffered } else { Refusal::NoSuchSkill });
    };
    match readiness::when(draft, job, one) {
        // The job waits only for an agent that was named.
        Ok(readiness::When::Back(_)) if !named => return Some(Refusal::Offline),
        Ok(_) => {}
        Err(why) => return Some(why),
    }
    if price > job.purse() {
        return Some(Refusal::BudgetTooLow { price });
    }
    let unfit = unfit.iter().find(|unfit| unfit.agent == one);
    unfit.map(|unfit| Refusal::Unfit { why: unfit.why.clone() })
}

/// An agent's price as the requester is shown it.
fn listed(job: &Job, agent: &Agent) -> Option<Credits> {
    agent.skill_for(job).map(|skill| job.grain.shown(skill.price))
}

/// Whether an agent offers a skill under the name the requester's protocol has for it.
fn offers(by: Option<&Agent>, agent: &Agent, name: &str) -> bool {
    let at_home = by.is_none_or(|by| by.home == agent.home);
    agent.skill(name).is_some_and(|skill| !at_home || skill.stands_for.is_none())
}

/// The best agents that offer a skill: online first, then by score, then by registration.
pub fn best(world: &World, by: Option<AgentId>, order: &Ask) -> Vec<AgentId> {
    let Whom::Best { max } = order.to else { return Vec::new() };
    let limit = world.rules.inbox_messages_max;
    let full = |id: AgentId| limit > 0 && world.mailbox(id).waiting() >= limit;
    let own = by.and_then(|by| world.agent(by)).map(|by| &**by);
    let willing = |id: &AgentId| {
        let takes = |agent: &Arc<Agent>| {
            let blocks = by.is_some_and(|by| agent.blocks(by));
            let is_told = own.is_none_or(|own| own.home == agent.home);
            !blocks && offers(own, agent, &order.skill) && !(is_told && full(*id))
        };
        Some(*id) != by && world.agent(*id).is_some_and(takes)
    };
    world.skills.by_merit(&order.skill).filter(willing).take(max).collect()
}

/// A sole invitee may do the work at once, for the listed price if the requester can pay it.
fn ask_alone(
    draft: &mut Draft<'_>,
    job: &mut Job,
    agent: &Agent,
    is_bound: bool,
) -> Result<(), Refusal> {
    let Selection::Asked { any_price, .. } = job.selection else { return Ok(()) };
    if let Some(price) = agent.listed_price(&job.skill).filter(|_| !any_price) {
        if price > job.budget {
            return Err(Refusal::BudgetTooLow { price });
        }
        // The same request could be submitted to another hub and would be paid for on both.
        if !is_bound && !price.is_zero() {
            job.selection = Selection::Asked { any_price, offers_only: true };
            tell_asked(draft, job, agent.id);
            return Ok(());
        }
        if let Some(payer) = job.payer {
            post::hold(draft, payer, price, job.id)?;
            job.held = price;
        }
    }
    tell_asked(draft, job, agent.id);
    job.asked_at = Some(draft.mailbox(agent.id).head);
    Ok(())
}

fn tell_asked(draft: &mut Draft<'_>, job: &Job, provider: AgentId) {
    let news = News::OffersWanted { job: job.id, closes: job.deadline };
    draft.tell_party(provider, news, None);
}

/// An agent of another protocol: free work is assigned at once, other work is offered at its listed
/// price.
fn offer_listed(
    draft: &mut Draft<'_>,
    job: &mut Job,
    agent: &Agent,
    alone: bool,
) -> Result<(), Refusal> {
    let Some(price) = listed(job, agent) else { return Ok(()) };
    if alone && price.is_zero() {
        return acceptance::give(draft, job, Candidate { agent: agent.id, price });
    }
    let place = job.offers.len();
    let name = format!("{}-{place}", job.uuid);
    let (at, valid_until) = (draft.now, draft.now.plus(LISTED_PRICE_STANDS));
    note_offer(
        draft,
        job,
        Offer { by: agent.id, name, price, eta: None, at, valid_until, told_at: None },
    );
    Ok(())
}

/// Records an offer and notifies the requester.
pub fn note_offer(draft: &mut Draft<'_>, job: &mut Job, mut offer: Offer) {
    let Requester::Agent(requester) = job.requester else { return };
    let place = u32::try_from(job.offers.len()).unwrap_or(u32::MAX);
    let target = Target::Offer { job: job.id, place };
    remember(draft, claim::offer(requester, None, &offer.name), target);
    remember(draft, claim::offer(requester, Some(offer.by), &offer.name), target);
    draft.event(Event::JobOffered { job: job.id, by: offer.by });
    job.state = State::Negotiating;
    let by_itself = draft.said.as_ref().is_some_and(|said| said.by == offer.by);
    if by_itself {
        offer.told_at = Some(draft.mailbox(requester).head + 1);
    }
    job.offers.push(offer);
    let (news, url) = (News::Offered { job: job.id, place }, end::told_at(draft, job));
    // An offer made from a listed price has no original text, so the requester is notified of it
    // as well.
    match by_itself {
        true => draft.tell_party(requester, news, url),
        false => drop(draft.tell(Some(requester), news, url)),
    }
}

/// A job the agent was invited to do, or is doing, by the id its requester gave it.
pub fn find(draft: &Draft<'_>, by: AgentId, wanted: &Named) -> Result<Job, Refusal> {
    let asked = draft.claimed(claim::asked(by, &wanted.id));
    let job = match (wanted.with, asked) {
        (Some(with), _) => named_by(draft, with, &wanted.id).filter(|job| concerns(job, by)),
        // Reusing the id of an assigned job must not take the job away from its worker.
        (None, Some(Target::Several)) => {
            Some(in_hand(draft, by, &wanted.id).ok_or(Refusal::Ambiguous)?)
        }
        (None, Some(Target::Job(id))) => draft.job(id).cloned(),
        (None, _) => None,
    };
    let given = given(draft, by, &wanted.id);
    // The job exists, but with another counterparty than the one given.
    let elsewhere = asked.is_some() || given.is_some();
    let with = |job: &Job| wanted.with.is_none_or(|with| job.asked_by(with));
    let Some(job) = job.or_else(|| given.filter(with)) else {
        return Err(if elsewhere { Refusal::WrongParty } else { Refusal::NotYours });
    };
    if draft.now >= job.deadline && !job.state.is_final() {
        return Err(Refusal::WrongState { is: State::Expired });
    }
    Ok(job)
}

/// The only job of that id assigned to the agent.
fn in_hand(draft: &Draft<'_>, by: AgentId, id: &str) -> Option<Job> {
    let mut called = draft.world.work_of(by).filter(|job| is_called(job, id));
    let only = called.next().filter(|_| called.next().is_none())?;
    draft.job(only.id).cloned()
}

/// The only live job of that id the agent was invited to do. An offer can only be for a live job,
/// while a result may come late for a finished one.
pub fn only_called<'w>(world: &'w World, by: AgentId, id: &str) -> Option<&'w Arc<Job>> {
    let mut called = all_called(world, by, id);
    called.next().filter(|_| called.next().is_none())
}

/// The live jobs of that id the agent was invited to do, oldest first: independent requesters may
/// choose the same id.
pub fn all_called<'w>(
    world: &'w World,
    by: AgentId,
    id: &str,
) -> impl Iterator<Item = &'w Arc<Job>> {
    world.asked_to(by).filter(move |job| is_called(job, id))
}

fn is_called(job: &Job, id: &str) -> bool {
    job.foreign.split_once('/').is_some_and(|(_, own)| own == id)
}

/// The job of that id among those the agent requested.
pub fn named_by(draft: &Draft<'_>, requester: AgentId, id: &str) -> Option<Job> {
    let (origin, name) = own_name(draft.world, requester, id)?;
    let known = draft.world.job_by_name(origin, &name).map(|job| job.id);
    let id = known.or_else(|| match draft.claimed(claim::job(origin, &name)) {
        Some(Target::Job(id)) => Some(id),
        _ => None,
    })?;
    draft.job(id).filter(|job| job.asked_by(requester)).cloned()
}

/// An agent's own id for a job, as the hub stores it.
pub fn own_name(world: &World, requester: AgentId, id: &str) -> Option<(Protocol, String)> {
    let agent = world.agent(requester)?;
    Some((agent.home, full_name(&agent.native, id)))
}

/// A job of another protocol, by the hub's own id. Its worker and possible bidders know it by that.
fn given(draft: &Draft<'_>, by: AgentId, id: &str) -> Option<Job> {
    let uuid: Uuid = id.parse().ok()?;
    let home = draft.agent(by)?.home;
    let job = super::work::find(draft, &crate::command::JobRef::Uuid(uuid))?;
    let named_so = uuid.to_string() == id && job.origin != home;
    let theirs = job.worker() == Some(by) || job.asked.contains(&by);
    (named_so && theirs).then_some(job)
}

/// Whether the agent was ever invited to do the job, or has it.
pub fn concerns(job: &Job, by: AgentId) -> bool {
    job.asked.contains(&by) || job.declined.contains(&by) || job.worker() == Some(by)
}
