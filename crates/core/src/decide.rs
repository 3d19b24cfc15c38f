//! The entry point of core: decides one command, given the world and the time.
//!
//! This file only dispatches. The rules are in the modules of their nouns.

use crate::agent::{key_limits, presence, probation, registration, secret, status, suspension};
use crate::alias::{ClaimTarget, Digest, claim};
use crate::answer::Answer;
use crate::changes::Changes;
use crate::command::{
    AcceptedOffer, Command, DeliveryResult, ExternalRef, JobRef, JobRequest, OfferTerms, OpenJob,
    RequestTarget, SuspensionTarget, Timer, WorkerReport, WorkerResponse,
};
use crate::draft::Draft;
use crate::envelope::{self, Envelope, Proof};
use crate::event::Event;
use crate::id::{AgentId, JobId, TransferId};
use crate::job::{
    Requester, abandon, acceptance, end, grace_period, handover, offer, open, progress, question,
    request, webhook, work,
};
use crate::ledger::accounts;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::time::{Millis, Timestamp};
use crate::world::World;
use crate::world::footprint;
use crate::{delivery, idempotency, market, message};

/// Decides one command.
pub fn decide(
    world: &World,
    envelope: impl Into<Envelope>,
    now: Timestamp,
) -> Result<(Changes, Answer), Refusal> {
    let envelope = envelope.into();
    let is_limited = !footprint::is_always_accepted(&envelope);
    let Envelope { proof, command, .. } = envelope;
    let mut draft = Draft::new(world, now);
    draft.by_operator = command.is_by_operator();
    let (changes, answer) = match proof {
        Proof::Credential => {
            let answer = execute(&mut draft, command)?;
            (finish(draft), answer)
        }
        Proof::Key(used) => {
            key_limits::check_authority(&draft, used, &command)?;
            draft.key_use = Some(used);
            let answer = execute(&mut draft, command)?;
            (finish(draft), answer)
        }
        Proof::Signature(signature) => {
            let answer = envelope::execute_signed(&mut draft, *signature, command)?;
            (finish(draft), answer)
        }
        Proof::Market(order) => market::submission::submit(draft, *order, command)?,
    };
    // A refused order is not recorded, so the same order can be submitted later.
    if is_limited {
        footprint::check_limits(world, &changes)?;
    }
    Ok((changes, answer))
}

/// The changes of a command that no market publishes itself.
fn finish(mut draft: Draft<'_>) -> Changes {
    market::publish::publish_without_order(&mut draft);
    draft.into_changes()
}

