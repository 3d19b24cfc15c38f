//! Who may sign what: looks up jobs among all that ever existed, by the ids their parties use.

use rialto_core::agent::Agent;
use rialto_core::id::JobId;
use rialto_core::job::{Job, Requester, Selection, State};
use rialto_core::signed_order::{Binding, Deed, GiveUp, Named, Signed, TakeOffer};
use rialto_core::testkit::Scene;

use super::{Right, people};

/// What a signed order may do.
pub fn right(scene: &Scene, order: &Signed) -> Right {
    let known = scene.world.agent_named(order.home, &order.native);
    let Some(signer) = known.and_then(|id| scene.world.agent(id)) else {
        let Some(newcomer) = &order.newcomer else { return Some("without a signer").into() };
        return first_words(scene, order, people::comes(scene, newcomer));
    };
    let right = Right { agent: Some(signer.id), ..Right::default() };
    if signer.home != order.home || signer.native != order.native {
        return Some("signed with a name that the hub gave to another agent").into();
    }
    if !signer.active && !matches!(order.deed, Deed::Introduce(_)) {
        return Some("signed by a removed agent").into();
    }
    if scene.world.is_suspended(signer.id) {
        return Some("signed by a suspended agent").into();
    }
    let next = scene.world.next.job;
    match &order.deed {
        Deed::Ask(_) => {
            let asks = Some((Requester::Agent(signer.id), next));
            Right { about: Some(vec![next]), asks, ..right }
        }
        Deed::Write { to } => {
            let blocks = scene.world.agent(*to).is_some_and(|to| to.blocks(signer.id));
            Right { against: blocks.then_some("written to an agent that blocks it"), ..right }
        }
        Deed::Introduce(_) | Deed::Nothing => Right { about: Some(Vec::new()), ..right },
        deed => {
            let about = meant(scene, signer, deed);
            let against = about.is_empty().then_some("signed by an agent it is not for");
            Right { against, about: Some(about), ..right }
        }
    }
}

/// No job can have named an agent that only now registers, so it has nothing to answer.
fn first_words(scene: &Scene, order: &Signed, comes: Right) -> Right {
    let next = scene.world.next.job;
    match &order.deed {
        Deed::Ask(_) => {
            let asks = comes.agent.map(|agent| (Requester::Agent(agent), next));
            Right { about: Some(vec![next]), asks, ..comes }
        }
        Deed::Write { .. } | Deed::Introduce(_) | Deed::Nothing => comes,
        _ => Some("answered by an agent that was not asked").into(),
    }
}

/// The jobs it can be about.
fn meant(scene: &Scene, signer: &Agent, deed: &Deed) -> Vec<JobId> {
    let jobs = scene.store.rows.jobs.values();
    let live = jobs.filter(|job| !job.state.is_final() && scene.now < job.deadline);
    let may = |job: &&std::sync::Arc<Job>| match deed {
        Deed::Offer(order) => is_asked(job, signer) && is(scene, job, signer, &order.request),
        Deed::Accept(order) => job.asked_by(signer.id) && has_offer(scene, job, order),
        Deed::Result(order) => does(job, signer) && is(scene, job, signer, &order.request),
        Deed::Fail(order) => gives_up(scene, job, signer, order),
        Deed::Ask(_) | Deed::Write { .. } | Deed::Introduce(_) | Deed::Nothing => false,
    };
    live.filter(may).map(|job| job.id).collect()
}

fn is_asked(job: &Job, signer: &Agent) -> bool {
    let asked = job.asked.contains(&signer.id) || job.worker() == Some(signer.id);
    asked && !job.asked_by(signer.id)
}

/// The worker, or the only agent asked, which may start at once.
fn does(job: &Job, signer: &Agent) -> bool {
    match job.state {
        State::Assigned | State::Running => job.worker() == Some(signer.id),
        State::Open => {
            let offers_only = matches!(job.selection, Selection::Asked { offers_only: true, .. });
            job.asked == [signer.id] && job.declined.is_empty() && !offers_only
        }
        _ => false,
    }
}

/// An order that names neither this hub nor the payee needs an offer that was read here.
fn has_offer(scene: &Scene, job: &Job, order: &TakeOffer) -> bool {
    let Named { id, with } = &order.offer;
    let named = job.offers.iter().filter(|offer| offer.name == *id);
    let mut standing = named.filter(|offer| with.is_none_or(|with| offer.by == with));
    let read = match (order.binding, &job.requester) {
        (Binding::ReadTo(read), Requester::Agent(to)) => read.max(scene.world.mailbox(*to).read()),
        _ => u64::MAX,
    };
    let known = |at: Option<u64>| at.is_none_or(|at| at <= read);
    job.state == State::Negotiating
        && standing.any(|offer| {
            job.asked.contains(&offer.by) && (offer.price.is_zero() || known(offer.told_at))
        })
}

/// The requester before work starts; an agent that was asked, or the worker.
fn gives_up(scene: &Scene, job: &Job, signer: &Agent, order: &GiveUp) -> bool {
    let Named { id, with } = &order.request;
    let waits = matches!(job.state, State::Open | State::Negotiating);
    if job.asked_by(signer.id) {
        let other = with.is_none_or(|with| {
            let said_no = job.declined.contains(&with);
            said_no || job.asked.contains(&with) || job.worker() == Some(with)
        });
        return waits && other && is_named(job, signer, id);
    }
    let may = does(job, signer) || waits && job.asked.contains(&signer.id);
    may && is(scene, job, signer, &order.request)
}

/// Whether an agent that was asked knows the job by this id: the requester's own, or the hub's for
/// a job from elsewhere.
fn is(scene: &Scene, job: &Job, signer: &Agent, wanted: &Named) -> bool {
    let with = wanted.with.is_none_or(|with| job.asked_by(with));
    let elsewhere = job.origin != signer.home && job.uuid.to_string() == wanted.id;
    let Requester::Agent(requester) = job.requester else { return with && elsewhere };
    let named = scene.world.agent(requester).is_some_and(|one| is_named(job, one, &wanted.id));
    with && (named || elsewhere)
}

fn is_named(job: &Job, requester: &Agent, id: &str) -> bool {
    let own = job.foreign.strip_prefix(&requester.native);
    job.origin == requester.home && own.and_then(|own| own.strip_prefix('/')) == Some(id)
}
