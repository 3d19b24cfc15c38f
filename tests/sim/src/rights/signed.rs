//! Who may sign what: looks up jobs among all that ever existed, by the ids their parties use.

use rialto_core::agent::Agent;
use rialto_core::command::{
    AbandonJob, AcceptOffer, AcceptedOffer, Command, ExternalRef, JobRef, PaymentBinding,
};
use rialto_core::envelope::Signature;
use rialto_core::id::JobId;
use rialto_core::job::{Job, Requester, Selection, State};
use rialto_core::testkit::TestHub;

use super::{Right, people};

/// What a signed order may do.
pub fn right(scene: &TestHub, signature: &Signature, command: &Command) -> Right {
    let known = scene.world.agent_by_alias(signature.home, &signature.native_id);
    let Some(signer) = known.and_then(|id| scene.world.agent(id)) else {
        let Some(new_agent) = &signature.registration else {
            return Some("without a signer").into();
        };
        return first_words(scene, command, people::comes(scene, new_agent));
    };
    let right = Right { agent: Some(signer.id), ..Right::default() };
    if signer.home != signature.home || signer.native_id != signature.native_id {
        return Some("signed with a name that the hub gave to another agent").into();
    }
    if !signer.active && !matches!(command, Command::UpdateProfile { .. }) {
        return Some("signed by a removed agent").into();
    }
    if scene.world.is_suspended(signer.id) {
        return Some("signed by a suspended agent").into();
    }
    let next = scene.world.next.job;
    match command {
        Command::RequestJob(_) => {
            let asks = Some((Requester::Agent(signer.id), next));
            Right { about: Some(vec![next]), asks, ..right }
        }
        Command::Forward { to } => {
            let blocks = scene.world.agent(*to).is_some_and(|to| to.blocks(signer.id));
            Right { against: blocks.then_some("written to an agent that blocks it"), ..right }
        }
        Command::UpdateProfile { .. } | Command::RecordOnly => {
            Right { about: Some(Vec::new()), ..right }
        }
        command => {
            let about = meant(scene, signer, command);
            let against = about.is_empty().then_some("signed by an agent it is not for");
            Right { against, about: Some(about), ..right }
        }
    }
}

/// No job can have named an agent that only now registers, so it has nothing to answer.
fn first_words(scene: &TestHub, command: &Command, comes: Right) -> Right {
    let next = scene.world.next.job;
    match command {
        Command::RequestJob(_) => {
            let asks = comes.agent.map(|agent| (Requester::Agent(agent), next));
            Right { about: Some(vec![next]), asks, ..comes }
        }
        Command::Forward { .. } | Command::UpdateProfile { .. } | Command::RecordOnly => comes,
        _ => Some("answered by an agent that was not asked").into(),
    }
}

/// The jobs it can be about.
fn meant(scene: &TestHub, signer: &Agent, command: &Command) -> Vec<JobId> {
    let jobs = scene.store.rows.jobs.values();
    let live = jobs.filter(|job| !job.state.is_final() && scene.now < job.request.deadline);
    let may = |job: &&std::sync::Arc<Job>| match command {
        Command::Offer { job: JobRef::Named(request), .. } => {
            is_asked(job, signer) && is(scene, job, signer, request)
        }
        Command::AcceptOffer(order) => {
            job.is_requested_by(signer.id) && has_offer(scene, job, order)
        }
        Command::ReportResult(report) => match &report.job {
            JobRef::Named(request) => does(job, signer) && is(scene, job, signer, request),
            _ => false,
        },
        Command::AbandonJob(order) => gives_up(scene, job, signer, order),
        _ => false,
    };
    live.filter(may).map(|job| job.id).collect()
}

fn is_asked(job: &Job, signer: &Agent) -> bool {
    let asked = job.candidates.invited.contains(&signer.id) || job.worker() == Some(signer.id);
    asked && !job.is_requested_by(signer.id)
}

/// The worker, or the only agent asked, which may start at once.
fn does(job: &Job, signer: &Agent) -> bool {
    match job.state {
        State::Assigned | State::Running | State::InputRequired { .. } => {
            job.worker() == Some(signer.id)
        }
        State::Open => {
            let offers_only = matches!(job.selection, Selection::Invited { offers_only: true, .. });
            job.candidates.invited == [signer.id]
                && job.candidates.declined.is_empty()
                && !offers_only
        }
        _ => false,
    }
}

/// An order that names neither this hub nor the payee needs an offer that was read here.
fn has_offer(scene: &TestHub, job: &Job, order: &AcceptOffer) -> bool {
    let AcceptedOffer::Named(ExternalRef { id, counterparty: with }) = &order.offer else {
        return false;
    };
    let named = job.candidates.offers.iter().filter(|offer| offer.name == *id);
    let mut standing = named.filter(|offer| with.is_none_or(|with| offer.by == with));
    let read = match (order.binding, &job.request.requester) {
        (PaymentBinding::ReadUpTo(read), Requester::Agent(to)) => {
            read.max(scene.world.inbox(*to).read_position())
        }
        _ => u64::MAX,
    };
    let known = |at: Option<u64>| at.is_none_or(|at| at <= read);
    job.state == State::Negotiating
        && standing.any(|offer| {
            job.candidates.invited.contains(&offer.by)
                && (offer.price.is_zero() || known(offer.inbox_position))
        })
}

/// The requester before work starts; an agent that was asked, or the worker.
fn gives_up(scene: &TestHub, job: &Job, signer: &Agent, order: &AbandonJob) -> bool {
    let ExternalRef { id, counterparty: with } = &order.request;
    let waits = matches!(job.state, State::Open | State::Negotiating);
    if job.is_requested_by(signer.id) {
        let other = with.is_none_or(|with| {
            let said_no = job.candidates.declined.contains(&with);
            said_no || job.candidates.invited.contains(&with) || job.worker() == Some(with)
        });
        return waits && other && is_named(job, signer, id);
    }
    let may = does(job, signer) || waits && job.candidates.invited.contains(&signer.id);
    may && is(scene, job, signer, &order.request)
}

/// Whether an agent that was asked knows the job by this id: the requester's own, or the hub's for
/// a job from elsewhere.
fn is(scene: &TestHub, job: &Job, signer: &Agent, wanted: &ExternalRef) -> bool {
    let with = wanted.counterparty.is_none_or(|with| job.is_requested_by(with));
    let elsewhere = job.request.origin != signer.home && job.uuid.to_string() == wanted.id;
    let Requester::Agent(requester) = job.request.requester else { return with && elsewhere };
    let named = scene.world.agent(requester).is_some_and(|one| is_named(job, one, &wanted.id));
    with && (named || elsewhere)
}

fn is_named(job: &Job, requester: &Agent, id: &str) -> bool {
    let own = job.request.foreign_id.strip_prefix(&requester.native_id);
    job.request.origin == requester.home && own.and_then(|own| own.strip_prefix('/')) == Some(id)
}
