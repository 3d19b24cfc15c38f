//! End invariants: the requester gets exactly one notice of the end, in the same command, at the
//! right URL.

use std::sync::Arc;

use crate::changes::Changes;
use crate::id::NoticeId;
use crate::job::{Job, Requester, Selection, State};
use crate::notice::{Notice, NoticeKind};
use crate::world::World;

pub fn check(changes: &Changes, world: &World) {
    for job in changes.jobs.values() {
        let news = NoticeKind::Ended { job: job.id };
        let told: Vec<&Arc<Notice>> =
            changes.notices.iter().filter(|notice| notice.news == news).collect();
        // A withdrawn job never existed, so there is no notice.
        if !job.state.is_final() || job.state == State::Withdrawn {
            assert!(told.is_empty(), "end notice without an end: {job:?}");
            continue;
        }
        if job.policy.requester.follows_log {
            assert!(told.is_empty(), "a requester that follows the log gets no notice: {job:?}");
            continue;
        }
        let url = told_at(job, world);
        match (&told[..], &job.request.requester) {
            ([], Requester::Guest(_)) => assert_eq!(url, None, "a guest was not notified: {job:?}"),
            ([], Requester::Agent(_)) => heard_otherwise(job, changes, world),
            ([one], requester) => {
                let to = one.to.map(Requester::Agent);
                let known = matches!(requester, Requester::Agent(_));
                assert_eq!(to.as_ref(), Some(requester).filter(|_| known), "sent to another agent");
                pushed(one.id, url, changes);
            }
            (more, _) => panic!("notified {} times: {job:?}", more.len()),
        }
    }
}

/// A requester of the same protocol as the party that ended the job gets the original text. A
/// requester that ended it itself gets no notice.
fn heard_otherwise(job: &Job, changes: &Changes, world: &World) {
    let Requester::Agent(requester) = job.request.requester else { return };
    let agent = world.agent(requester).expect("the requester is registered");
    let words = |notice: &&Arc<Notice>| match &notice.news {
        NoticeKind::Message { from, protocol: words, .. } => {
            *from != Some(requester) && *words == agent.home
        }
        _ => false,
    };
    let to = changes.notices.iter().filter(|notice| notice.to == Some(requester));
    match &to.filter(words).collect::<Vec<_>>()[..] {
        [] => {
            let own = job.policy.requester.cancels_any_time || is_asked(job);
            assert!(own && job.state == State::Cancelled, "no notice was sent: {job:?}");
        }
        [one] => pushed(one.id, agent.delivery_url(), changes),
        more => panic!("notified {} times: {job:?}", more.len()),
    }
}

/// A notice is delivered to a URL exactly when there is one.
fn pushed(notice: NoticeId, url: Option<String>, changes: &Changes) {
    let push = changes.deliveries.get(&notice).and_then(Option::as_ref);
    assert_eq!(push.map(|push| &push.url), url.as_ref(), "delivered to another URL");
}

/// The URL for the requester's notice: the agent's endpoint in protocols that always deliver there,
/// otherwise the job's callback if the requester was answered that it has to wait.
fn told_at(job: &Job, world: &World) -> Option<String> {
    match job.request.requester {
        Requester::Agent(agent) if is_asked(job) || job.policy.requester.answered_at_once => {
            world.agent(agent).filter(|agent| agent.home == job.request.origin)?.delivery_url()
        }
        _ => job.request.callback.clone().filter(|_| job.pending),
    }
}

fn is_asked(job: &Job) -> bool {
    matches!(job.selection, Selection::Invited { .. })
}
