//! Authorization: who may do what to a job or an agent, defined again and without the rules
//! themselves.
//!
//! The invariants look at rows, which do not show who sent the command. Here each command is
//! checked before it is decided: what is not allowed must not be granted, and what is granted must
//! be what was requested.

mod people;
mod signed;

use std::sync::Arc;

use rialto_core::agent::key::Holder;
use rialto_core::answer::Answer;
use rialto_core::changes::Changes;
use rialto_core::command::{
    AcceptedOffer, AnswerQuestion, Approver, Canceller, Command, JobRef, OpenJob, Registration,
    ReportResult,
};
use rialto_core::envelope::{Envelope, Proof};
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::{Job, Requester, Selection};
use rialto_core::testkit::TestHub;

/// How far a command may go in the state before it is decided. A field that is not set is no limit.
#[derive(Debug, Default)]
pub struct Right {
    /// Why it must not be granted at all.
    against: Option<&'static str>,
    /// Which jobs it may be about.
    about: Option<Vec<JobId>>,
    /// Which jobs it may return.
    hands: Option<Vec<JobId>>,
    /// For which requester it may open jobs, and the first of them.
    asks: Option<(Requester, JobId)>,
    /// Which agent's registration and keys it may change.
    agent: Option<AgentId>,
}

impl Right {
    /// What a command may do in the state before it is decided.
    pub fn of(scene: &TestHub, envelope: &Envelope) -> Self {
        match &envelope.proof {
            Proof::Credential | Proof::Key(_) => Self::of_command(scene, &envelope.command),
            Proof::Signature(signature) => signed::right(scene, signature, &envelope.command),
            Proof::Market(order) => posted(scene, order.registration.as_deref(), &envelope.command),
        }
    }

    fn of_command(scene: &TestHub, command: &Command) -> Self {
        match command {
            Command::Register(order) => people::enrol(scene, order),
            Command::OpenJob(order) => Self::of_opening(scene, order),
            Command::OpenJobWithWebhook(order) => Self::of_opening(scene, &order.job),
            Command::HandOver { agent, jobs } => {
                let has = |id: &&JobId| is_in_hand_of(scene, **id, *agent);
                Self { hands: Some(jobs.iter().filter(has).copied().collect()), ..Self::default() }
            }
            Command::SetBlocked { agent, .. } => Self { agent: Some(*agent), ..Self::default() },
            _ => against(scene, command).into(),
        }
    }

    fn of_opening(scene: &TestHub, order: &OpenJob) -> Self {
        let stopped = match order.requester {
            Requester::Agent(agent) => scene.world.is_suspended(agent),
            Requester::Guest(_) => false,
        };
        let against = stopped.then_some("requested by a suspended agent");
        let asks = Some((order.requester.clone(), scene.world.next.job));
        Self { against, asks, ..Self::default() }
    }

    /// Panics if a command was granted that is not allowed, or did more than was requested.
    pub fn is_kept(&self, scene: &TestHub, changes: &Changes, answer: &Answer) {
        if !is_granted(changes, answer) {
            return;
        }
        assert!(self.against.is_none(), "granted, but: {:?}", self.against);
        if let (Some(about), Answer::SignedOrder { job: Some(job), .. }) = (&self.about, answer) {
            assert!(about.contains(job), "{job} is not one of the jobs meant, {about:?}");
        }
        if let (Some(hands), Answer::Jobs(jobs)) = (&self.hands, answer) {
            let shown = jobs.iter().all(|job| hands.contains(&job.id));
            assert!(shown, "work of another agent was returned: {jobs:?}");
        }
        if let Some((requester, first)) = &self.asks {
            let opened = changes.jobs.range(first..);
            for (_, job) in opened {
                assert_eq!(job.request.requester, *requester, "opened for another requester");
            }
        }
        if let Some(agent) = self.agent {
            let own = changes.agents.keys().all(|one| *one == agent);
            assert!(own, "only {agent} was meant: {:?}", changes.agents);
            let own = changes.keys.values().all(|key| key.holder == Holder::Agent(agent));
            assert!(own, "only keys of {agent} were meant: {:?}", changes.keys);
            let known = scene.world.agent(agent).is_some();
            assert!(known || changes.agents.is_empty(), "{agent} is another agent");
        }
    }
}

