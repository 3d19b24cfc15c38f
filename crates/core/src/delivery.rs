//! Deliveries: records the result of each attempt to send a notice to a URL.

use crate::agent::{Agent, Liveness, presence, probation};
use crate::answer::Answer;
use crate::command::PushEnd;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::NoticeId;
use crate::job::grace_period;
use crate::message;
use crate::notice::{Arrival, Kind, News, Push};

/// Records how an attempt ended.
pub fn done(draft: &mut Draft<'_>, notice: NoticeId, ended: PushEnd) -> Answer {
    let Some(push) = draft.world.push(notice).map(|push| Push::clone(push)) else {
        return Answer::Done;
    };
    let attempts = push.attempts + 1;
    match ended {
        PushEnd::Delivered { reply } => {
            arrived(draft, &push, attempts, reply);
            if let Some(agent) = push.to {
                grace_period::arrived(draft, agent, push.position);
                if push.news.kind() == Kind::Work {
                    message::knows_work(draft, agent);
                }
            }
            if let Some(agent) = own_endpoint(draft, &push).map(|agent| agent.id) {
                probation::passed(draft, agent);
            }
            // A successful delivery clears an earlier connection failure.
            if let Some(agent) = own_endpoint(draft, &push).map(|agent| agent.id)
                && draft.desk(agent).is_some_and(|desk| desk.presence.unreachable)
            {
                presence::seen(draft, agent);
            }
            draft.put_push(notice, None);
            draft.event(Event::PushDelivered { notice });
        }
        PushEnd::Over => {
            draft.put_push(notice, None);
            draft.event(Event::PushGivenUp { notice });
        }
        PushEnd::Failed { why, next_try } => {
            draft.put_push(notice, Some(Push { attempts, next_try, trouble: Some(why), ..push }));
            draft.event(match next_try {
                Some(_) => Event::PushFailed { notice, attempts },
                None => Event::PushGivenUp { notice },
            });
        }
        PushEnd::Gone => {
            switch_off(draft, &push);
            let trouble = Some("the endpoint is permanently gone".to_owned());
            draft.put_push(notice, Some(Push { attempts, next_try: None, trouble, ..push }));
            draft.event(Event::PushGivenUp { notice });
        }
    }
    Answer::Done
}

/// Keeps a record of a delivery to a registered agent, so that it can be listed. A delivered
/// message need not be read in the inbox any more.
fn arrived(draft: &mut Draft<'_>, push: &Push, attempts: u32, reply: Option<String>) {
    let Some(agent) = push.to else { return };
    if matches!(push.news, News::Message { .. }) {
        draft.mailbox_mut(agent).arrived(push.position);
        draft.settle_mailbox(agent);
    }
    let (notice, at, url) = (push.notice, draft.now, push.url.clone());
    draft.arrival(Arrival { notice, at, attempts, reply, url });
}

/// Retries a delivery now, even an abandoned one. Its count of attempts is kept.
pub fn again(draft: &mut Draft<'_>, notice: NoticeId) -> Answer {
    if let Some(push) = draft.world.push(notice) {
        let push = Push { next_try: Some(draft.now), ..Push::clone(push) };
        draft.put_push(notice, Some(push));
    }
    Answer::Done
}

/// An endpoint that reports it is gone is not called again. Its agent has to poll instead.
fn switch_off(draft: &mut Draft<'_>, push: &Push) {
    let own = own_endpoint(draft, push).filter(|agent| agent.active);
    let Some(agent) = own.cloned() else { return };
    if agent.liveness == Liveness::Reached {
        draft.event(Event::EndpointSwitchedOff { agent: agent.id });
        draft.put_agent(Agent { liveness: Liveness::Polls, ..agent });
    }
}

