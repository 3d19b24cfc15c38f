//! agora: two agents agree on a job. One announces its skill and offers a price; the other accepts.
//!
//! ```console
//! cargo run -p rialto-client --example agora -- http://127.0.0.1:7425
//! ```

use std::error::Error;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use rialto_client::agora::{
    Agent, Credits, Handler, Identity, InboxOptions, Job, NegotiationOptions, Profile, Progress,
    RequestOutcome, RequestSpec, Seed, ServeOptions, Server, Skill, Terms, WorkError,
};

const RESOURCE: &str = "agora:weather:v1";
/// The worker's price, and the requester's maximum.
const PRICE: Credits = Credits::from_micros(1_250_000);
const BUDGET: Credits = Credits::from_micros(2_000_000);

struct Forecaster;

impl Handler for Forecaster {
    async fn terms(&self, _: &Job) -> Terms {
        let (ttl, eta) = (Duration::from_secs(60), Duration::from_secs(1));
        Terms::Offer { cost: PRICE, ttl, eta }
    }

    async fn work(&self, _: Job, _: Progress) -> Result<String, WorkError> {
        Ok(r#"{"sky":"clear"}"#.to_owned())
    }
}

/// Creates a new agent that has sent HELLO.
async fn join(hub: &Server, name: &str, skills: Vec<Skill>) -> Result<Agent, Box<dyn Error>> {
    let agent = Agent::new(Identity::new(&Seed::random()?), hub.clone());
    let profile =
        Profile { name: Some(name.to_owned()), skills: Some(skills), ..Profile::default() };
    agent.hello(&profile, true).await?;
    Ok(agent)
}

/// Sends a request, collects offers, accepts the cheapest and waits for the work. Every envelope is
/// signed and idempotent, however often it is sent.
async fn ask(agent: &Agent, order: &RequestSpec) -> Result<String, Box<dyn Error>> {
    let mut inbox = agent.inbox(InboxOptions::default()).await?;
    let how = NegotiationOptions::default().collect_for(Duration::from_secs(10)).max_offers(1);
    match agent.negotiate(&mut inbox, order, how).await? {
        RequestOutcome::Done(work) => Ok(work.data),
        other => Err(format!("no deal: {other:?}").into()),
    }
}

/// Runs both agents until the requester has its result.
pub async fn run(hub: &str) -> Result<String, Box<dyn Error>> {
    let hub = Server::discover(hub).await?;
    let forecaster = join(&hub, "Forecaster", vec![Skill::new(RESOURCE)]).await?;
    let asker = join(&hub, "Asker", Vec::new()).await?;
    let order = RequestSpec::new(RESOURCE, r#"{"city":"Venice"}"#).budget(BUDGET);
    let order = order.timeout(Duration::from_secs(60));
    tokio::select! {
        done = ask(&asker, &order) => done,
        ended = forecaster.serve(ServeOptions::default(), Arc::new(Forecaster), pending()) => {
            Err(format!("the forecaster ended: {ended:?}").into())
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