impl From<Option<&'static str>> for Right {
    fn from(against: Option<&'static str>) -> Self {
        Self { against, ..Self::default() }
    }
}

fn posted(scene: &TestHub, new_agent: Option<&Registration>, command: &Command) -> Right {
    match command {
        Command::Register(order) => people::enrol(scene, order),
        Command::OpenJob(order) => {
            let comes = new_agent.map(|order| people::comes(scene, order)).unwrap_or_default();
            let requester = comes.agent.map(Requester::Agent);
            let requester = requester.unwrap_or_else(|| order.requester.clone());
            Right { asks: Some((requester, scene.world.next.job)), ..comes }
        }
        Command::ReportResult(said) => report(scene, said).into(),
        Command::Offer { job, by, .. } => offer(scene, job, *by).into(),
        Command::Pass { job, by } => {
            let concerned =
                |job: &Job| job.worker() == Some(*by) || job.candidates.invited.contains(by);
            let other = found(scene, job).filter(|job| !concerned(job));
            other.map(|_| "declined by an agent that was not asked").into()
        }
        Command::AckUnread { .. } | Command::DispatchQueue | Command::RecordOnly => {
            Right::default()
        }
        _ => Some("not an order of a market").into(),
    }
}

fn against(scene: &TestHub, command: &Command) -> Option<&'static str> {
    match command {
        Command::RecordDelivery { report: Some(report), .. } => {
            against(scene, &Command::from(report.clone()))
        }
        Command::ReportResult(said) => report(scene, said),
        Command::ReportProgress(order) => {
            worker(scene, &order.job, order.by).or_else(|| turn(scene, &order.job, order.epoch))
        }
        Command::AskQuestion(order) => {
            worker(scene, &order.job, order.by).or_else(|| turn(scene, &order.job, order.epoch))
        }
        Command::AskToSignIn(order) => {
            worker(scene, &order.job, order.by).or_else(|| turn(scene, &order.job, order.epoch))
        }
        Command::RecordHandover(order) => worker(scene, &order.job, order.by)
            .or_else(|| turn(scene, &order.job, Some(order.epoch))),
        Command::ReportOriginal(order) => against(scene, &Command::from(order.report.clone())),
        Command::AnswerQuestion(order) => answer(scene, order),
        Command::SendToWorker(order) => requester(scene, &order.job, order.by),
        Command::SetJobWebhook(order) => requester(scene, &order.job, order.by),
        Command::RemoveJobWebhook(order) => requester(scene, &order.job, order.by),
        Command::Start { job, by } | Command::Respond { job, by, .. } => worker(scene, job, *by),
        Command::Defer { job, by, .. } => worker(scene, job, *by),
        Command::Decline { job, by, epoch, .. } => {
            worker(scene, job, *by).or_else(|| turn(scene, job, *epoch))
        }
        Command::Offer { by, .. } if scene.world.is_suspended(*by) => {
            Some("a price offered by a suspended agent")
        }
        Command::Offer { job, by, .. } => offer(scene, job, *by),
        Command::AcceptOffer(order) if scene.world.is_suspended(order.by) => {
            Some("a price accepted by a suspended agent")
        }
        Command::AcceptOffer(order) => match &order.offer {
            AcceptedOffer::InJob { job, .. } => accept(scene, job, order.by),
            AcceptedOffer::Named(_) => None,
        },
        Command::Approve { job, by: Approver::Agent(by), .. } => found(scene, job)
            .filter(|job| job.intended_worker() != Some(*by))
            .map(|_| "approved by an agent that may not"),
        Command::Cancel { job, by, .. } => cancel(scene, job, *by),
        Command::SendMessage(order) => {
            let blocks = |from| scene.world.agent(order.to).is_some_and(|to| to.blocks(from));
            order.from.filter(|from| blocks(*from)).map(|_| "written to an agent that blocks it")
        }
        _ => None,
    }
}

