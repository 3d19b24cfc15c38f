//! Opening a job: check for a repeat, choose a worker, hold the budget, notify.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::readiness::Readiness;
use super::{
    Acceptance, AgreedPrice, Assignment, Candidates, Job, Links, Payment, Progress, Request,
    Requester, Selection, State, acceptance, grace_period, offer, question, readiness, select,
};
use crate::agent::{Agent, key_limits, market_totals, suspension};
use crate::alias::{ClaimTarget, Digest, claim};
use crate::answer::Answer;
use crate::command::OpenJob;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::JobId;
use crate::ledger::post;
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::world::skills::Candidate;

/// Bridges a job may cross.
pub const HOPS_MAX: u8 = 8;

/// Opens a job and assigns it to a worker. A refusal changes nothing.
pub fn open(draft: &mut Draft<'_>, order: OpenJob) -> Result<Answer, Refusal> {
    if let Some(answer) = find_repeat(draft, &order)? {
        return Ok(answer);
    }
    if order.hops > HOPS_MAX {
        return Err(Refusal::BridgeLoop { max: HOPS_MAX });
    }
    if order.deadline <= draft.now && !order.policy.requester.answered_at_once {
        return Err(Refusal::DeadlineTooSoon);
    }
    if matches!(order.selection, Selection::Broadcast | Selection::BroadcastToProtocol) {
        return broadcast(draft, order);
    }
    let unfit = order.unfit_agents.first().map(|unfit| unfit.reason.clone());
    let request = order.request_id.as_ref().map(|id| claim::request(order.origin, id));
    let mut job = new_job(draft, order)?;
    let chosen = match job.selection {
        selection if selection.is_by_offers() => offer::invite(draft, &mut job).map(|()| None),
        _ => select::next_worker(draft, &job, Readiness::AfterApproval).map(Some),
    };
    match chosen {
        Ok(None) => hold_budget(draft, &mut job)?,
        Ok(Some(chosen)) => acceptance::hold_and_assign(draft, &mut job, chosen)?,
        Err(nobody) if may_wait(draft, &job, &nobody) => {
            check_waiting_capacity(draft, &job)?;
            hold_budget(draft, &mut job)?;
            queue(draft, &mut job);
        }
        // An agent may be online and only unable to use the input.
        Err(Refusal::Offline) if unfit.is_some() => {
            return Err(Refusal::InputRejected { reason: unfit.unwrap_or_default() });
        }
        Err(refusal) => return Err(refusal),
    }
    if let Some(request) = request {
        claim_request(draft, request, &job);
    }
    let job = insert_new_job(draft, job);
    Ok(Answer::Job { job, repeated: false })
}

/// Maps a request id to its job. If a requester reuses an id, the newest job counts. An id that two
/// requesters use maps to neither job.
fn claim_request(draft: &mut Draft<'_>, request: Digest, job: &Job) {
    let same_requester = |known: JobId| {
        draft.job(known).is_some_and(|known| known.request.requester == job.request.requester)
    };
    let target = match draft.claim_target(request) {
        None => ClaimTarget::Job(job.id),
        Some(ClaimTarget::Job(known)) if same_requester(known) => {
            draft.add_claim(request, ClaimTarget::Released);
            ClaimTarget::Job(job.id)
        }
        Some(_) => ClaimTarget::Ambiguous,
    };
    draft.add_claim(request, target);
}

/// Whether one more job may wait for the worker it names. All of them are checked when the worker
/// comes online.
fn check_waiting_capacity(draft: &Draft<'_>, job: &Job) -> Result<(), Refusal> {
    let Selection::Direct(agent) = job.selection else { return Ok(()) };
    let same = draft.world.jobs_waiting_for(agent);
    if readiness::has_waiting_capacity(same, job) { Ok(()) } else { Err(Refusal::AtCapacity) }
}

/// Whether a job without a worker is queued instead of refused.
fn may_wait(draft: &Draft<'_>, job: &Job, why: &Refusal) -> bool {
    let is_away = |agent| {
        let called = draft.agent(agent).is_some_and(Agent::is_called_by_protocol);
        called && !draft.is_suspended(agent) && !job.candidates.declined.contains(&agent)
    };
    let for_named = match job.selection {
        Selection::Direct(agent) if *why == Refusal::Offline => {
            job.policy.named_worker.may_be_offline && is_away(agent)
        }
        _ => false,
    };
    for_named || job.policy.queueing.when_unmatched && may_resolve_by_waiting(why)
}

