//! Rights: who may say what about a job, told a second time and without the rules themselves.
//!
//! The laws look at rows, which do not tell who gave the order. Here each order is looked at before it
//! is decided; one that nobody may give must not be granted.

use std::sync::Arc;

use rialto_core::answer::Answer;
use rialto_core::changes::Changes;
use rialto_core::command::{Approver, Canceller, Command, JobRef, ReportWork};
use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester, Selection};
use rialto_core::market::Deed;
use rialto_core::testkit::Scene;

/// Why an order must not be granted, as things stand before it is decided.
pub fn against(scene: &Scene, command: &Command) -> Option<&'static str> {
    match command {
        Command::Report(said) => report(scene, said),
        Command::Start { job, by } | Command::Respond { job, by, .. } => worker(scene, job, *by),
        Command::Defer { job, by, .. } => worker(scene, job, *by),
        Command::Decline { job, by, epoch, .. } => {
            worker(scene, job, *by).or_else(|| turn(scene, job, *epoch))
        }
        Command::Offer { job, by, .. } => offer(scene, job, *by),
        Command::AcceptOffer { job, by, .. } => accept(scene, job, *by),
        Command::Approve { job, by: Approver::Agent(by), .. } => found(scene, job)
            .filter(|job| job.for_whom() != Some(*by))
            .map(|_| "agreed to by somebody it is not for"),
        Command::Cancel { job, by, .. } => cancel(scene, job, *by),
        Command::Post(order) => match &order.deed {
            Deed::Report(said) => report(scene, said),
            Deed::Offer { job, by, .. } => offer(scene, job, *by),
            Deed::Decline { job, by } => {
                let concerned = |job: &Job| job.worker() == Some(*by) || job.asked.contains(by);
                let other = found(scene, job).filter(|job| !concerned(job));
                other.map(|_| "declined by somebody who was never asked")
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether an order was granted: not refused, and not an answer told again.
pub fn is_granted(changes: &Changes, answer: &Answer) -> bool {
    match answer {
        // What is posted is always answered; what it did is in the rows.
        Answer::Posted { .. } => !changes.jobs.is_empty(),
        Answer::Job { repeated: true, .. } => false,
        _ => true,
    }
}

fn found(scene: &Scene, wanted: &JobRef) -> Option<Arc<Job>> {
    match wanted {
        JobRef::Id(id) => scene.store.rows.jobs.get(id).cloned(),
        JobRef::Uuid(uuid) => scene.world.job_by_uuid(*uuid).cloned(),
        JobRef::Foreign { origin, id } => scene.world.job_by_name(*origin, id).cloned(),
    }
}

fn report(scene: &Scene, said: &ReportWork) -> Option<&'static str> {
    worker(scene, &said.job, said.by).or_else(|| turn(scene, &said.job, said.epoch))
}

fn worker(scene: &Scene, wanted: &JobRef, by: AgentId) -> Option<&'static str> {
    let job = found(scene, wanted)?;
    if job.state.is_final() {
        return Some("said of a job that has ended");
    }
    (job.worker() != Some(by)).then_some("said by somebody who does not have the job")
}

fn turn(scene: &Scene, wanted: &JobRef, epoch: Option<u32>) -> Option<&'static str> {
    let job = found(scene, wanted)?;
    epoch.is_some_and(|epoch| epoch != job.epoch).then_some("said of another turn")
}

fn offer(scene: &Scene, wanted: &JobRef, by: AgentId) -> Option<&'static str> {
    let job = found(scene, wanted)?;
    if job.state.is_final() {
        return Some("a price for a job that has ended");
    }
    job.asked_by(by).then_some("a price for a job of its own")
}

fn accept(scene: &Scene, wanted: &JobRef, by: AgentId) -> Option<&'static str> {
    let job = found(scene, wanted)?;
    if matches!(job.selection, Selection::Auction { .. }) {
        return Some("a sealed offer was taken by hand");
    }
    (!job.asked_by(by)).then_some("taken by somebody who did not ask")
}

fn cancel(scene: &Scene, wanted: &JobRef, by: Canceller) -> Option<&'static str> {
    let job = found(scene, wanted)?;
    let freely = job.policy.cancel_any_time;
    let may = match by {
        Canceller::Agent(agent) => job.asked_by(agent) || freely && job.for_whom() == Some(agent),
        Canceller::Guest => matches!(job.requester, Requester::Guest(_)),
        Canceller::Operator => true,
    };
    (!may || job.state.is_final()).then_some("called off by somebody who may not")
}
