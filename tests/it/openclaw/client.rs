//! The client against a real hub: publish, stay present, request, work, approve, cancel, reconnect.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rialto_client::openclaw::webhook::WebhookReceiver;
use rialto_client::openclaw::{
    Agent, AgentFilter, Category, CollaborationFilter, Decision, Event, Handler, Identity,
    IncomingRequest, Job, Key, Presence, PresenceOptions, Profile, PublishedAgent, Rejected,
    Rejection, Request, RequestEnd, RequestRetryPolicy, RequestSpec, ResponseAnswer, ResultOutcome,
    Role, ServeError, ServeOptions, Server, Skill, State, Status, UpdateType, Uuid, WorkError,
    WorkHistory,
};
use tokio::sync::Notify;

use super::kit::Hub;
use crate::kit::{Behaviour, Worker, eventually};

const SOON: Duration = Duration::from_secs(20);

/// Does the job that its capability names.
#[derive(Default)]
struct TestHandler {
    began: Mutex<Vec<String>>,
    mishaps: Mutex<Vec<String>>,
    waits: Mutex<Option<Uuid>>,
}

impl TestHandler {
    fn began(&self) -> usize {
        self.began.lock().expect("sound").len()
    }
}

impl Handler for TestHandler {
    async fn work(&self, job: Job) -> Result<String, WorkError> {
        let what = job.request.capability_id;
        self.began.lock().expect("sound").push(what.clone());
        match what.as_str() {
            "break" => Err(WorkError::transient("NO_SOURCE", "not now")),
            "panic" => panic!("on purpose"),
            "long" => {
                tokio::time::sleep(Duration::from_secs(600)).await;
                Ok("{}".to_owned())
            }
            _ => Ok(job.request.input_data.into()),
        }
    }

    async fn decide(&self, request: &Request) -> Decision {
        match &*request.input_data {
            "{}" => Decision::Accept { estimated_completion: None },
            _ => Decision::Reject(Rejection::new(Rejected::PolicyViolation, "too much")),
        }
    }

    async fn approve(&self, waiting: &IncomingRequest) -> Option<bool> {
        *self.waits.lock().expect("sound") = waiting.collaboration_id;
        None
    }

    fn on_error(&self, error: &ServeError) {
        self.mishaps.lock().expect("sound").push(format!("{error:?}"));
    }
}

fn profile(name: &str) -> Profile {
    let skill = |id| Skill::new(id, Category::ContentGeneration, "does it");
    let all = Profile::new(&format!("chimera-{name}")).skill(skill("echo")).skill(skill("break"));
    all.skill(skill("panic")).skill(skill("long")).skill(skill("agreed").requires_approval())
}

async fn publish(hub: &Hub, profile: Profile) -> (Identity, Agent) {
    let identity = profile.build().expect("a good profile");
    let server = Server::new(&hub.url).expect("a URL");
    let PublishedAgent { agent, key, is_new, .. } = server.publish(&identity).await.expect("taken");
    assert!(is_new && key.is_some());
    (
        identity,
        agent.with_retry(RequestRetryPolicy { max_retries: 0, ..RequestRetryPolicy::default() }),
    )
}

fn on_duty(agent: &Agent) -> Presence {
    let rhythm =
        PresenceOptions { debounce: Duration::from_millis(5), ..PresenceOptions::default() };
    agent.go_online(rhythm, WorkHistory::default())
}

/// Serves while `meanwhile` runs.
async fn serving<T>(
    duty: &Presence,
    test_handler: &Arc<TestHandler>,
    meanwhile: impl Future<Output = T>,
) -> T {
    let stop = Notify::new();
    let serve = duty.serve(ServeOptions::default(), Arc::clone(test_handler), stop.notified());
    let rest = async {
        let done = meanwhile.await;
        stop.notify_one();
        done
    };
    let (served, done) = tokio::join!(serve, rest);
    served.expect("served");
    done
}

async fn end_of(asker: &Agent, order: &RequestSpec) -> RequestEnd {
    let asked = asker.request(order).await.expect("an answer");
    asker.result(asked.pending(), SOON).await.expect("an end")
}