/// Whether the refusal may no longer apply when another agent comes online.
fn may_resolve_by_waiting(refusal: &Refusal) -> bool {
    use Refusal::*;
    let skill = matches!(refusal, NoSuchSkill | SkillNotOffered);
    skill || matches!(refusal, BudgetTooLow { .. } | Offline | AtCapacity | AtRateLimit)
}

/// The first answer again, if this requester already used this id for the same request.
fn find_repeat(draft: &Draft<'_>, order: &OpenJob) -> Result<Option<Answer>, Refusal> {
    match draft.claim_target(claim::job(order.origin, &order.foreign_id)) {
        None | Some(ClaimTarget::Released) => Ok(None),
        Some(ClaimTarget::Job(id)) => {
            let job = draft.job(id).ok_or(Refusal::IdTaken)?;
            if job.request.requester != order.requester {
                return Err(Refusal::IdTaken);
            }
            if job.request.content != order.content {
                return Err(Refusal::SameIdOtherContent);
            }
            Ok(Some(Answer::Job { job: Arc::new(job.clone()), repeated: true }))
        }
        Some(_) => Err(Refusal::IdTaken),
    }
}

/// A new, unassigned job from an order.
pub fn new_job(draft: &mut Draft<'_>, order: OpenJob) -> Result<Job, Refusal> {
    let id = draft.next.job;
    draft.next.job = id.next();
    let (payer, key, previous_requested) = match &order.requester {
        Requester::Guest(_) => (None, None, None),
        Requester::Agent(agent) => {
            if !draft.world.may_open_job(*agent, order.input.len() + order.meta.len()) {
                return Err(Refusal::TooManyOpen);
            }
            suspension::ensure_not_suspended(draft, *agent)?;
            let asking = draft.agent(*agent).filter(|agent| agent.active);
            let owner = asking.map(|agent| agent.owner).ok_or(Refusal::NoSuchAgent)?;
            let key = key_limits::spending_key(draft, *agent);
            (Some(owner), key, draft.agent_state_mut(*agent).last_requested.replace(id))
        }
    };
    let declined = order.unfit_agents.iter().map(|unfit| unfit.agent).collect();
    Ok(Job {
        id,
        uuid: order.uuid,
        state: State::Open,
        request: Request {
            requester: order.requester,
            origin: order.origin,
            foreign_id: order.foreign_id,
            content: order.content,
            skill: order.skill,
            alternative_skills: order.alternative_skills,
            input: order.input,
            input_error: order.input_error,
            meta: order.meta,
            hops: order.hops,
            priority: order.priority,
            opened_at: draft.now,
            deadline: order.deadline,
            wanted_by: order.wanted_by,
            lease: order.lease,
            callback: order.callback,
        },
        policy: order.policy,
        selection: order.selection,
        candidates: Candidates { declined, ..Candidates::default() },
        payment: Payment {
            payer,
            budget: order.budget,
            price_step: order.price_step,
            held: Credits::ZERO,
            key,
            agreed_prices: Vec::new(),
            proof: None,
        },
        epoch: 0,
        assignment: None,
        handover: None,
        progress: Progress::default(),
        questions: Vec::new(),
        messages: Vec::new(),
        webhooks: Vec::new(),
        acceptance: Acceptance { promised: order.wanted_by, ..Acceptance::default() },
        pending: order.policy.requester.answered_at_once,
        result: None,
        ended_at: None,
        links: Links {
            previous_requested,
            market_orders_before: draft.next.market_orders,
            ..Links::default()
        },
    })
}

/// Writes a newly opened job and claims its ids.
pub fn insert_new_job(draft: &mut Draft<'_>, job: Job) -> Arc<Job> {
    draft.add_claim(
        claim::job(job.request.origin, &job.request.foreign_id),
        ClaimTarget::Job(job.id),
    );
    draft.add_claim(claim::job_uuid(job.uuid), ClaimTarget::Job(job.id));
    draft.add_event(Event::JobOpened { job: job.id });
    if let Requester::Agent(agent) = job.request.requester {
        market_totals::update(draft, agent, &job, |tally| tally.requested += 1);
    }
    draft.put_job(job)
}

/// Holds the whole budget before any work starts.
pub fn hold_budget(draft: &mut Draft<'_>, job: &mut Job) -> Result<(), Refusal> {
    if let Some(payer) = job.payment.payer.filter(|_| !job.policy.requester.unpaid) {
        post::hold(draft, job, payer, job.payment.budget)?;
    }
    Ok(())
}