/// Executes a command whose author is proven.
pub(crate) fn execute(draft: &mut Draft<'_>, command: Command) -> Result<Answer, Refusal> {
    match command {
        Command::Register(order) => registration::register(draft, *order),
        Command::Remove { agent, by_operator } => registration::remove(draft, agent, by_operator),
        Command::IssueKey { holder, hash, retire_others, .. } => {
            registration::issue_key(draft, holder, hash, retire_others);
            Ok(Answer::Done)
        }
        Command::RevokeKeys { agent, .. } => {
            registration::expire_keys(draft, agent, Millis(0));
            key_limits::forget(draft, agent, |_| true);
            draft.add_event(Event::KeyRevoked { agent });
            Ok(Answer::Done)
        }
        Command::SetSuspended { subject, suspended } => {
            suspension::set_suspended(draft, subject, suspended)
        }
        Command::BeginEpoch => {
            draft.next.epoch += 1;
            draft.add_event(Event::HubRestored { epoch: draft.next.epoch });
            Ok(Answer::Done)
        }
        Command::RenewSecret { agent } => secret::renew(draft, agent),
        Command::Heartbeat { agent } => {
            ensure_registered(draft, agent)?;
            presence::record_heartbeat(draft, agent);
            Ok(registration::agent_answer(draft, agent))
        }
        Command::RecordActivity { agent } => {
            ensure_registered(draft, agent)?;
            presence::record_activity(draft, agent);
            probation::clear(draft, agent);
            Ok(Answer::Done)
        }
        Command::OpenAccount { name } => accounts::open_account(draft, &name),
        Command::Grant { name, amount } => accounts::grant(draft, &name, amount),
        Command::Burn { name, amount } => accounts::burn(draft, &name, amount),
        Command::Pay(pay) => accounts::pay(draft, *pay),
        Command::OpenJob(job) => open::open(draft, *job),
        Command::RequestJob(order) => request::open_request(draft, *order),
        Command::Offer { job, by, price, terms } => {
            suspension::ensure_not_suspended(draft, by)?;
            match terms {
                OfferTerms::Open { valid_for } => {
                    offer::make_offer(draft, &job, by, price, ("", valid_for))
                }
                OfferTerms::Invited { name, valid_for, eta } => {
                    let terms = offer::InvitedTerms { name, price, valid_for, eta };
                    offer::make_invited_offer(draft, &job, by, terms)
                }
                OfferTerms::Bid => offer::place_bid(draft, &job, by, price, ""),
            }
        }
        Command::AcceptOffer(order) => {
            suspension::ensure_not_suspended(draft, order.by)?;
            offer::accept_offer(draft, *order)
        }
        Command::Start { job, by } => work::start(draft, &job, by),
        Command::ReportProgress(order) => progress::report(draft, *order),
        Command::AskQuestion(order) => question::ask(draft, *order, false),
        Command::AskToSignIn(order) => question::ask(draft, *order, true),
        Command::SendToWorker(order) => question::send_to_worker(draft, *order),
        Command::SetJobWebhook(order) => webhook::set(draft, *order),
        Command::OpenJobWithWebhook(order) => webhook::open_with(draft, *order),
        Command::RemoveJobWebhook(order) => webhook::remove(draft, &order),
        Command::RecordHandover(order) => handover::record(draft, *order),
        Command::ReportOriginal(order) => handover::report_original(draft, *order),
        Command::UpdateCard(order) => registration::update_card(draft, *order),
        Command::IssueLimitedKey(order) => key_limits::issue(draft, *order),
        Command::RevokeKey { agent, key } => key_limits::revoke(draft, agent, key),
        Command::RecordKeyUse { agent, key } => {
            key_limits::record_use(draft, agent, key);
            Ok(Answer::Done)
        }
        Command::AnswerQuestion(order) => question::answer(draft, *order),
        Command::ReportResult(report) => work::report_result(draft, *report),
        Command::Respond { job, by, response } => {
            if matches!(response, WorkerResponse::Accept { .. }) {
                suspension::ensure_not_suspended(draft, by)?;
            }
            acceptance::respond(draft, &job, by, response)
        }
        Command::Approve { job, by, approved } => acceptance::approve(draft, &job, by, approved),
        Command::ReportStatus { agent, status } => {
            ensure_registered(draft, agent)?;
            status::update_status(draft, agent, status)?;
            Ok(registration::agent_answer(draft, agent))
        }
        Command::ReportReputation { agent, text } => {
            ensure_registered(draft, agent)?;
            status::record_claimed_reputation(draft, agent, text);
            Ok(registration::agent_answer(draft, agent))
        }
        Command::Decline { job, by, epoch, reason } => {
            work::decline(draft, &job, by, epoch, reason)
        }
        Command::Pass { job, by } => {
            let answer = offer::pass_or_decline(draft, &job, by)?;
            open::dispatch_queue(draft);
            Ok(answer)
        }
        Command::AbandonJob(order) => abandon::abandon_job(draft, *order),
        Command::Defer { job, by, until } => work::defer(draft, &job, by, until),
        Command::DispatchQueue => {
            open::dispatch_queue(draft);
            Ok(Answer::Done)
        }
        Command::HandOver { agent, jobs } => {
            ensure_registered(draft, agent)?;
            Ok(work::hand_over(draft, agent, &jobs))
        }
        Command::MarkShown { agent, jobs } => {
            ensure_registered(draft, agent)?;
            message::knows_work(draft, agent);
            grace_period::mark_shown(draft, agent, &jobs);
            Ok(Answer::Done)
        }
        Command::MarkPending { job } => work::mark_pending(draft, job),
        Command::MarkUnreachable { job, epoch } => work::handle_unreachable(draft, job, epoch),
        Command::Cancel { job, by, reason } => end::cancel(draft, &job, by, reason),
        Command::Requeue { job } => end::requeue(draft, &job),
        Command::UpdateProfile { agent, profile } => {
            // A profile has no recipient, so notices that follow from it do not carry its text.
            draft.original = None;
            registration::update_profile(draft, agent, *profile)?;
            Ok(Answer::Done)
        }
        Command::RecordOnly => Ok(Answer::Done),
        Command::AddAliases { agent, aliases } => registration::add_aliases(draft, agent, aliases),
        Command::SendMessage(order) => message::send(draft, *order),
        Command::Forward { to } => message::forward(draft, to),
        Command::Ack { agent, up_to } => {
            ensure_registered(draft, agent)?;
            Ok(message::ack(draft, agent, up_to))
        }
        Command::AckUnread { agent, up_to } => message::ack_unread(draft, agent, up_to),
        Command::MarkPresented { agent, up_to } => {
            ensure_registered(draft, agent)?;
            Ok(message::mark_presented(draft, agent, up_to))
        }
        Command::SetBlocked { agent, other, blocked } => {
            message::set_blocked(draft, agent, other, blocked)
        }
        Command::RetryDelivery { notice } => Ok(delivery::retry_now(draft, notice)),
        Command::RecordDelivery { notice, result, report } => {
            let refused = report.and_then(|report| try_execute(draft, report.into()).err());
            delivery::record_attempt(draft, notice, result);
            Ok(Answer::Delivery { refused })
        }
        Command::SaveAnswer(order) => idempotency::save_answer(draft, *order),
        Command::FireTimer(Timer::Job(job)) => end::handle_due(draft, job),
        Command::FireTimer(Timer::Probation(agent)) => probation::expire(draft, agent),
    }
}

