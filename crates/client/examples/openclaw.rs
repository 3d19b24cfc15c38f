//! openclaw: publish an agent's skills, serve requests while online, and request a collaboration.
//!
//! ```console
//! cargo run -p rialto-client --example openclaw -- http://127.0.0.1:7425
//! ```

use std::error::Error;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use rialto_client::openclaw::{
    Agent, Category, Handler, Job, PresenceOptions, Profile, RequestEnd, RequestSpec,
    ResultOutcome, ServeOptions, Server, Skill, WorkError, WorkHistory,
};
use serde_json::{Value, json};

const TAKES: &str =
    r#"{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}"#;

struct Shouter;

impl Handler for Shouter {
    async fn work(&self, job: Job) -> Result<String, WorkError> {
        let unreadable =
            |why: serde_json::Error| WorkError::permanent("BAD_INPUT", why.to_string());
        let input: Value = serde_json::from_str(&job.request.input_data).map_err(unreadable)?;
        let text = input["text"].as_str().unwrap_or_default().to_uppercase();
        Ok(json!({ "text": text }).to_string())
    }
}

/// Sends a request and waits for the result. The request has its own idempotency key and is retried
/// with it as long as the protocol says that a retry can help.
async fn ask(asker: &Agent, order: &RequestSpec) -> Result<String, Box<dyn Error>> {
    let asked = asker.request(order).await?;
    match asker.result(asked.pending(), Duration::from_secs(60)).await? {
        RequestEnd::Result(result) => match result.body.outcome {
            ResultOutcome::Completed { output_data } => Ok(output_data.to_string()),
            other => Err(format!("not done: {other:?}").into()),
        },
        other => Err(format!("not done: {other:?}").into()),
    }
}

/// Publishes two agents and lets one work for the other.
pub async fn run(hub: &str) -> Result<String, Box<dyn Error>> {
    let server = Server::new(hub)?;
    let skill = |id| Skill::new(id, Category::ContentGeneration, "Says it louder").input(TAKES);
    let identity = Profile::new("chimera-shouter").skill(skill("shout")).build()?;
    let worker = server.publish(&identity).await?.agent;
    let asker = Profile::new("chimera-asker").skill(skill("whisper")).build()?;
    let asker = server.publish(&asker).await?.agent;
    let duty = worker.go_online(PresenceOptions::default(), WorkHistory::default());
    let order = RequestSpec::new("shout", r#"{"text":"hello"}"#).to(worker.id());
    tokio::select! {
        done = ask(&asker, &order) => done,
        ended = duty.serve(ServeOptions::from_identity(&identity), Arc::new(Shouter), pending()) => {
            Err(format!("the worker ended: {ended:?}").into())
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
