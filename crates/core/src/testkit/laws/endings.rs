//! The laws of the end: whoever asked hears of it once, in the same step, wherever it wants to.

use std::sync::Arc;

use crate::changes::Changes;
use crate::id::NoticeId;
use crate::job::{Job, Requester, Selection, State};
use crate::notice::{News, Notice};
use crate::world::World;

pub fn check(changes: &Changes, world: &World) {
    for job in changes.jobs.values() {
        let news = News::Ended { job: job.id };
        let told: Vec<&Arc<Notice>> =
            changes.notices.iter().filter(|notice| notice.news == news).collect();
        // What was taken back never was, and there is nothing to tell.
        if !job.state.is_final() || job.state == State::Withdrawn {
            assert!(told.is_empty(), "told of an end that is none: {job:?}");
            continue;
        }
        let url = told_at(job, world);
        match (&told[..], &job.requester) {
            ([], Requester::Guest(_)) => assert_eq!(url, None, "a guest was not told: {job:?}"),
            ([], Requester::Agent(_)) => heard_otherwise(job, changes, world),
            ([one], requester) => {
                let to = one.to.map(Requester::Agent);
                let known = matches!(requester, Requester::Agent(_));
                assert_eq!(to.as_ref(), Some(requester).filter(|_| known), "told to another");
                pushed(one.id, url, changes);
            }
            (more, _) => panic!("told {} times: {job:?}", more.len()),
        }
    }
}

/// Whoever speaks the protocol of who ended it reads those very words; who ended it itself knows.
fn heard_otherwise(job: &Job, changes: &Changes, world: &World) {
    let Requester::Agent(requester) = job.requester else { return };
    let agent = world.agent(requester).expect("whoever asks is known");
    let words = |notice: &&Arc<Notice>| match &notice.news {
        News::Message { from, words, .. } => *from != Some(requester) && *words == agent.home,
        _ => false,
    };
    let to = changes.notices.iter().filter(|notice| notice.to == Some(requester));
    match &to.filter(words).collect::<Vec<_>>()[..] {
        [] => {
            let own = job.policy.cancel_any_time || is_asked(job);
            assert!(own && job.state == State::Cancelled, "nobody was told: {job:?}");
        }
        [one] => pushed(one.id, agent.push_url(), changes),
        more => panic!("told {} times: {job:?}", more.len()),
    }
}

/// What is told goes to a URL exactly when there is one.
fn pushed(notice: NoticeId, url: Option<String>, changes: &Changes) {
    let push = changes.pushes.get(&notice).and_then(Option::as_ref);
    assert_eq!(push.map(|push| &push.url), url.as_ref(), "told at another place");
}

/// Where the requester wants to hear of it: who talks all the time, wherever it is reached; anybody
/// else at the callback of this job, if it was told to wait.
fn told_at(job: &Job, world: &World) -> Option<String> {
    match job.requester {
        Requester::Agent(agent) if is_asked(job) || job.policy.presence_first => {
            world.agent(agent).filter(|agent| agent.home == job.origin)?.push_url()
        }
        _ => job.callback.clone().filter(|_| job.pending),
    }
}

fn is_asked(job: &Job) -> bool {
    matches!(job.selection, Selection::Asked { .. })
}
