//! The entry point of core: decides one command, given the world and the time.
//!
//! This file only dispatches. The rules are in the modules of their nouns.

use crate::agent::{registration, presence, probation, status, secret, suspension};
use crate::alias::{Digest, Target, claim};
use crate::answer::Answer;
use crate::changes::Changes;
use crate::command::{Command, JobRef, OpenJob, Response, Subject, Timer};
use crate::draft::Draft;
use crate::id::{AgentId, JobId, TransferId};
use crate::job::{Requester, request, end, grace_period, offer, open, acceptance, work};
use crate::ledger::accounts;
use crate::refusal::Refusal;
use crate::signed_order::{Deed, GiveResult, GiveUp, Named, Signed, Whom};
use crate::time::{Millis, Timestamp};
use crate::world::World;
use crate::world::footprint;
use crate::{market, idempotency, message, delivery, signed_order};

/// Decides one command.
pub fn decide(
    world: &World,
    command: Command,
    now: Timestamp,
) -> Result<(Changes, Answer), Refusal> {
    let unchecked = footprint::is_always_accepted(&command);
    let fits = |changes: &Changes| match unchecked {
        true => Ok(()),
        false => footprint::check(world, changes),
    };
    if let Command::Post(order) = command {
        let (changes, answer) = market::submission::post(world, *order, now);
        // Nothing is recorded, so the same order can be submitted later.
        fits(&changes)?;
        return Ok((changes, answer));
    }
    let mut draft = Draft::new(world, now);
    draft.by_operator = command.is_by_operator();
    let answer = dispatch(&mut draft, command)?;
    market::publish::rest(&mut draft);
    let changes = draft.finish();
    fits(&changes)?;
    Ok((changes, answer))
}

fn dispatch(draft: &mut Draft<'_>, command: Command) -> Result<Answer, Refusal> {
    match command {
        Command::Enrol(order) => registration::enrol(draft, *order),
        Command::Remove { agent, by_operator } => registration::remove(draft, agent, by_operator),
        Command::IssueKey { holder, hash, retire_others, .. } => {
            registration::issue_key(draft, holder, hash, retire_others);
            Ok(Answer::Done)
        }
        Command::RevokeKeys { agent, .. } => {
            registration::end_keys(draft, agent, Millis(0));
            draft.event(crate::event::Event::KeyRevoked { agent });
            Ok(Answer::Done)
        }
        Command::Suspend { subject, suspended } => suspension::set(draft, subject, suspended),
        Command::BeginEpoch => {
            draft.next.epoch += 1;
            draft.event(crate::event::Event::HubRestored { epoch: draft.next.epoch });
            Ok(Answer::Done)
        }
        Command::RenewSecret { agent } => secret::renew(draft, agent),
        Command::Beat { agent } => {
            known(draft, agent)?;
            presence::beat(draft, agent);
            Ok(registration::shown(draft, agent))
        }
        Command::Return { agent } => {
            known(draft, agent)?;
            presence::seen(draft, agent);
            probation::passed(draft, agent);
            Ok(Answer::Done)
        }
        Command::OpenAccount { name } => accounts::open_account(draft, &name),
        Command::Grant { name, amount } => accounts::grant(draft, &name, amount),
        Command::Burn { name, amount } => accounts::burn(draft, &name, amount),
        Command::Pay(pay) => accounts::pay(draft, *pay),
        Command::OpenJob(job) => open::open(draft, *job),
        Command::Offer { job, by, price, valid_for } => {
            suspension::refuse(draft, by)?;
            offer::make(draft, &job, by, price, ("", valid_for))
        }
        Command::AcceptOffer { job, by, offer } => {
            suspension::refuse(draft, by)?;
            offer::accept(draft, &job, by, offer)
        }
        Command::Start { job, by } => work::start(draft, &job, by),
        Command::Report(said) => work::report(draft, *said),
        Command::Respond { job, by, said } => {
            if matches!(said, Response::Accept { .. }) {
                suspension::refuse(draft, by)?;
            }
            acceptance::respond(draft, &job, by, said)
        }
        Command::Approve { job, by, yes } => acceptance::approve(draft, &job, by, yes),
        Command::Stand { agent, told } => {
            known(draft, agent)?;
            status::hear(draft, agent, told)?;
            Ok(registration::shown(draft, agent))
        }
        Command::Boast { agent, words } => {
            known(draft, agent)?;
            status::boast(draft, agent, words);
            Ok(registration::shown(draft, agent))
        }
        Command::Decline { job, by, epoch, reason } => {
            work::decline(draft, &job, by, epoch, reason)
        }
        Command::Defer { job, by, until } => work::defer(draft, &job, by, until),
        Command::HandOver { agent, jobs } => {
            known(draft, agent)?;
            Ok(work::hand_over(draft, agent, &jobs))
        }
        Command::Show { agent, jobs } => {
            known(draft, agent)?;
            message::knows_work(draft, agent);
            grace_period::shown(draft, agent, &jobs);
            Ok(Answer::Done)
        }
        Command::MarkPending { job } => work::mark_pending(draft, job),
        Command::Unreachable { job, epoch } => work::unreachable(draft, job, epoch),
        Command::Cancel { job, by, reason } => end::cancel(draft, &job, by, reason),
        Command::Requeue { job } => end::requeue(draft, &job),
        Command::Signed(order) => signed_order::take(draft, *order),
        // Handled above with its own drafts, because a refusal is part of the market's record.
        Command::Post(_) => Ok(Answer::Done),
        Command::Name { agent, aliases } => registration::name(draft, agent, aliases),
        Command::Send(order) => message::send(draft, *order),
        Command::Ack { agent, up_to } => {
            known(draft, agent)?;
            Ok(message::ack(draft, agent, up_to))
        }
        Command::Present { agent, up_to } => {
            known(draft, agent)?;
            Ok(message::present(draft, agent, up_to))
        }
        Command::Block { agent, whom, blocked } => message::block(draft, agent, whom, blocked),
        Command::PushAgain { notice } => Ok(delivery::again(draft, notice)),
        Command::PushDone { notice, ended } => Ok(delivery::done(draft, notice, ended)),
        Command::Remember(order) => idempotency::remember(draft, *order),
        Command::Tick(Timer::Job(job)) => end::overdue(draft, job),
        Command::Tick(Timer::Agent(agent)) => probation::over(draft, agent),
    }
}

