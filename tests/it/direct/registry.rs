//! The typed registry client: against a real hub, and between agents, with the hub only for
//! payments.

use std::time::Duration;

use rialto_client::CallError;
use rialto_client::registry::direct::Peer;
use rialto_client::registry::{
    Agent, Credits, JobOutcome, JobResult, JobSpec, Key, RegisteredAgent, Registration,
    RetryPolicy, Search, Server, SkillListing, Transfer,
};

use super::stand::Stand;
use crate::kit::TestHub;

const SOON: Duration = Duration::from_secs(20);

fn amount(text: &str) -> Credits {
    Credits::parse(text, 2).expect("an amount")
}

/// A hub, an operator, a requester with 1.00, and a worker that counts words for 0.10.
struct Scene {
    hub: TestHub,
    operator: Server,
    asker: RegisteredAgent,
    worker: RegisteredAgent,
}

impl Scene {
    async fn new() -> Self {
        let hub = TestHub::serve(&[]).await;
        let server = Server::new(&hub.url).expect("a hub");
        let operator = server.with_key(Key::new(&hub.operator));
        let asker = server.register(&Registration::new("Asker", "asker")).await.expect("new");
        let granted = operator.open_account("asker", Some(amount("1.00"))).await.expect("granted");
        assert_eq!((granted.balance, granted.granted), (amount("1.00"), Some(amount("1.00"))));
        let offer = SkillListing::new("count_words", amount("0.10"))
            .description("Counts words")
            .input_schema(r#"{"text":"string"}"#)
            .output_schema(r#"{"words":"int"}"#);
        let worker = Registration::new("Counter", "maker").skill(offer);
        let worker = server.register(&worker).await.expect("new");
        Self { hub, operator, asker, worker }
    }

    fn order(&self) -> JobSpec {
        let order = JobSpec::new("count_words", r#"{"text":"one two"}"#).budget(amount("0.15"));
        order.orchestrator(self.asker.agent_id.to_string()).worker(self.worker.agent_id)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_register_are_found_work_and_are_paid() {
    let scene = Scene::new().await;
    let Scene { operator, asker, worker, .. } = &scene;
    assert!(asker.is_new && asker.key.is_some());
    worker.server.heartbeat(worker.agent_id).await.expect("alive");
    let search = Search::new("count_words").max_cost(amount("0.10")).page(10, 0);
    let found = asker.server.discover(&search).await.expect("found");
    assert_eq!((found.total, found.agents[0].agent_id), (1, worker.agent_id));
    assert_eq!(found.agents[0].skill.as_ref().expect("the skill").cost_per_call, amount("0.10"));
    assert_eq!(found.agents[0].skills[0].input_schema.get(), r#"{"text":"string"}"#);
    assert_eq!(found.agents[0].status, "online");
    let cheap = Search::new("count_words").max_cost(amount("0.09"));
    assert_eq!(asker.server.discover(&cheap).await.expect("found").total, 0);
    assert_eq!(asker.server.skills().await.expect("skills").skills, ["count_words"]);
    assert_eq!(asker.server.health().await.expect("health").status, "healthy");

    let job = scene.order().build().expect("a job");
    let agent = Agent::new(&worker.server, worker.agent_id);
    let (hired, ()) = tokio::join!(asker.server.hire(&job, SOON), async {
        let fetched = agent.fetch_jobs(20).await.expect("work");
        assert_eq!((fetched[0].job_id, fetched[0].budget), (job.id(), amount("0.15")));
        assert_eq!(fetched[0].input_data.get(), r#"{"text":"one two"}"#);
        let report = JobResult::Done { output: r#"{"words":2}"#.to_owned(), cost: amount("0.10") };
        let told = worker.server.report_result(worker.agent_id, job.id(), &report, Duration::ZERO);
        assert_eq!(told.await.expect("taken").paid, amount("0.10"));
    });
    let standing = hired.expect("done");
    assert_eq!(standing.outcome, JobOutcome::Done(r#"{"words":2}"#.to_owned()));
    assert_eq!((standing.cost, standing.agent_id), (amount("0.10"), Some(worker.agent_id)));
    // A repeat returns the same job.
    assert_eq!(asker.server.hire(&job, SOON).await.expect("the same"), standing);
    assert_eq!(asker.server.job(job.id()).await.expect("the same"), standing);
    let account = operator.account("asker").await.expect("an account");
    assert_eq!((account.balance, account.held), (amount("0.90"), Credits::ZERO));
    let transfer = Transfer::new("asker", "maker", amount("0.10")).expect("an id");
    let paid = asker.server.transfer(&transfer.for_job(job.id())).await.expect("confirmed");
    assert!(paid.already_settled);
    let reputation = asker.server.reputation(worker.agent_id).await.expect("a score");
    assert_eq!((reputation.score.millionths(), reputation.stats.successes), (51_000_000, 1));
    let entry = asker.server.agent(worker.agent_id).await.expect("an agent");
    assert_eq!((entry.jobs_settled, entry.skill.is_none()), (1, true));
    assert!(worker.server.unregister(worker.agent_id).await.expect("gone"));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_says_why_and_is_not_tried_again() {
    let scene = Scene::new().await;
    let Scene { asker, worker, .. } = &scene;
    let impatient =
        asker.server.with_retry(RetryPolicy { max_attempts: 1, ..RetryPolicy::default() });
    for (order, wanted) in [
        (scene.order().budget(amount("0.09")), "BUDGET_INSUFFICIENT"),
        (JobSpec::new("sing", "{}").worker(worker.agent_id), "SKILL_MISMATCH"),
        (scene.order().budget(amount("9.00")), "TRANSFER_FAILED"),
    ] {
        let refused = impatient.post_job(&order.build().expect("a job")).await;
        let Err(CallError::Refused { code, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(code, wanted);
    }
    // A job that was not fetched can be cancelled, and costs nothing.
    let order = scene.order().callback_url("http://127.0.0.1:9/results").build().expect("a job");
    let posting = asker.server.post_job(&order);
    let cancelling = async {
        loop {
            match asker.server.cancel(order.id()).await {
                Err(CallError::Refused { status: 404, .. }) => tokio::task::yield_now().await,
                other => return other,
            }
        }
    };
    let (_, cancelled) = tokio::join!(posting, cancelling);
    let JobOutcome::Failed { code: None, message } = cancelled.expect("cancelled").outcome else {
        panic!("it was not cancelled")
    };
    assert_eq!(message, "cancelled by requester");
    let account = asker.server.account("asker").await.expect("an account");
    assert_eq!((account.balance, account.held), (amount("1.00"), Credits::ZERO));
    assert!(asker.server.account("maker").await.is_err(), "another owner's account");
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_deal_directly_and_settle_at_a_hub() {
    let (scene, stand) = (Scene::new().await, Stand::new().await);
    let Scene { asker, operator, .. } = &scene;
    operator.open_account("shouters", None).await.expect("an account");
    let order = JobSpec::new("shout", r#"{"text":"hi"}"#).budget(amount("0.05"));
    let job = order.orchestrator(asker.agent_id.to_string()).build().expect("a job");
    let standing = Peer::new(&stand.url).expect("a peer").hire(&job).await.expect("done");
    assert_eq!(standing.outcome, JobOutcome::Done(r#"{"text":"HI"}"#.to_owned()));
    let transfer = Transfer::new("asker", "shouters", standing.cost).expect("an id");
    let transfer = transfer.for_job(job.id());
    let paid = asker.server.transfer(&transfer).await.expect("paid");
    assert_eq!((paid.sender_balance, paid.already_settled), (amount("0.95"), false));
    assert_eq!(asker.server.transfer(&transfer).await.expect("the same"), paid);
    let account = operator.account("shouters").await.expect("an account");
    assert_eq!((account.balance, stand.works()), (amount("0.05"), 1));
    scene.hub.stop().await;
}