/// Executes a command as the first part of another. A refused one leaves nothing behind.
fn try_execute(draft: &mut Draft<'_>, command: Command) -> Result<Answer, Refusal> {
    let answer = execute(draft, command);
    if answer.is_err() {
        *draft = Draft::new(draft.world, draft.now);
    }
    answer
}

/// Refuses unknown agents, so that no state row is created for them.
fn ensure_registered(draft: &Draft<'_>, agent: AgentId) -> Result<(), Refusal> {
    draft.agent(agent).filter(|agent| agent.active).map(|_| ()).ok_or(Refusal::NoSuchAgent)
}

/// A row that must be loaded before a command can be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingRow {
    /// The full row of an agent that has left.
    Agent(AgentId),
    Claim(Digest),
    Job(JobId),
    Transfer(TransferId),
}

/// The rows to load before the command can be decided. Call it again after loading: a claim may
/// name a further row.
pub fn missing_rows(world: &World, envelope: &Envelope) -> Vec<MissingRow> {
    let mut rows = MissingRowFinder { world, missing: Vec::new() };
    let signer = match &envelope.proof {
        Proof::Credential | Proof::Key(_) => None,
        Proof::Signature(signature) => {
            let (home, native_id) = (signature.home, &signature.native_id);
            rows.claim(claim::signed_order(home, native_id, &signature.id));
            Some(world.agent_by_alias(home, native_id))
        }
        Proof::Market(order) => {
            rows.claim(claim::market_order(order.market, &order.id));
            None
        }
    };
    // A signed command does not name its author, and a new signer has nothing yet.
    let author = |by: AgentId| signer.unwrap_or(Some(by));
    let own_id = |given| match &envelope.proof {
        Proof::Signature(signature) => &signature.id,
        _ => given,
    };
    match &envelope.command {
        Command::OpenJob(order) => rows.opened(order),
        Command::OpenJobWithWebhook(order) => rows.opened(&order.job),
        Command::Pay(order) => {
            rows.claim(claim::transfer(order.origin, &order.foreign_id));
            if let Some(job) = &order.job {
                rows.claim(claim::job(order.origin, job));
                if let Some(payer) = world.owner_by_name(&order.from) {
                    rows.claim(claim::payment(order.origin, payer, job));
                }
            }
        }
        Command::SendMessage(order) => {
            if let Some(identity) = &order.identity {
                rows.claim(claim::message(order.from, order.to, identity));
            }
        }
        Command::SetSuspended { subject: SuspensionTarget::Agent(id), .. } => rows.full_agent(*id),
        Command::UpdateProfile { agent, .. } => {
            if let Some(agent) = author(*agent) {
                rows.full_agent(agent);
            }
        }
        Command::RequestJob(order) => {
            rows.requested(author(order.by), own_id(&order.id), order);
        }
        Command::Offer {
            job: JobRef::Named(request),
            by,
            terms: OfferTerms::Invited { name, .. },
            ..
        } => {
            if let Some(by) = author(*by) {
                rows.invited(by, request);
                if let Some(requester) = rows.requester(by, request) {
                    rows.claim(claim::offer(requester, None, own_id(name)));
                    rows.claim(claim::offer(requester, Some(by), own_id(name)));
                }
            }
        }
        Command::AcceptOffer(order) => match (&order.offer, author(order.by)) {
            (AcceptedOffer::InJob { job, .. }, _) => rows.named(job),
            (AcceptedOffer::Named(ExternalRef { id, counterparty }), Some(by)) => {
                rows.claim(claim::offer(by, *counterparty, id));
                rows.claim(claim::offer(by, None, id));
            }
            (AcceptedOffer::Named(_), None) => {}
        },
        Command::ReportResult(report) => match (&report.job, author(report.by)) {
            (JobRef::Named(request), Some(by)) => rows.invited(by, request),
            (job, _) => rows.named(job),
        },
        Command::ReportProgress(order) => rows.named(&order.job),
        Command::AskQuestion(order) | Command::AskToSignIn(order) => rows.named(&order.job),
        Command::SendToWorker(order) => rows.named(&order.job),
        Command::SetJobWebhook(order) => rows.named(&order.job),
        Command::RemoveJobWebhook(order) => rows.named(&order.job),
        Command::AnswerQuestion(order) => rows.named(&order.job),
        Command::RecordHandover(order) => {
            rows.named(&order.job);
            order.conversation.into_iter().for_each(|name| rows.claim(name));
        }
        Command::ReportOriginal(order) => rows.named(order.report.job()),
        Command::AbandonJob(order) => {
            if let Some(by) = author(order.by) {
                rows.invited(by, &order.request);
                rows.requested_by(by, &order.request.id);
            }
        }
        Command::Respond { job, response, .. } => {
            rows.named(job);
            if let WorkerResponse::Accept { worker_job_id: Some(id), .. } = response {
                rows.claim(claim::job_uuid(*id));
            }
        }
        Command::Offer { job, .. }
        | Command::Start { job, .. }
        | Command::Approve { job, .. }
        | Command::Decline { job, .. }
        | Command::Pass { job, .. }
        | Command::Defer { job, .. }
        | Command::Cancel { job, .. }
        | Command::Requeue { job } => rows.named(job),
        Command::RecordDelivery { report: Some(report), .. } => match report {
            WorkerReport::Result(report) => rows.named(&report.job),
            WorkerReport::Started { job, .. } | WorkerReport::Declined { job, .. } => {
                rows.named(job);
            }
            WorkerReport::Unreachable { job, .. } => rows.job(*job),
        },
        // The webhook that is gone is removed from its job.
        Command::RecordDelivery { notice, result: DeliveryResult::EndpointGone, .. } => {
            if let Some(NoticeKind::LogEntry { job, .. }) =
                world.delivery(*notice).map(|push| &push.kind)
            {
                rows.job(*job);
            }
        }
        // The job may have ended while this command was waiting in the lane.
        Command::MarkPending { job } | Command::MarkUnreachable { job, .. } => rows.job(*job),
        _ => {}
    }
    rows.missing
}

