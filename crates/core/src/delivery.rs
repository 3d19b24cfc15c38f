//! Deliveries: records the result of each attempt to send a notice to a URL.

use crate::agent::{Agent, Liveness, presence, probation};
use crate::answer::Answer;
use crate::command::DeliveryResult;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::NoticeId;
use crate::job::{grace_period, webhook};
use crate::message;
use crate::notice::{CompletedDelivery, Delivery, NoticeClass, NoticeKind};

/// Records how an attempt ended.
pub fn record_attempt(draft: &mut Draft<'_>, notice: NoticeId, ended: DeliveryResult) {
    let Some(push) = draft.world.delivery(notice).map(|push| Delivery::clone(push)) else {
        return;
    };
    let attempts = push.attempts + 1;
    match ended {
        DeliveryResult::Delivered { reply } => {
            record_completed(draft, &push, attempts, reply);
            if let Some(agent) = push.to {
                grace_period::mark_delivered(draft, agent, push.position);
                if push.kind.class() == NoticeClass::Work {
                    message::knows_work(draft, agent);
                }
            }
            if let Some(agent) = own_endpoint(draft, &push).map(|agent| agent.id) {
                probation::clear(draft, agent);
            }
            // A successful delivery clears an earlier connection failure.
            if let Some(agent) = own_endpoint(draft, &push).map(|agent| agent.id)
                && draft
                    .agent_state(agent)
                    .is_some_and(|agent_state| agent_state.presence.unreachable)
            {
                presence::record_activity(draft, agent);
            }
            draft.put_delivery(notice, None);
            draft.add_event(Event::DeliverySucceeded { notice });
        }
        DeliveryResult::Obsolete => {
            draft.put_delivery(notice, None);
            draft.add_event(Event::DeliveryAbandoned { notice });
        }
        DeliveryResult::Failed { why, next_try } => {
            draft.put_delivery(
                notice,
                Some(Delivery { attempts, next_try, last_error: Some(why), ..push }),
            );
            draft.add_event(match next_try {
                Some(_) => Event::DeliveryFailed { notice, attempts },
                None => Event::DeliveryAbandoned { notice },
            });
        }
        DeliveryResult::EndpointGone => {
            disable_endpoint(draft, &push);
            if let NoticeKind::LogEntry { job, webhook, .. } = &push.kind {
                webhook::remove_gone(draft, *job, webhook);
            }
            let error = Some("the endpoint is permanently gone".to_owned());
            draft.put_delivery(
                notice,
                Some(Delivery { attempts, next_try: None, last_error: error, ..push }),
            );
            draft.add_event(Event::DeliveryAbandoned { notice });
        }
    }
}

/// Keeps a record of a delivery to a registered agent, so that it can be listed. A delivered
/// message need not be read in the inbox any more.
fn record_completed(draft: &mut Draft<'_>, push: &Delivery, attempts: u32, reply: Option<String>) {
    let Some(agent) = push.to else { return };
    if matches!(push.kind, NoticeKind::Message { .. }) {
        draft.inbox_mut(agent).mark_delivered(push.position);
        draft.persist_inbox(agent);
    }
    let (notice, at, url) = (push.notice, draft.now, push.url.clone());
    draft.add_completed_delivery(CompletedDelivery { notice, at, attempts, reply, url });
}

/// Retries a delivery now, even an abandoned one. Its count of attempts is kept.
pub fn retry_now(draft: &mut Draft<'_>, notice: NoticeId) -> Answer {
    if let Some(push) = draft.world.delivery(notice) {
        let push = Delivery { next_try: Some(draft.now), ..Delivery::clone(push) };
        draft.put_delivery(notice, Some(push));
    }
    Answer::Done
}

/// An endpoint that reports it is gone is not called again. Its agent has to poll instead.
fn disable_endpoint(draft: &mut Draft<'_>, push: &Delivery) {
    let own = own_endpoint(draft, push).filter(|agent| agent.active);
    let Some(agent) = own.cloned() else { return };
    if agent.liveness == Liveness::ByEndpoint {
        draft.add_event(Event::EndpointDisabled { agent: agent.id });
        draft.put_agent(Agent { liveness: Liveness::ByPolling, ..agent });
    }
}