#[tokio::test(flavor = "multi_thread")]
async fn work_is_asked_for_done_and_told() {
    let hub = Hub::serve(&[]).await;
    let (_, asker) = publish(&hub, profile("asker")).await;
    let (_, worker) = publish(&hub, profile("worker")).await;
    let (duty, test_handler) = (on_duty(&worker), Arc::new(TestHandler::default()));
    let order = |what: &str| RequestSpec::new(what, r#"{"a":1.50}"#).to(worker.id());
    serving(&duty, &test_handler, async {
        let RequestEnd::Result(result) = end_of(&asker, &order("echo")).await else {
            panic!("no result")
        };
        let ResultOutcome::Completed { output_data } = result.body.outcome else {
            panic!("not done")
        };
        assert_eq!(&*output_data, r#"{"a":1.50}"#);
        for (what, code) in [("break", "NO_SOURCE"), ("panic", "INTERNAL_ERROR")] {
            let RequestEnd::Result(result) = end_of(&asker, &order(what)).await else {
                panic!("{what}")
            };
            let ResultOutcome::Failed(failed) = result.body.outcome else {
                panic!("{what} is done")
            };
            assert_eq!(failed.code, code);
        }
    })
    .await;
    let reputed = asker.server().reputation(worker.id()).await.expect("a reputation");
    let by_hub = reputed.by_hub.expect("three are finished").metrics.expect("metrics");
    assert_eq!(by_hub.total_collaborations, Some(3));
    // The presence task updates asynchronously.
    eventually(async || {
        let reputed = asker.server().reputation(worker.id()).await.expect("a reputation");
        reputed.claimed.is_some_and(|claimed| {
            let failed = claimed.metrics.and_then(|metrics| metrics.failed_collaborations);
            claimed.update_type == UpdateType::Failed && failed == Some(2)
        })
    })
    .await;
    eventually(async || {
        let status = asker.server().status(worker.id()).await.expect("a status");
        status.report.status == Status::Idle
    })
    .await;
    assert_eq!(duty.last_error(), None);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_brings_the_same_collaboration_and_its_result() {
    let hub = Hub::serve(&[]).await;
    let (_, asker) = publish(&hub, profile("asker")).await;
    let (_, worker) = publish(&hub, profile("worker")).await;
    let (duty, test_handler) = (on_duty(&worker), Arc::new(TestHandler::default()));
    let order = RequestSpec::new("echo", "{}").to(worker.id()).idempotency_key("once");
    serving(&duty, &test_handler, async {
        let first = asker.request(&order).await.expect("an answer");
        asker.result(first.pending(), SOON).await.expect("an end");
        let again = asker.request(&order).await.expect("an answer");
        assert_eq!(again.collaboration_id(), first.collaboration_id());
        assert!(again.result.is_some() && !again.mismatch);
        let other = RequestSpec::new("echo", r#"{"b":1}"#).to(worker.id()).idempotency_key("once");
        assert!(asker.request(&other).await.expect("an answer").mismatch);
    })
    .await;
    assert_eq!(test_handler.began(), 1);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_is_called_off_stops_and_the_agent_is_free() {
    let hub = Hub::serve(&[]).await;
    let (_, asker) = publish(&hub, profile("asker")).await;
    let (_, worker) = publish(&hub, profile("worker")).await;
    let (duty, test_handler) = (on_duty(&worker), Arc::new(TestHandler::default()));
    serving(&duty, &test_handler, async {
        let asked =
            asker.request(&RequestSpec::new("long", "{}").to(worker.id())).await.expect("asked");
        let id = asked.collaboration_id().expect("accepted");
        eventually(async || test_handler.began() == 1).await;
        eventually(async || is(&worker, Status::Busy).await).await;
        let off = asker.cancel(id, Some("enough")).await.expect("cancelled");
        assert_eq!(off.outcome, ResultOutcome::Cancelled { reason: Some("enough".to_owned()) });
        eventually(async || is(&worker, Status::Idle).await).await;
        let seen = asker.collaboration(id).await.expect("a view");
        assert_eq!(seen.state, State::Cancelled);
    })
    .await;
    assert!(test_handler.mishaps.lock().expect("sound").is_empty());
    hub.0.stop().await;
}

async fn is(agent: &Agent, status: Status) -> bool {
    let told = agent.server().status(agent.id()).await.expect("a status");
    told.report.status == status
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_answers_for_itself_says_yes_and_no() {
    let hub = Hub::serve(&[]).await;
    let (_, asker) = publish(&hub, profile("asker")).await;
    let (_, worker) = publish(&hub, profile("worker").respond_manually()).await;
    let (duty, test_handler) = (on_duty(&worker), Arc::new(TestHandler::default()));
    serving(&duty, &test_handler, async {
        let yes = end_of(&asker, &RequestSpec::new("echo", "{}").to(worker.id())).await;
        assert!(matches!(yes, RequestEnd::Result(_)), "{yes:?}");
        let no = asker.request(&RequestSpec::new("echo", r#"{"a":1}"#).to(worker.id())).await;
        let ResponseAnswer::Rejected(why) = no.expect("an answer").response.answer else {
            panic!("yes")
        };
        assert_eq!((why.code, why.message.as_str()), (Rejected::PolicyViolation, "too much"));
    })
    .await;
    assert_eq!(test_handler.began(), 1);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_needs_approval_waits_for_the_operator() {
    let hub = Hub::serve(&[]).await;
    let (_, asker) = publish(&hub, profile("asker")).await;
    let (_, worker) = publish(&hub, profile("worker")).await;
    let (duty, test_handler) = (on_duty(&worker), Arc::new(TestHandler::default()));
    let operator = asker.server().with_key(Key::new(hub.operator.clone()));
    serving(&duty, &test_handler, async {
        let order = RequestSpec::new("agreed", "{}").to(worker.id());
        let asked = asker.request(&order).await.expect("an answer");
        assert!(matches!(asked.response.answer, ResponseAnswer::Deferred { .. }));
        let deferred =
            CollaborationFilter { state: Some(State::Deferred), ..CollaborationFilter::default() };
        let page = worker.collaborations(&deferred, None).await.expect("a page");
        assert_eq!(page.collaborations.len(), 1);
        eventually(async || test_handler.waits.lock().expect("sound").is_some()).await;
        assert_eq!(test_handler.began(), 0);
        let id = test_handler.waits.lock().expect("sound").expect("it waits");
        let (agreed, end) =
            tokio::join!(operator.approve(id, true), asker.result(asked.pending(), SOON));
        agreed.expect("taken");
        assert!(matches!(end, Ok(RequestEnd::Result(_))), "{end:?}");
    })
    .await;
    assert_eq!(test_handler.began(), 1);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_running_when_the_program_broke_is_taken_up() {
    let hub = Hub::serve(&[]).await;
    let (_, asker) = publish(&hub, profile("asker")).await;
    let (_, worker) = publish(&hub, profile("worker")).await;
    let test_handler = Arc::new(TestHandler::default());
    let asked = {
        let duty = on_duty(&worker);
        let serve =
            duty.serve(ServeOptions::default(), Arc::clone(&test_handler), std::future::pending());
        let asked = async {
            let asked = asker.request(&RequestSpec::new("long", "{}").to(worker.id())).await;
            eventually(async || test_handler.began() == 1).await;
            asked.expect("an answer")
        };
        tokio::select! {
            served = serve => panic!("{served:?}"),
            asked = asked => asked,
        }
    };
    let again = Arc::new(TestHandler::default());
    serving(&on_duty(&worker), &again, async {
        eventually(async || again.began() == 1).await;
        asker.cancel(asked.pending().collaboration_id.expect("accepted"), None).await
    })
    .await
    .expect("cancelled");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_found_changed_and_gone() {
    let hub = Hub::serve(&[]).await;
    let (_, asker) = publish(&hub, profile("asker")).await;
    let (identity, worker) = publish(&hub, profile("worker")).await;
    let changed = profile("worker").id(identity.agent_id).skill(Skill::new(
        "sing",
        Category::TrendAnalysis,
        "sings",
    ));
    let again = worker.publish(&changed.build().expect("good")).await.expect("taken");
    assert!(!again.is_new && again.key.is_none());
    let sings = AgentFilter { capability: Some("sing".to_owned()), ..AgentFilter::default() };
    let found = asker.server().agents(&sings).await.expect("a list");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].entry.agent_id, worker.id());
    let both = AgentFilter { limit: Some(1), ..AgentFilter::default() };
    assert_eq!(asker.server().agents(&both).await.expect("a list").len(), 2);
    let own = CollaborationFilter { role: Some(Role::Requester), ..CollaborationFilter::default() };
    assert!(asker.collaborations(&own, None).await.expect("a page").collaborations.is_empty());
    assert_eq!(worker.unregister().await.ok(), Some(true));
    assert!(asker.server().agents(&sings).await.expect("a list").is_empty());
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_a_stream_is_called_and_believes_only_its_hub() {
    let hub = Hub::serve(&[]).await;
    let (_, asker) = publish(&hub, profile("asker")).await;
    let endpoint = Worker::start(Behaviour::Say(204, String::new())).await;
    let identity = profile("worker").endpoint(&endpoint.url).build().expect("a good profile");
    let server = Server::new(&hub.url).expect("a URL");
    let published = server.publish(&identity).await.expect("taken");
    let receiver = WebhookReceiver::new(published.webhook_secret.expect("a secret"));
    let asked = asker.request(&RequestSpec::new("echo", "{}").to(identity.agent_id)).await;
    let id = asked.expect("an answer").collaboration_id();
    let got = &endpoint.heard(1).await[0];
    let event =
        receiver.receive(&got.headers, got.body.as_bytes(), hub.now()).expect("a valid signature");
    assert!(matches!(event, Some(Event::Request(one)) if one.collaboration_id == id));
    assert!(receiver.receive(&got.headers, b"{}", hub.now()).is_err());
    hub.0.stop().await;
}