/// Whether a command was granted: neither refused nor a replayed answer.
fn is_granted(changes: &Changes, answer: &Answer) -> bool {
    match answer {
        // Market orders are always answered; the rows show what they did.
        Answer::MarketOrder { .. } => !(changes.jobs.is_empty() && changes.agents.is_empty()),
        Answer::Job { repeated, .. } | Answer::SignedOrder { repeated, .. } => !repeated,
        Answer::Delivery { refused } => refused.is_none(),
        _ => true,
    }
}

fn found(scene: &TestHub, wanted: &JobRef) -> Option<Arc<Job>> {
    let jobs = &scene.store.rows.jobs;
    // The newest, since the id of a withdrawn job may be used again.
    let mut newest = jobs.values().rev();
    let found = match wanted {
        JobRef::Id(id) => jobs.get(id),
        JobRef::Uuid(uuid) => {
            newest.find(|job| job.uuid == *uuid || job.acceptance.worker_job_id == Some(*uuid))
        }
        JobRef::Foreign { origin, id } => {
            newest.find(|job| job.request.origin == *origin && job.request.foreign_id == *id)
        }
        JobRef::Named(_) => None,
    };
    found.cloned()
}

fn is_in_hand_of(scene: &TestHub, id: JobId, agent: AgentId) -> bool {
    let held = |job: &Arc<Job>| job.state.is_assigned();
    let job = scene.store.rows.jobs.get(&id).filter(|job| held(job));
    job.is_some_and(|job| job.worker() == Some(agent))
}

fn report(scene: &TestHub, said: &ReportResult) -> Option<&'static str> {
    worker(scene, &said.job, said.by).or_else(|| turn(scene, &said.job, said.epoch))
}

fn worker(scene: &TestHub, wanted: &JobRef, by: AgentId) -> Option<&'static str> {
    let job = found(scene, wanted)?;
    if job.state.is_final() {
        return Some("about a job that has ended");
    }
    (job.worker() != Some(by)).then_some("by an agent that does not have the job")
}

fn turn(scene: &TestHub, wanted: &JobRef, epoch: Option<u32>) -> Option<&'static str> {
    let job = found(scene, wanted)?;
    epoch.is_some_and(|epoch| epoch != job.epoch).then_some("about another assignment")
}

fn offer(scene: &TestHub, wanted: &JobRef, by: AgentId) -> Option<&'static str> {
    let job = found(scene, wanted)?;
    if job.state.is_final() {
        return Some("a price for a job that has ended");
    }
    job.is_requested_by(by).then_some("a price for a job of its own")
}

fn answer(scene: &TestHub, order: &AnswerQuestion) -> Option<&'static str> {
    let job = found(scene, &order.job)?;
    if job.open_question().is_none() {
        return Some("answered without an open question");
    }
    (!job.is_requested_by(order.by)).then_some("answered by an agent that is not the requester")
}

fn requester(scene: &TestHub, wanted: &JobRef, by: AgentId) -> Option<&'static str> {
    let job = found(scene, wanted)?;
    (!job.is_requested_by(by)).then_some("done by an agent that is not the requester")
}

fn accept(scene: &TestHub, wanted: &JobRef, by: AgentId) -> Option<&'static str> {
    let job = found(scene, wanted)?;
    if matches!(job.selection, Selection::Auction { .. }) {
        return Some("a sealed offer was accepted directly");
    }
    (!job.is_requested_by(by)).then_some("accepted by an agent that is not the requester")
}

fn cancel(scene: &TestHub, wanted: &JobRef, by: Canceller) -> Option<&'static str> {
    let job = found(scene, wanted)?;
    let freely = job.policy.requester.cancels_any_time;
    let may = match by {
        Canceller::Agent(agent) => {
            job.is_requested_by(agent) || freely && job.intended_worker() == Some(agent)
        }
        Canceller::Guest => matches!(job.request.requester, Requester::Guest(_)),
        Canceller::Operator => true,
    };
    (!may || job.state.is_final()).then_some("cancelled by a caller that may not")
}