/// The price agreed with a worker. It is fixed when the worker is first chosen; only a lower offer
/// replaces it. A price above the budget is not recorded: a worker that is away is asked again when
/// it is back.
pub fn agree_price(draft: &Draft<'_>, job: &mut Job, chosen: Candidate) -> AgreedPrice {
    let known = job.agreed_price_with(chosen.agent).filter(|known| known.price <= chosen.price);
    if let Some(agreed) = known {
        return agreed;
    }
    let skill = draft.agent(chosen.agent).and_then(|agent| agent.skill_for(job));
    let own = skill.filter(|skill| !skill.by_offer).map(|skill| skill.price);
    let own = own.filter(|own| *own < chosen.price);
    let price_open = !job.selection.is_by_offers() && skill.is_some_and(|skill| skill.by_offer);
    let agreed =
        AgreedPrice { worker: chosen.agent, price: chosen.price, unrounded_price: own, price_open };
    if chosen.price <= job.max_payment() {
        job.set_agreed_price(agreed);
    }
    agreed
}

/// Assigns the job to a worker: a new epoch, a new lease, and a notice.
pub fn assign(draft: &mut Draft<'_>, job: &mut Job, chosen: Candidate) {
    let Some(agent) = draft.agent(chosen.agent) else { return };
    let (owner, url) = (agent.owner, agent.delivery_url());
    let fetches = url.is_none() && !agent.is_called_by_protocol();
    let answers_itself = agent.terms.intake.confirms_jobs;
    // A worker that reads by urgency is notified when it reads.
    let told_later = agent.terms.intake.urgent_first && url.is_none();
    let takes = agent.skill_for(job).and_then(|skill| skill.expected_duration);
    let fair_time = grace_period::period_for(draft, job, chosen.agent);
    let AgreedPrice { price, unrounded_price: own, price_open, .. } =
        agree_price(draft, job, chosen);
    let lease =
        if answers_itself { draft.world.rules.acceptance_timeout } else { job.request.lease };
    // A worker that does not confirm jobs itself has accepted it by being chosen.
    job.acceptance.accepted_at = (!answers_itself).then_some(draft.now);
    // The previous worker's promise and job id do not apply to another worker.
    job.acceptance.worker_job_id =
        job.acceptance.worker_job_id.filter(|_| job.worker() == Some(chosen.agent));
    job.acceptance.promised = job.request.wanted_by.or(takes.map(|takes| draft.now.plus(takes)));
    job.candidates.pending_assignment = None;
    job.progress.restart();
    job.handover = None;
    job.epoch += 1;
    job.state = State::Assigned;
    job.assignment = Some(Assignment {
        worker: chosen.agent,
        owner,
        price,
        own,
        price_open,
        since: draft.now,
        until: draft.now.plus(lease).min(job.request.deadline),
        // Delivered work cannot be withdrawn. Polled work can, until it is fetched.
        handed_over: url.is_some(),
        inbox_position: None,
        received_at: None,
        grace_period: fair_time,
        excused: false,
    });
    // A polling worker answers whenever it polls; few requesters wait for that.
    job.pending |= fetches && !job.policy.requester.waits;
    draft.add_event(Event::JobAssigned { job: job.id, worker: chosen.agent, epoch: job.epoch });
    market_totals::update(draft, chosen.agent, job, |tally| tally.assigned += 1);
    if told_later {
        return;
    }
    let news = NoticeKind::Assigned { job: job.id, epoch: job.epoch };
    // The original text is forwarded only if it is the requester's. If the previous worker
    // abandoned the job, this one must not see that worker's text.
    match draft.original.as_ref().is_some_and(|said| job.is_requested_by(said.by)) {
        true => draft.notify_party(chosen.agent, news, url),
        false => drop(draft.notify(Some(chosen.agent), news, url)),
    }
    let position = draft.inbox(chosen.agent).head;
    if let Some(turn) = &mut job.assignment {
        turn.inbox_position = Some(position);
    }
    // What the requester sent before there was this worker.
    for (number, _) in job.plain_messages() {
        question::notify_message(draft, job, chosen.agent, number);
    }
}

/// Queues the job until a suitable worker comes online.
pub fn queue(draft: &mut Draft<'_>, job: &mut Job) {
    job.state = State::Queued;
    job.unassign();
    job.candidates.pending_assignment = None;
    job.pending = true;
    if let Requester::Agent(agent) = job.request.requester
        && !job.policy.requester.follows_log
    {
        draft.notify(Some(agent), NoticeKind::Queued { job: job.id }, None);
    }
    draft.add_event(Event::JobQueued { job: job.id });
}