/// The agent, if the delivery went to its own endpoint; a callback may be elsewhere.
fn own_endpoint<'d>(draft: &'d Draft<'_>, push: &Push) -> Option<&'d Agent> {
    let agent = push.to.and_then(|id| draft.agent(id))?;
    let own = agent.endpoint.as_deref().is_some_and(|endpoint| push.url.starts_with(endpoint));
    own.then_some(agent)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::changes::Changes;
    use crate::command::{Command, OpenJob, SendMessage};
    use crate::id::{AgentId, JobId};
    use crate::testkit::{Scene, reached};
    use crate::time::Millis;

    /// A job whose notice is being delivered to an agent's endpoint.
    fn sent() -> (Scene, AgentId, JobId, NoticeId) {
        let mut scene = Scene::default();
        let client = scene.client("client", "rich", "10.00");
        let ada = scene.enrol(reached("ada", "acme", &[("sum", "0.10")])).unwrap();
        let callback = Some("https://client.example/done".to_owned());
        let order = scene.ask(client, "sum", "1.00");
        let job = scene.open(OpenJob { callback, ..order }).id;
        let notice = scene.world.pushes_due(scene.now).next().unwrap().notice;
        (scene, ada, job, notice)
    }

    fn tried(scene: &mut Scene, notice: NoticeId, ended: PushEnd) {
        scene.run(Command::PushDone { notice, ended }).unwrap();
    }

    #[test]
    fn work_is_pushed_to_an_endpoint_and_the_row_goes_with_the_arrival() {
        let (mut scene, ada, job, notice) = sent();
        let push = scene.world.push(notice).unwrap().clone();
        assert_eq!((push.to, push.url.as_str()), (Some(ada), "https://ada.example"));
        assert_eq!(push.news, News::Assigned { job, epoch: 1 });
        let done = Command::PushDone { notice, ended: PushEnd::Delivered { reply: None } };
        let arrivals = scene.decided(done).unwrap().0.arrivals;
        let [arrival] = arrivals.as_slice() else { panic!("one delivery, not {arrivals:?}") };
        assert_eq!((arrival.notice, arrival.attempts), (notice, 1));
        assert_eq!(arrival.url, "https://ada.example");
        assert!(scene.world.push(notice).is_none());
        assert_eq!(scene.world.next_push(), None);
        tried(&mut scene, notice, PushEnd::Delivered { reply: None });
    }

    #[test]
    fn a_message_that_waits_for_its_url_holds_no_text_in_memory() {
        let mut scene = Scene::default();
        let ann = scene.client("ann", "rich", "0");
        let ada = scene.enrol(reached("ada", "acme", &[])).unwrap();
        let text = "long ".repeat(100);
        let url = Some("https://ada.example".to_owned());
        let order = SendMessage { url, ..crate::testkit::said(ann, ada, &text) };
        scene.run(Command::Send(Box::new(order))).unwrap();
        let push = scene.world.pushes().next().unwrap().clone();
        assert!(!push.has_text(), "{push:?}");
        let notice = scene.store.rows.notices.iter().find(|one| one.id == push.notice).unwrap();
        assert!(matches!(&notice.news, News::Message { body, .. } if *body == text));
        assert_eq!(notice.news.without_text(), push.news);
    }

    #[test]
    fn the_text_in_a_push_of_an_older_version_is_dropped_when_it_is_read() {
        let mut scene = Scene::default();
        let (words, body) = (crate::testkit::HOME, "text".to_owned());
        let push = Push {
            notice: NoticeId(1),
            to: None,
            position: 0,
            at: scene.now,
            url: "https://ada.example".to_owned(),
            news: News::Message { from: None, words, body, follows: None },
            attempts: 1,
            next_try: Some(scene.now),
            trouble: None,
        };
        let pushes = [(push.notice, Some(Arc::new(push)))].into();
        scene.world.apply(&Changes { pushes, ..Changes::default() });
        let held = scene.world.pushes_due(scene.now).next().expect("it is still due");
        assert!(!held.has_text(), "{held:?}");
    }

    #[test]
    fn a_failed_push_is_tried_again_at_its_moment_and_then_given_up() {
        let (mut scene, _, _, notice) = sent();
        let later = scene.now.plus(Millis::seconds(5));
        let failed = |next_try| PushEnd::Failed { why: "refused".to_owned(), next_try };
        tried(&mut scene, notice, failed(Some(later)));
        assert_eq!(scene.world.next_push(), Some(later));
        assert_eq!(scene.world.pushes_due(scene.now).count(), 0);
        scene.sleep(Millis::seconds(5));
        assert_eq!(scene.world.pushes_due(scene.now).count(), 1);
        tried(&mut scene, notice, failed(None));
        assert_eq!(scene.world.next_push(), None);
        let given_up = scene.world.push(notice).unwrap();
        assert_eq!((given_up.attempts, given_up.next_try), (2, None));
        assert_eq!(given_up.trouble.as_deref(), Some("refused"));
    }

    #[test]
    fn an_endpoint_that_is_gone_is_switched_off_until_its_agent_registers_again() {
        let (mut scene, ada, _, notice) = sent();
        tried(&mut scene, notice, PushEnd::Gone);
        assert_eq!(scene.agent(ada).liveness, Liveness::Polls);
        scene.enrol(reached("ada", "acme", &[("sum", "0.10")])).unwrap();
        assert_eq!(scene.agent(ada).liveness, Liveness::Reached);
    }

    #[test]
    fn a_callback_that_is_gone_says_nothing_about_an_endpoint() {
        let (mut scene, ada, job, notice) = sent();
        tried(&mut scene, notice, PushEnd::Delivered { reply: None });
        scene.run(Command::MarkPending { job }).unwrap();
        scene.succeed(job, "0.10");
        let called = scene.world.pushes_due(scene.now).next().unwrap().notice;
        tried(&mut scene, called, PushEnd::Gone);
        assert_eq!(scene.agent(ada).liveness, Liveness::Reached);
    }

    #[test]
    fn an_arrival_makes_good_a_connection_that_failed() {
        let (mut scene, ada, job, first) = sent();
        let client = scene.world.agent_named(crate::testkit::HOME, "client").unwrap();
        let order = scene.ask(client, "sum", "1.00");
        scene.open(order);
        let second = scene.world.pushes_due(scene.now).find(|push| push.notice != first);
        let second = second.unwrap().notice;
        scene.unreachable(job);
        assert!(!scene.online(ada));
        tried(&mut scene, second, PushEnd::Delivered { reply: None });
        assert!(scene.online(ada));
    }
}
