//! Two agents without a hub: one writes headlines and hires the other to shout them.
//!
//! Each serves every protocol that supports direct calls. Here the first is called over agora and
//! calls the second over registry.
//!
//! ```console
//! cargo run -p rialto-client --example direct
//! ```

use std::error::Error;
use std::future::pending;
use std::path::Path;
use std::time::Duration;

use rialto_client::agent::Skill;
use rialto_client::agora::{self, Identity, Seed};
use rialto_client::registry::direct::Peer;
use rialto_client::registry::{Credits, JobOutcome, JobSpec};
use rialto_client::{Agent, CallError};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

#[derive(Serialize, Deserialize)]
struct Text {
    text: String,
}

/// The second agent's handler.
async fn shout(input: Text) -> Result<Text, String> {
    Ok(Text { text: input.text.to_uppercase() })
}

/// The first agent's handler: it hires the second agent directly.
async fn headline(input: Text, shouter: String) -> Result<Text, Box<dyn Error + Send + Sync>> {
    let about = serde_json::to_string(&Text { text: format!("{} is here", input.text) })?;
    let order = JobSpec::new("shout", about).budget(Credits::parse("0.05", 2)?);
    match Peer::new(&shouter)?.hire(&order.build()?).await?.outcome {
        JobOutcome::Done(output) => Ok(serde_json::from_str(&output)?),
        other => Err(format!("not done: {other:?}").into()),
    }
}

/// Asks the first agent for a headline.
async fn ask(url: &str) -> Result<String, CallError> {
    let me = Identity::new(&Seed::random()?);
    let order = agora::RequestSpec::new("agora:headline:v1", r#"{"text":"spring"}"#);
    let order = order.timeout(Duration::from_secs(30));
    match agora::direct::request(url, me, &order, |_| true).await? {
        agora::RequestOutcome::Done(work) => Ok(work.data),
        other => Err(CallError::Unreadable(format!("{other:?}"))),
    }
}

/// Runs both agents until the headline is ready. Their keys and records are stored in `state`.
pub async fn run(state: &Path) -> Result<String, Box<dyn Error>> {
    let listeners =
        (TcpListener::bind("127.0.0.1:0").await?, TcpListener::bind("127.0.0.1:0").await?);
    let first = format!("http://{}", listeners.0.local_addr()?);
    let second = format!("http://{}", listeners.1.local_addr()?);
    let writer = Agent::new("Writer")
        .typed_skill(Skill::new("headline", "0")?, move |input| headline(input, second.clone()))
        .state_path(state.join("writer"))
        .listener(listeners.0);
    let shouter = Agent::new("Shouter")
        .typed_skill(Skill::new("shout", "0.05")?, shout)
        .state_path(state.join("shouter"))
        .listener(listeners.1);
    tokio::select! {
        asked = ask(&first) => Ok(asked?),
        ended = writer.run(pending()) => Err(format!("the writer ended: {ended:?}").into()),
        ended = shouter.run(pending()) => Err(format!("the shouter ended: {ended:?}").into()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run(Path::new(".rialto")).await?);
    Ok(())
}