struct MissingRowFinder<'w> {
    world: &'w World,
    missing: Vec<MissingRow>,
}

impl MissingRowFinder<'_> {
    fn claim(&mut self, digest: Digest) {
        if !self.world.has_loaded_claim(digest) {
            self.missing.push(MissingRow::Claim(digest));
        }
        match self.world.claim(digest).map(|claim| claim.target) {
            Some(ClaimTarget::Job(id) | ClaimTarget::Offer { job: id, .. }) => self.job(id),
            Some(ClaimTarget::Transfer(id)) if self.world.transfer(id).is_none() => {
                self.missing.push(MissingRow::Transfer(id));
            }
            _ => {}
        }
    }

    /// The ids that its requester chose for a job.
    fn opened(&mut self, order: &OpenJob) {
        self.claim(claim::job(order.origin, &order.foreign_id));
        if let Some(id) = &order.request_id {
            self.claim(claim::request(order.origin, id));
        }
    }

    /// The id of a request, for each agent that may be invited.
    fn requested(&mut self, by: Option<AgentId>, id: &str, order: &JobRequest) {
        let best = request::best_candidates(self.world, by, order);
        let one = match order.to {
            RequestTarget::Agent(one) => Some(one),
            RequestTarget::Best { .. } => None,
        };
        for provider in best.into_iter().chain(one) {
            self.claim(claim::invited_job(provider, id));
        }
    }

    /// The full row of an agent. It is not in memory once the agent has left.
    fn full_agent(&mut self, id: AgentId) {
        if self.world.full_agent(id).is_none() {
            self.missing.push(MissingRow::Agent(id));
        }
    }

    /// A job the agent was invited to do.
    fn invited(&mut self, by: AgentId, request: &ExternalRef) {
        self.claim(claim::invited_job(by, &request.id));
        if let Some(requester) = request.counterparty {
            self.requested_by(requester, &request.id);
        }
        if let Ok(uuid) = request.id.parse() {
            self.named(&JobRef::Uuid(uuid));
        }
    }

    /// A job the agent requested.
    fn requested_by(&mut self, requester: AgentId, id: &str) {
        if let Some((origin, id)) = request::requester_job_name(self.world, requester, id) {
            self.named(&JobRef::Foreign { origin, id });
        }
    }

    /// The job's requester, once the job is loaded.
    fn requester(&self, by: AgentId, request: &ExternalRef) -> Option<AgentId> {
        let id = match self.world.claim(claim::invited_job(by, &request.id))?.target {
            _ if request.counterparty.is_some() => return request.counterparty,
            ClaimTarget::Job(id) => id,
            _ => request::only_job_named(self.world, by, &request.id)?.id,
        };
        match self.world.job(id)?.request.requester {
            Requester::Agent(agent) => Some(agent),
            Requester::Guest(_) => None,
        }
    }

    fn job(&mut self, id: JobId) {
        if self.world.job(id).is_none() {
            self.missing.push(MissingRow::Job(id));
        }
    }

    /// A live job is in memory under each of its ids; only a finished one needs its claim.
    fn named(&mut self, job: &JobRef) {
        match job {
            JobRef::Id(id) => self.job(*id),
            JobRef::Uuid(uuid) if self.world.job_by_uuid(*uuid).is_some() => {}
            JobRef::Foreign { origin, id } if self.world.job_by_name(*origin, id).is_some() => {}
            JobRef::Uuid(uuid) => self.claim(claim::job_uuid(*uuid)),
            JobRef::Foreign { origin, id } => self.claim(claim::job(*origin, id)),
            JobRef::Named(_) => {}
        }
    }
}