/// Tries queued jobs again, oldest first, including those in backoff. Called when a new worker may
/// take one, or when a market order asks for it.
pub fn dispatch_queue(draft: &mut Draft<'_>) {
    dispatch_where(draft, |_| true);
}

/// The same when an agent is merely online again, which happens often: jobs in backoff keep
/// waiting.
pub fn dispatch_ready_queue(draft: &mut Draft<'_>) {
    dispatch_where(draft, |job| job.candidates.backoff.until.is_none());
}

fn dispatch_where(draft: &mut Draft<'_>, may: impl Fn(&Job) -> bool) {
    let waiting = |id: &JobId| draft.world.job(*id).is_some_and(|job| may(job));
    let servable: BTreeSet<JobId> = servable_jobs(draft).into_iter().filter(waiting).collect();
    #[cfg(test)]
    check_skipped_jobs(draft, &servable, &may);
    for id in servable {
        let queued = |job: &&Job| job.state == State::Queued && draft.now < job.request.deadline;
        let Some(mut job) = draft.job(id).filter(queued).cloned() else { continue };
        let rested = job.candidates.backoff.until.take().is_some();
        let bids = matches!(job.selection, Selection::Auction { .. });
        // An auction in backoff may have offers left. For other auctions the candidates are invited
        // again.
        if (rested || !bids)
            && let Ok(chosen) = select::next_worker(draft, &job, Readiness::Immediate)
        {
            assign(draft, &mut job, chosen);
            draft.put_job(job);
        } else if bids && offer::reopen_auction(draft, &mut job) {
            draft.put_job(job);
        }
    }
}

/// The queued jobs that may find a worker now: those for which the world knows one, and those that
/// wait for an agent this command has changed. Assigning them only reduces what agents can take, so
/// no other job can find a worker in this command.
fn servable_jobs(draft: &Draft<'_>) -> BTreeSet<JobId> {
    let world = draft.world;
    let freed = draft.load_changes().iter().filter(|(_, change)| **change < 0);
    let freed = freed.filter_map(|(id, _)| draft.agent(*id));
    let changed = draft.unindexed_agents().chain(freed);
    let own = changed.flat_map(|agent| world.waiting_jobs_for(agent));
    world.servable_jobs().chain(own).collect()
}

/// In tests, every job that is not tried is shown to have no worker.
#[cfg(test)]
fn check_skipped_jobs(draft: &mut Draft<'_>, tried: &BTreeSet<JobId>, may: &impl Fn(&Job) -> bool) {
    let world = draft.world;
    for job in world.queued_jobs().filter(|job| may(job) && !tried.contains(&job.id)) {
        let queued = |job: &&Job| job.state == State::Queued && draft.now < job.request.deadline;
        let Some(mut job) = draft.job(job.id).filter(queued).cloned() else { continue };
        job.candidates.backoff.until = None;
        select::oracle::check_not_servable(draft, &job, Readiness::Immediate);
    }
}

/// Opens one job for each possible worker, each at that agent's own price.
fn broadcast(draft: &mut Draft<'_>, order: OpenJob) -> Result<Answer, Refusal> {
    let probe = new_job(draft, order.clone())?;
    let chosen: Vec<(String, Candidate)> = match probe.selection {
        Selection::BroadcastToProtocol => select::all_of_protocol(draft, &probe),
        _ => {
            let able = select::candidates(draft, &probe, Readiness::AfterApproval);
            able.map(|one| (probe.request.skill.clone(), one)).collect()
        }
    };
    if chosen.is_empty() {
        return Err(select::no_candidate_reason(draft.world, &probe));
    }
    let mut jobs = Vec::new();
    for (copy, (skill, one)) in (0_u32..).zip(chosen) {
        let mut job = if copy == 0 { probe.clone() } else { new_job(draft, order.clone())? };
        job.payment.budget = one.price;
        job.request.skill = skill;
        if copy > 0 {
            job.uuid = copy_uuid(probe.uuid, copy);
            job.request.foreign_id = format!("{}#{copy}", probe.request.foreign_id);
        }
        acceptance::hold_and_assign(draft, &mut job, one)?;
        jobs.push(insert_new_job(draft, job));
    }
    Ok(Answer::Jobs(jobs))
}

/// The public id of a broadcast's further copies, derived so that a repeat gives the same ids.
fn copy_uuid(first: uuid::Uuid, copy: u32) -> uuid::Uuid {
    let digest = Digest::of(&[first.as_bytes(), &copy.to_be_bytes()]);
    uuid::Builder::from_random_bytes(digest.0).into_uuid()
}