/// The agent, if the delivery went to its own endpoint; a callback may be elsewhere.
fn own_endpoint<'d>(draft: &'d Draft<'_>, push: &Delivery) -> Option<&'d Agent> {
    let agent = push.to.and_then(|id| draft.agent(id))?;
    let own = agent.endpoint.as_deref().is_some_and(|endpoint| push.url.starts_with(endpoint));
    own.then_some(agent)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::changes::Changes;
    use crate::command::{Command, OpenJob, ReportResult, SendMessage, WorkerReport};
    use crate::id::{AgentId, JobId};
    use crate::job::State;
    use crate::testkit::{TestHub, registration_with_endpoint};
    use crate::time::Millis;

    /// A job whose notice is being delivered to an agent's endpoint.
    fn sent() -> (TestHub, AgentId, JobId, NoticeId) {
        let mut scene = TestHub::default();
        let client = scene.register_client("client", "rich", "10.00");
        let ada =
            scene.register(registration_with_endpoint("ada", "acme", &[("sum", "0.10")])).unwrap();
        let callback = Some("https://client.example/done".to_owned());
        let order = scene.job_order(client, "sum", "1.00");
        let job = scene.open_job(OpenJob { callback, ..order }).id;
        let notice = scene.world.deliveries_due(scene.now).next().unwrap().notice;
        (scene, ada, job, notice)
    }

    fn tried(scene: &mut TestHub, notice: NoticeId, ended: DeliveryResult) {
        scene.run(Command::RecordDelivery { notice, result: ended, report: None }).unwrap();
    }

    #[test]
    fn work_is_pushed_to_an_endpoint_and_the_row_goes_with_the_arrival() {
        let (mut scene, ada, job, notice) = sent();
        let push = scene.world.delivery(notice).unwrap().clone();
        assert_eq!((push.to, push.url.as_str()), (Some(ada), "https://ada.example"));
        assert_eq!(push.kind, NoticeKind::Assigned { job, epoch: 1 });
        let done = Command::RecordDelivery {
            notice,
            result: DeliveryResult::Delivered { reply: None },
            report: None,
        };
        let arrivals = scene.run_with_changes(done).unwrap().0.completed_deliveries;
        let [arrival] = arrivals.values().collect::<Vec<_>>()[..] else {
            panic!("one delivery, not {arrivals:?}")
        };
        assert_eq!((arrival.notice, arrival.attempts), (notice, 1));
        assert_eq!(arrival.url, "https://ada.example");
        assert!(scene.world.delivery(notice).is_none());
        assert_eq!(scene.world.next_delivery_at(), None);
        tried(&mut scene, notice, DeliveryResult::Delivered { reply: None });
    }

    /// A response that carries the result of the job.
    fn answered(scene: &TestHub, notice: NoticeId, job: JobId, by: AgentId) -> Command {
        let report = ReportResult { by, ..scene.job_report(job, true, "0.10") };
        let result = DeliveryResult::Delivered { reply: None };
        Command::RecordDelivery {
            notice,
            result,
            report: Some(WorkerReport::Result(Box::new(report))),
        }
    }

    #[test]
    fn a_result_in_the_response_ends_the_job_together_with_its_delivery() {
        let (mut scene, ada, job, notice) = sent();
        let command = answered(&scene, notice, job, ada);
        let (changes, answer) = scene.run_with_changes(command).unwrap();
        assert_eq!(answer, Answer::Delivery { refused: None });
        assert_eq!(changes.jobs[&job].state, State::Completed);
        assert_eq!(changes.deliveries[&notice], None);
        assert_eq!((changes.completed_deliveries.len(), changes.history_lines.len()), (1, 1));
        assert_eq!(scene.balance_text("acme").0, "0.10");
    }

    #[test]
    fn a_refused_report_leaves_nothing_behind_and_the_delivery_is_recorded() {
        let (mut scene, ada, job, notice) = sent();
        scene.succeed(job, "0.10");
        let held = scene.job(job);
        let late = answered(&scene, notice, job, ada);
        let Command::RecordDelivery {
            report: Some(WorkerReport::Result(mut report)), result, ..
        } = late
        else {
            unreachable!()
        };
        report.content = crate::alias::Digest::of(&[b"another result"]);
        let report = Some(WorkerReport::Result(report));
        let late = Command::RecordDelivery { notice, result, report };
        let (changes, answer) = scene.run_with_changes(late).unwrap();
        let state = State::Completed;
        let refused = Some(crate::refusal::Refusal::WrongState { state });
        assert_eq!(answer, Answer::Delivery { refused });
        assert!(changes.jobs.is_empty() && changes.entries.is_empty());
        assert_eq!((changes.deliveries[&notice].clone(), scene.job(job)), (None, held));
    }

    #[test]
    fn an_unreachable_worker_loses_the_job_with_the_delivery() {
        let (mut scene, ada, job, notice) = sent();
        let report = Some(WorkerReport::Unreachable { job, epoch: 1 });
        let result = DeliveryResult::Obsolete;
        scene.run(Command::RecordDelivery { notice, result, report }).unwrap();
        assert_eq!(scene.state(job), State::Withdrawn);
        assert!(!scene.is_online(ada) && scene.world.delivery(notice).is_none());
    }

    #[test]
    fn a_message_that_waits_for_its_url_holds_no_text_in_memory() {
        let mut scene = TestHub::default();
        let ann = scene.register_client("ann", "rich", "0");
        let ada = scene.register(registration_with_endpoint("ada", "acme", &[])).unwrap();
        let text = "long ".repeat(100);
        let url = Some("https://ada.example".to_owned());
        let order = SendMessage { url, ..crate::testkit::message(ann, ada, &text) };
        scene.run(Command::SendMessage(Box::new(order))).unwrap();
        let push = scene.world.deliveries().next().unwrap().clone();
        assert!(!push.has_text(), "{push:?}");
        let notice = scene.store.rows.notices.iter().find(|one| one.id == push.notice).unwrap();
        assert!(matches!(&notice.news, NoticeKind::Message { body, .. } if *body == text));
        assert_eq!(notice.news.without_text(), push.kind);
    }

    #[test]
    fn the_text_in_a_push_of_an_older_version_is_dropped_when_it_is_read() {
        let mut scene = TestHub::default();
        let (words, body) = (crate::testkit::HOME, "text".to_owned());
        let push = Delivery {
            notice: NoticeId(1),
            to: None,
            position: 0,
            at: scene.now,
            url: "https://ada.example".to_owned(),
            kind: NoticeKind::Message { from: None, protocol: words, body, previous: None },
            attempts: 1,
            next_try: Some(scene.now),
            last_error: None,
        };
        let pushes = [(push.notice, Some(Arc::new(push)))].into();
        scene.world.apply(&Changes { deliveries: pushes, ..Changes::default() });
        let held = scene.world.deliveries_due(scene.now).next().expect("it is still due");
        assert!(!held.has_text(), "{held:?}");
    }

    #[test]
    fn a_failed_push_is_tried_again_at_its_moment_and_then_given_up() {
        let (mut scene, _, _, notice) = sent();
        let later = scene.now.plus(Millis::seconds(5));
        let failed = |next_try| DeliveryResult::Failed { why: "refused".to_owned(), next_try };
        tried(&mut scene, notice, failed(Some(later)));
        assert_eq!(scene.world.next_delivery_at(), Some(later));
        assert_eq!(scene.world.deliveries_due(scene.now).count(), 0);
        scene.advance_without_timers(Millis::seconds(5));
        assert_eq!(scene.world.deliveries_due(scene.now).count(), 1);
        tried(&mut scene, notice, failed(None));
        assert_eq!(scene.world.next_delivery_at(), None);
        let given_up = scene.world.delivery(notice).unwrap();
        assert_eq!((given_up.attempts, given_up.next_try), (2, None));
        assert_eq!(given_up.last_error.as_deref(), Some("refused"));
    }

    #[test]
    fn an_endpoint_that_is_gone_is_switched_off_until_its_agent_registers_again() {
        let (mut scene, ada, _, notice) = sent();
        tried(&mut scene, notice, DeliveryResult::EndpointGone);
        assert_eq!(scene.agent(ada).liveness, Liveness::ByPolling);
        scene.register(registration_with_endpoint("ada", "acme", &[("sum", "0.10")])).unwrap();
        assert_eq!(scene.agent(ada).liveness, Liveness::ByEndpoint);
    }

    #[test]
    fn a_callback_that_is_gone_says_nothing_about_an_endpoint() {
        let (mut scene, ada, job, notice) = sent();
        tried(&mut scene, notice, DeliveryResult::Delivered { reply: None });
        scene.run(Command::MarkPending { job }).unwrap();
        scene.succeed(job, "0.10");
        let called = scene.world.deliveries_due(scene.now).next().unwrap().notice;
        tried(&mut scene, called, DeliveryResult::EndpointGone);
        assert_eq!(scene.agent(ada).liveness, Liveness::ByEndpoint);
    }

    #[test]
    fn an_arrival_makes_good_a_connection_that_failed() {
        let (mut scene, ada, job, first) = sent();
        let client = scene.world.agent_by_alias(crate::testkit::HOME, "client").unwrap();
        let order = scene.job_order(client, "sum", "1.00");
        scene.open_job(order);
        let second = scene.world.deliveries_due(scene.now).find(|push| push.notice != first);
        let second = second.unwrap().notice;
        scene.unreachable(job);
        assert!(!scene.is_online(ada));
        tried(&mut scene, second, DeliveryResult::Delivered { reply: None });
        assert!(scene.is_online(ada));
    }
}
