//! The entry point of core: decides one command, given the world and the time.
//!
//! This file only dispatches. The rules are in the modules of their nouns.

use crate::agent::{presence, probation, registration, secret, status, suspension};
use crate::alias::{ClaimTarget, Digest, claim};
use crate::answer::Answer;
use crate::changes::Changes;
use crate::command::{Command, JobRef, OpenJob, SuspensionTarget, Timer, WorkerResponse};
use crate::draft::Draft;
use crate::id::{AgentId, JobId, TransferId};
use crate::job::{Requester, acceptance, end, grace_period, offer, open, request, work};
use crate::ledger::accounts;
use crate::refusal::Refusal;
use crate::signed_order::{
    AbandonJob, ExternalRef, RequestTarget, SendResult, SignedEnvelope, SignedOrder,
};
use crate::time::{Millis, Timestamp};
use crate::world::World;
use crate::world::footprint;
use crate::{delivery, idempotency, market, message, signed_order};

/// Decides one command.
pub fn decide(
    world: &World,
    command: Command,
    now: Timestamp,
) -> Result<(Changes, Answer), Refusal> {
    let unchecked = footprint::is_always_accepted(&command);
    let fits = |changes: &Changes| match unchecked {
        true => Ok(()),
        false => footprint::check_limits(world, changes),
    };
    if let Command::SubmitToMarket(order) = command {
        let (changes, answer) = market::submission::submit(world, *order, now);
        // Nothing is recorded, so the same order can be submitted later.
        fits(&changes)?;
        return Ok((changes, answer));
    }
    let mut draft = Draft::new(world, now);
    draft.by_operator = command.is_by_operator();
    let answer = dispatch(&mut draft, command)?;
    market::publish::publish_without_order(&mut draft);
    let changes = draft.into_changes();
    fits(&changes)?;
    Ok((changes, answer))
}

