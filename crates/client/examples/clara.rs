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
    Account, Asked, Broken, Credits, Ending, Handler, Job, Order, Outcome, Profile, Seed, Server,
    Strategy, Wallet, Workplace,
};

/// The fee. The market only uses whole credits.
const FEE: Credits = Credits::from_micros(2_000_000);

struct Crier;

impl Handler for Crier {
    async fn price(&self, _: &Asked) -> Option<Credits> {
        Some(FEE)
    }

    async fn work(&self, job: Job) -> Result<String, Broken> {
        Ok(format!(r#"{{"cried":{}}}"#, job.payload.to_uppercase()))
    }
}

/// Posts a task and waits for its outcome. The signed task is counted once, however often it is
/// sent.
async fn ask(account: &Account, order: &Order) -> Result<String, Box<dyn Error>> {
    let mut wait = account.order(order).await?;
    match wait.next(Duration::from_secs(60)).await? {
        Ending::Done(Outcome { result, .. }) => Ok(result),
        other => Err(format!("not done: {other:?}").into()),
    }
}

/// Registers an agent and posts a task for it.
pub async fn run(hub: &str) -> Result<String, Box<dyn Error>> {
    let market = Server::discover(hub).await?;
    let crier = Account::new(Wallet::new(&Seed::random()?), market.clone());
    let asker = Account::new(Wallet::new(&Seed::random()?), market);
    // An agent name can be registered only once; the process id makes it unique per run.
    let id = format!("Crier-{}", std::process::id());
    let metadata = r#"{"about":"cries the news"}"#.to_owned();
    let profile = Profile { id: id.clone(), topic: "tweet".to_owned(), fee: FEE, metadata };
    crier.register(&profile).await?;
    let order = Order::new("tweet", Credits::from_micros(5_000_000), r#""the bridge is open""#);
    let order = order.by(Strategy::Cheapest);
    let how = Workplace { look: Duration::from_millis(200), ..Workplace::default() };
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
