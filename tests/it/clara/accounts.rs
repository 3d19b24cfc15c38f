//! The client crate against a hub: working agents, waiting requesters, auctions, and wallets of
//! both kinds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rialto_client::CallError;
use rialto_client::clara::{
    Credits, Handler, MarketClient, PendingTask, Profile, Query, Seed, ServeOptions, Server,
    Strategy, Task, TaskEnd, TaskOutcome, TaskSpec, Wallet, WorkError,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::kit::Hub;

const TIME_LIMIT: Duration = Duration::from_secs(30);

fn credits(whole: i64) -> Credits {
    Credits::from_micros(whole * 1_000_000)
}

/// Auctions here close with the last bid. The window is long, so that agents on a busy machine are
/// in time.
async fn hub() -> Hub {
    Hub::serve(&[("ledger.welcome_grant", "100.00"), ("jobs.auction_window", "25s")]).await
}

async fn account(hub: &Hub, number: u8) -> MarketClient {
    let server = Server::discover(&hub.url).await.expect("a market");
    MarketClient::new(Wallet::new(&Seed::from_bytes([number; 32])), server)
}

async fn register(account: &MarketClient, id: &str, fee: i64) {
    let (id, topic) = (id.to_owned(), "tweet".to_owned());
    let metadata = r#"{"url":"https://x"}"#.to_owned();
    let profile = Profile { id, topic, fee: credits(fee), metadata };
    account.register(&profile).await.expect("registered");
}

fn order(reward: i64) -> TaskSpec {
    TaskSpec::new("tweet", credits(reward), r#"{"say":"hello"}"#)
}

async fn done(wait: &mut PendingTask) -> TaskOutcome {
    match wait.next(TIME_LIMIT).await.expect("an ending") {
        TaskEnd::Done(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

/// Returns its input, for its own price; fails the first so many tasks.
#[derive(Default)]
struct Echo {
    price: Option<i64>,
    breaks: AtomicUsize,
    panics: bool,
}

impl Handler for Echo {
    async fn price(&self, _: &Query) -> Option<Credits> {
        self.price.map(credits)
    }

    async fn work(&self, job: Task) -> Result<String, WorkError> {
        let one_less = |left: usize| left.checked_sub(1);
        let breaks = self.breaks.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
        match (breaks, self.panics) {
            (Err(_), _) => Ok(format!(r#"{{"echo":{}}}"#, job.payload)),
            (Ok(_), true) => panic!("requested by the test"),
            (Ok(_), false) => Err(WorkError::new("as it was told to")),
        }
    }
}

/// An agent that works until this is dropped.
struct Working {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), CallError>>,
}

impl Working {
    fn start(account: &MarketClient, id: &str, echo: Echo) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (account, id) = (account.clone(), id.to_owned());
        let task = tokio::spawn(async move {
            let how = ServeOptions {
                poll_interval: Duration::from_millis(30),
                ..ServeOptions::default()
            };
            let stop = async { drop(stopped.await) };
            account.serve(&id, how, Arc::new(echo), stop).await
        });
        Self { stop, task }
    }

    async fn end(self) {
        self.stop.send(()).expect("it works");
        self.task.await.expect("no panic").expect("a good end");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_serves_and_a_requester_waits() {
    let hub = hub().await;
    let (agent, requester) = (account(&hub, 1).await, account(&hub, 2).await);
    register(&agent, "A1", 20).await;
    let working = Working::start(&agent, "A1", Echo::default());
    for turn in 1..=3 {
        let wanted = order(25).context("a context").strategy(Strategy::Cheapest);
        let mut wait = requester.register_task(&wanted).await.expect("registered");
        let outcome = done(&mut wait).await;
        assert_eq!(outcome.result, r#"{"echo":{"say":"hello"}}"#);
        let told = (outcome.task_id.as_str(), outcome.worker_address.as_str());
        assert_eq!(told, (wait.task_id(), agent.address()));
        assert_eq!(requester.balance().await.expect("a balance"), credits(100 - 20 * turn));
        let trace = requester.trace(wait.task_id()).await.expect("a trace");
        assert!(trace.contains(wait.task_id()), "{trace}");
    }
    working.end().await;
    assert_eq!(agent.balance().await.expect("a balance"), credits(160));
    let board = agent.server().agents().await.expect("a board");
    let agents = board.agents().expect("agents");
    assert_eq!((agents[0].totals.done, agents[0].tasks.outbox.len()), (3, 3));
    let next = requester.next_result(None).await.expect("an answer").expect("a result");
    assert_eq!(next.agent_id, "A1");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_agent_cannot_do_another_does() {
    let hub = hub().await;
    let (one, two) = (account(&hub, 1).await, account(&hub, 2).await);
    let requester = account(&hub, 3).await;
    register(&one, "A1", 5).await;
    let breaks = || AtomicUsize::new(1);
    let broken = Working::start(&one, "A1", Echo { breaks: breaks(), ..Echo::default() });
    let mut wait = requester.register_task(&order(10)).await.expect("registered");
    let waiting = queued(&requester).await;
    assert_eq!((waiting.id.as_str(), waiting.agent_id), (wait.task_id(), None));
    register(&two, "A2", 7).await;
    let better = Working::start(&two, "A2", Echo::default());
    assert_eq!(done(&mut wait).await.agent_id, "A2");
    assert_eq!(requester.dispatch().await.expect("a queue"), []);
    broken.end().await;

    let panics = Echo { breaks: breaks(), panics: true, ..Echo::default() };
    let panicking = Working::start(&one, "A1", panics);
    let mut wait = requester.register_task(&order(10).target("A1")).await.expect("registered");
    assert_eq!(wait.next(TIME_LIMIT).await.expect("an ending"), TaskEnd::Unassigned);
    panicking.end().await;
    better.end().await;
    assert_eq!(requester.balance().await.expect("a balance"), credits(93));
    hub.0.stop().await;
}

/// The first waiting task, as soon as there is one.
async fn queued(account: &MarketClient) -> Task {
    let queue = async {
        loop {
            let queue = account.server().queue().await.expect("a queue");
            if let Some(job) = queue.into_iter().next() {
                return job;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIME_LIMIT, queue).await.expect("a task waits")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_auction_goes_to_who_asks_for_least() {
    let hub = hub().await;
    let (one, two) = (account(&hub, 1).await, account(&hub, 2).await);
    let requester = account(&hub, 3).await;
    register(&one, "A1", 5).await;
    register(&two, "A2", 5).await;
    let dear = Working::start(&one, "A1", Echo { price: Some(8), ..Echo::default() });
    let cheap = Working::start(&two, "A2", Echo { price: Some(6), ..Echo::default() });
    let query = order(10).strategy(Strategy::Query);
    let mut wait = requester.register_task(&query).await.expect("an offer");
    assert_eq!(done(&mut wait).await.agent_id, "A2");
    assert_eq!(requester.balance().await.expect("a balance"), credits(94));
    cheap.end().await;
    dear.end().await;

    let never = [("A1", &one), ("A2", &two)];
    let never = never.map(|(id, by)| Working::start(by, id, Echo::default()));
    let error = requester.register_task(&query).await.expect_err("no agent can do it");
    assert!(error.to_string().starts_with("No offers for task"), "{error}");
    for agent in never {
        agent.end().await;
    }
    assert_eq!(requester.balance().await.expect("a balance"), credits(94));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_rsa_wallet_is_as_good_and_strangers_are_told_so() {
    let hub = hub().await;
    let server = Server::discover(&format!("{}/clara/", hub.url)).await.expect("a market");
    let wallet =
        tokio::task::spawn_blocking(Wallet::generate_rsa).await.expect("no panic").expect("a key");
    let agent = MarketClient::new(wallet, server);
    register(&agent, "R1", 5).await;
    let stranger = account(&hub, 9).await;
    let served = stranger.serve("R1", ServeOptions::default(), Arc::new(Echo::default()), async {});
    let error = served.await.expect_err("not its own");
    assert!(error.to_string().starts_with("Agent R1 not registered"), "{error}");
    let said = agent.withdraw(None).await.expect("an answer");
    assert_eq!(said.messages[0].tag("Action"), Some("Claim-Reward-Failed"));
    let dashboard = agent.dashboard().await.expect("an answer");
    assert!(dashboard.contains("R1"), "{dashboard}");
    assert!(agent.next_task("R1").await.expect("an answer").is_none());
    assert!(agent.next_query("R1").await.expect("an answer").is_none());
    hub.0.stop().await;
}