fn dispatch(draft: &mut Draft<'_>, command: Command) -> Result<Answer, Refusal> {
    match command {
        Command::Register(order) => registration::register(draft, *order),
        Command::Remove { agent, by_operator } => registration::remove(draft, agent, by_operator),
        Command::IssueKey { holder, hash, retire_others, .. } => {
            registration::issue_key(draft, holder, hash, retire_others);
            Ok(Answer::Done)
        }
        Command::RevokeKeys { agent, .. } => {
            registration::expire_keys(draft, agent, Millis(0));
            draft.add_event(crate::event::Event::KeyRevoked { agent });
            Ok(Answer::Done)
        }
        Command::SetSuspended { subject, suspended } => {
            suspension::set_suspended(draft, subject, suspended)
        }
        Command::BeginEpoch => {
            draft.next.epoch += 1;
            draft.add_event(crate::event::Event::HubRestored { epoch: draft.next.epoch });
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
        Command::Offer { job, by, price, valid_for } => {
            suspension::ensure_not_suspended(draft, by)?;
            offer::make_offer(draft, &job, by, price, ("", valid_for))
        }
        Command::AcceptOffer { job, by, offer } => {
            suspension::ensure_not_suspended(draft, by)?;
            offer::accept_offer(draft, &job, by, offer)
        }
        Command::Start { job, by } => work::start(draft, &job, by),
        Command::ReportResult(said) => work::report_result(draft, *said),
        Command::Respond { job, by, response: said } => {
            if matches!(said, WorkerResponse::Accept { .. }) {
                suspension::ensure_not_suspended(draft, by)?;
            }
            acceptance::respond(draft, &job, by, said)
        }
        Command::Approve { job, by, approved: yes } => acceptance::approve(draft, &job, by, yes),
        Command::ReportStatus { agent, status: told } => {
            ensure_registered(draft, agent)?;
            status::update_status(draft, agent, told)?;
            Ok(registration::agent_answer(draft, agent))
        }
        Command::ReportReputation { agent, text: words } => {
            ensure_registered(draft, agent)?;
            status::record_claimed_reputation(draft, agent, words);
            Ok(registration::agent_answer(draft, agent))
        }
        Command::Decline { job, by, epoch, reason } => {
            work::decline(draft, &job, by, epoch, reason)
        }
        Command::Defer { job, by, until } => work::defer(draft, &job, by, until),
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
        Command::ExecuteSigned(order) => signed_order::execute(draft, *order),
        // Handled above with its own drafts, because a refusal is part of the market's record.
        Command::SubmitToMarket(_) => Ok(Answer::Done),
        Command::AddAliases { agent, aliases } => registration::add_aliases(draft, agent, aliases),
        Command::SendMessage(order) => message::send(draft, *order),
        Command::Ack { agent, up_to } => {
            ensure_registered(draft, agent)?;
            Ok(message::ack(draft, agent, up_to))
        }
        Command::MarkPresented { agent, up_to } => {
            ensure_registered(draft, agent)?;
            Ok(message::mark_presented(draft, agent, up_to))
        }
        Command::SetBlocked { agent, other: whom, blocked } => {
            message::set_blocked(draft, agent, whom, blocked)
        }
        Command::RetryDelivery { notice } => Ok(delivery::retry_now(draft, notice)),
        Command::RecordDelivery { notice, result: ended } => {
            Ok(delivery::record_attempt(draft, notice, ended))
        }
        Command::SaveAnswer(order) => idempotency::save_answer(draft, *order),
        Command::FireTimer(Timer::Job(job)) => end::handle_due(draft, job),
        Command::FireTimer(Timer::Probation(agent)) => probation::expire(draft, agent),
    }
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
pub fn missing_rows(world: &World, command: &Command) -> Vec<MissingRow> {
    let mut wants = MissingRowFinder { world, missing: Vec::new() };
    match command {
        Command::OpenJob(order) => wants.opened(order),
        Command::Pay(order) => {
            wants.claim(claim::transfer(order.origin, &order.foreign_id));
            if let Some(job) = &order.job {
                wants.claim(claim::job(order.origin, job));
                if let Some(payer) = world.owner_by_name(&order.from) {
                    wants.claim(claim::payment(order.origin, payer, job));
                }
            }
        }
        Command::SendMessage(order) => {
            if let Some(turn) = &order.identity {
                wants.claim(claim::message(order.from, order.to, turn));
            }
        }
        Command::SetSuspended { subject: SuspensionTarget::Agent(id), .. } => {
            wants.whole_agent(*id)
        }
        Command::ExecuteSigned(order) => wants.signed(order),
        Command::SubmitToMarket(order) => wants.posted(order),
        Command::ReportResult(said) => wants.named(&said.job),
        Command::Respond { job, response: said, .. } => {
            wants.named(job);
            if let WorkerResponse::Accept { worker_job_id: Some(name), .. } = said {
                wants.claim(claim::job_uuid(*name));
            }
        }
        Command::Offer { job, .. }
        | Command::AcceptOffer { job, .. }
        | Command::Start { job, .. }
        | Command::Approve { job, .. }
        | Command::Decline { job, .. }
        | Command::Defer { job, .. }
        | Command::Cancel { job, .. }
        | Command::Requeue { job } => wants.named(job),
        // The job may have ended while this command was waiting in the lane.
        Command::MarkPending { job } | Command::MarkUnreachable { job, .. } => wants.job(*job),
        _ => {}
    }
    wants.missing
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
        match self.world.claim(digest).map(|found| found.target) {
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

    /// The order's own id, and the job it is about.
    fn posted(&mut self, order: &market::MarketSubmission) {
        self.claim(claim::market_order(order.market, &order.id));
        match &order.order {
            market::MarketOrder::OpenJob(opening) => self.opened(&opening.order),
            market::MarketOrder::ReportResult(said) => self.named(&said.job),
            market::MarketOrder::Decline { job, .. } | market::MarketOrder::Offer { job, .. } => {
                self.named(job)
            }
            market::MarketOrder::Register(_)
            | market::MarketOrder::Read { .. }
            | market::MarketOrder::Dispatch
            | market::MarketOrder::RecordOnly => {}
        }
    }

    /// The order's own id, and the rows it names.
    fn signed(&mut self, order: &SignedEnvelope) {
        let name = claim::signed_order(order.home, &order.native_id, &order.id);
        self.claim(name);
        let by = self.world.agent_by_alias(order.home, &order.native_id);
        match (&order.order, by) {
            (SignedOrder::UpdateProfile(_), Some(by)) => self.whole_agent(by),
            (SignedOrder::RequestJob(ask), _) => {
                let best = request::best_candidates(self.world, by, ask);
                let one = match ask.to {
                    RequestTarget::Agent(one) => Some(one),
                    RequestTarget::Best { .. } => None,
                };
                for provider in best.into_iter().chain(one) {
                    self.claim(claim::invited_job(provider, &order.id));
                }
            }
            (SignedOrder::Offer(offer), Some(by)) => {
                self.asked(by, &offer.request);
                if let Some(requester) = self.requester(by, &offer.request) {
                    self.claim(claim::offer(requester, None, &order.id));
                    self.claim(claim::offer(requester, Some(by), &order.id));
                }
            }
            (SignedOrder::Accept(accept), Some(by)) => {
                let ExternalRef { id, counterparty: with } = &accept.offer;
                self.claim(claim::offer(by, *with, id));
                self.claim(claim::offer(by, None, id));
            }
            (SignedOrder::Result(SendResult { request, .. }), Some(by)) => self.asked(by, request),
            (SignedOrder::Fail(AbandonJob { request, .. }), Some(by)) => {
                self.asked(by, request);
                self.own(by, &request.id);
            }
            _ => {}
        }
    }

    /// The full row of an agent. It is not in memory once the agent has left.
    fn whole_agent(&mut self, id: AgentId) {
        if self.world.full_agent(id).is_none() {
            self.missing.push(MissingRow::Agent(id));
        }
    }

    /// A job the agent was invited to do.
    fn asked(&mut self, by: AgentId, wanted: &ExternalRef) {
        self.claim(claim::invited_job(by, &wanted.id));
        if let Some(with) = wanted.counterparty {
            self.own(with, &wanted.id);
        }
        if let Ok(uuid) = wanted.id.parse() {
            self.named(&JobRef::Uuid(uuid));
        }
    }

    /// A job the agent requested.
    fn own(&mut self, requester: AgentId, id: &str) {
        if let Some((origin, id)) = request::requester_job_name(self.world, requester, id) {
            self.named(&JobRef::Foreign { origin, id });
        }
    }

    /// The job's requester, once the job is loaded.
    fn requester(&self, by: AgentId, wanted: &ExternalRef) -> Option<AgentId> {
        let id = match self.world.claim(claim::invited_job(by, &wanted.id))?.target {
            _ if wanted.counterparty.is_some() => return wanted.counterparty,
            ClaimTarget::Job(id) => id,
            _ => request::only_job_named(self.world, by, &wanted.id)?.id,
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
        }
    }
}
