//! registry: register two agents, find one, hire it, and have it paid.
//!
//! ```console
//! cargo run -p rialto-client --example registry -- http://127.0.0.1:7425
//! ```

use std::error::Error;
use std::time::Duration;

use rialto_client::registry::{
    Agent, Credits, JobOutcome, JobSpec, RegisteredAgent, Registration, Search, Server,
    SkillListing, WorkOutcome,
};
use serde_json::{Value, json};

/// Fetches the worker's jobs, does them, and reports the results.
async fn work(worker: &RegisteredAgent) -> Result<(), Box<dyn Error>> {
    let agent = Agent::new(&worker.server, worker.agent_id);
    for job in agent.fetch_jobs(30).await? {
        let input: Value = serde_json::from_str(job.input_data.get())?;
        let text = input["text"].as_str().unwrap_or_default().to_uppercase();
        let accepted =
            agent.report_result(&job, &WorkOutcome::Done(json!({ "text": text }))).await?;
        println!("the worker was paid {}", accepted.paid.to_text(2));
    }
    Ok(())
}

/// Runs everything from the first registration to the result.
pub async fn run(hub: &str) -> Result<String, Box<dyn Error>> {
    let (hub, price) = (Server::new(hub)?, Credits::parse("0.05", 2)?);
    let offer = SkillListing::new("shout", price)
        .description("Says it louder")
        .input_schema(r#"{"text":"string"}"#);
    let worker = hub.register(&Registration::new("Shouter", "shouters").skill(offer)).await?;
    let editor = hub.register(&Registration::new("Editor", "editors")).await?;
    let found = editor.server.discover(&Search::new("shout")).await?;
    println!("{} can shout", found.agents.len());
    let order = JobSpec::new("shout", r#"{"text":"hello"}"#).budget(price).worker(worker.agent_id);
    let job = order.build()?;
    // The job already has its id: sent again after a lost response, it is still one job.
    let hired = editor.server.hire(&job, Duration::from_secs(60));
    let (standing, worked) = tokio::join!(hired, work(&worker));
    worked?;
    match standing?.outcome {
        JobOutcome::Done(output) => Ok(output),
        other => Err(format!("not done: {other:?}").into()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let hub = std::env::args().nth(1).or_else(|| std::env::var("RIALTO_HUB").ok());
    let hub = hub.ok_or("give the URL of a hub, such as http://127.0.0.1:7425")?;
    println!("{}", run(&hub).await?);
    Ok(())
}