/// Refuses unknown agents, so that no state row is created for them.
fn known(draft: &Draft<'_>, agent: AgentId) -> Result<(), Refusal> {
    draft.agent(agent).filter(|agent| agent.active).map(|_| ()).ok_or(Refusal::NoSuchAgent)
}

/// A row that must be loaded before a command can be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The full row of an agent that has left.
    Agent(AgentId),
    Claim(Digest),
    Job(JobId),
    Transfer(TransferId),
}

/// The rows to load before the command can be decided. Call it again after loading: a claim may
/// name a further row.
pub fn needs(world: &World, command: &Command) -> Vec<Need> {
    let mut wants = Wants { world, needs: Vec::new() };
    match command {
        Command::OpenJob(order) => wants.opened(order),
        Command::Pay(order) => {
            wants.claim(claim::transfer(order.origin, &order.foreign));
            if let Some(job) = &order.job {
                wants.claim(claim::job(order.origin, job));
                if let Some(payer) = world.owner_named(&order.from) {
                    wants.claim(claim::payment(order.origin, payer, job));
                }
            }
        }
        Command::Send(order) => {
            if let Some(turn) = &order.turn {
                wants.claim(claim::turn(order.from, order.to, turn));
            }
        }
        Command::Suspend { subject: Subject::Agent(id), .. } => wants.whole_agent(*id),
        Command::Signed(order) => wants.signed(order),
        Command::Post(order) => wants.posted(order),
        Command::Report(said) => wants.named(&said.job),
        Command::Respond { job, said, .. } => {
            wants.named(job);
            if let Response::Accept { called: Some(name), .. } = said {
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
        Command::MarkPending { job } | Command::Unreachable { job, .. } => wants.job(*job),
        _ => {}
    }
    wants.needs
}

struct Wants<'w> {
    world: &'w World,
    needs: Vec<Need>,
}

impl Wants<'_> {
    fn claim(&mut self, digest: Digest) {
        if !self.world.knows_claim(digest) {
            self.needs.push(Need::Claim(digest));
        }
        match self.world.claim(digest).map(|found| found.target) {
            Some(Target::Job(id) | Target::Offer { job: id, .. }) => self.job(id),
            Some(Target::Transfer(id)) if self.world.transfer(id).is_none() => {
                self.needs.push(Need::Transfer(id));
            }
            _ => {}
        }
    }

    /// The ids that its requester chose for a job.
    fn opened(&mut self, order: &OpenJob) {
        self.claim(claim::job(order.origin, &order.foreign));
        if let Some(id) = &order.request_id {
            self.claim(claim::request(order.origin, id));
        }
    }

    /// The order's own id, and the job it is about.
    fn posted(&mut self, order: &market::Post) {
        self.claim(claim::posted(order.market, &order.id));
        match &order.deed {
            market::Deed::Open(opening) => self.opened(&opening.order),
            market::Deed::Report(said) => self.named(&said.job),
            market::Deed::Decline { job, .. } | market::Deed::Offer { job, .. } => self.named(job),
            market::Deed::Enrol(_)
            | market::Deed::Read { .. }
            | market::Deed::Dispatch
            | market::Deed::Nothing => {}
        }
    }

    /// The order's own id, and the rows it names.
    fn signed(&mut self, order: &Signed) {
        let name = claim::signed(order.home, &order.native, &order.id);
        self.claim(name);
        let by = self.world.agent_named(order.home, &order.native);
        match (&order.deed, by) {
            (Deed::Introduce(_), Some(by)) => self.whole_agent(by),
            (Deed::Ask(ask), _) => {
                let best = request::best(self.world, by, ask);
                let one = match ask.to {
                    Whom::Agent(one) => Some(one),
                    Whom::Best { .. } => None,
                };
                for provider in best.into_iter().chain(one) {
                    self.claim(claim::asked(provider, &order.id));
                }
            }
            (Deed::Offer(offer), Some(by)) => {
                self.asked(by, &offer.request);
                if let Some(requester) = self.requester(by, &offer.request) {
                    self.claim(claim::offer(requester, None, &order.id));
                    self.claim(claim::offer(requester, Some(by), &order.id));
                }
            }
            (Deed::Accept(accept), Some(by)) => {
                let Named { id, with } = &accept.offer;
                self.claim(claim::offer(by, *with, id));
                self.claim(claim::offer(by, None, id));
            }
            (Deed::Result(GiveResult { request, .. }), Some(by)) => self.asked(by, request),
            (Deed::Fail(GiveUp { request, .. }), Some(by)) => {
                self.asked(by, request);
                self.own(by, &request.id);
            }
            _ => {}
        }
    }

    /// The full row of an agent. It is not in memory once the agent has left.
    fn whole_agent(&mut self, id: AgentId) {
        if self.world.whole_agent(id).is_none() {
            self.needs.push(Need::Agent(id));
        }
    }

    /// A job the agent was invited to do.
    fn asked(&mut self, by: AgentId, wanted: &Named) {
        self.claim(claim::asked(by, &wanted.id));
        if let Some(with) = wanted.with {
            self.own(with, &wanted.id);
        }
        if let Ok(uuid) = wanted.id.parse() {
            self.named(&JobRef::Uuid(uuid));
        }
    }

    /// A job the agent requested.
    fn own(&mut self, requester: AgentId, id: &str) {
        if let Some((origin, id)) = request::own_name(self.world, requester, id) {
            self.named(&JobRef::Foreign { origin, id });
        }
    }

    /// The job's requester, once the job is loaded.
    fn requester(&self, by: AgentId, wanted: &Named) -> Option<AgentId> {
        let id = match self.world.claim(claim::asked(by, &wanted.id))?.target {
            _ if wanted.with.is_some() => return wanted.with,
            Target::Job(id) => id,
            _ => request::only_called(self.world, by, &wanted.id)?.id,
        };
        match self.world.job(id)?.requester {
            Requester::Agent(agent) => Some(agent),
            Requester::Guest(_) => None,
        }
    }

    fn job(&mut self, id: JobId) {
        if self.world.job(id).is_none() {
            self.needs.push(Need::Job(id));
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
