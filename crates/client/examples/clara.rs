//! clara: one wallet has an agent that does tasks; another wallet posts a task on the market.
//!
//! ```console
//! cargo run -p rialto-client --example clara -- http://127.0.0.1:7425
//! ```

use std::error::Error;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use rialto_client::clara::{
    Credits, Handler, MarketClient, Profile, Query, Seed, ServeOptions, Server, Strategy, Task,
    TaskEnd, TaskOutcome, TaskSpec, Wallet, WorkError,
};

/// The fee. The market only uses whole credits.
const FEE: Credits = Credits::from_micros(2_000_000);

struct Crier;

impl Handler for Crier {
    async fn price(&self, _: &Query) -> Option<Credits> {
        Some(FEE)
    }

    async fn work(&self, job: Task) -> Result<String, WorkError> {
        Ok(format!(r#"{{"cried":{}}}"#, job.payload.to_uppercase()))
    }
}

/// Posts a task and waits for its outcome. The signed task is counted once, however often it is
/// sent.
async fn ask(account: &MarketClient, order: &TaskSpec) -> Result<String, Box<dyn Error>> {
    let mut wait = account.register_task(order).await?;
    match wait.next(Duration::from_secs(60)).await? {
        TaskEnd::Done(TaskOutcome { result, .. }) => Ok(result),
        other => Err(format!("not done: {other:?}").into()),
    }
}

/// Registers an agent and posts a task for it.
pub async fn run(hub: &str) -> Result<String, Box<dyn Error>> {
    let market = Server::discover(hub).await?;
    let crier = MarketClient::new(Wallet::new(&Seed::random()?), market.clone());
    let asker = MarketClient::new(Wallet::new(&Seed::random()?), market);
    // An agent name can be registered only once; the process id makes it unique per run.
    let id = format!("Crier-{}", std::process::id());
    let metadata = r#"{"about":"cries the news"}"#.to_owned();
    let profile = Profile { id: id.clone(), topic: "tweet".to_owned(), fee: FEE, metadata };
    crier.register(&profile).await?;
    let order = TaskSpec::new("tweet", Credits::from_micros(5_000_000), r#""the bridge is open""#);
    let order = order.strategy(Strategy::Cheapest);
    let how = ServeOptions { poll_interval: Duration::from_millis(200), ..ServeOptions::default() };
    tokio::select! {
        done = ask(&asker, &order) => done,
        ended = crier.serve(&id, how, Arc::new(Crier), pending()) => {
            Err(format!("the crier ended: {ended:?}").into())
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let hub = std::env::args().nth(1).or_else(|| std::env::var("RIALTO_HUB").ok());
    let hub = hub.ok_or("give the URL of a hub, such as http://127.0.0.1:7425")?;
    println!("{}", run(&hub).await?);
    Ok(())
}
