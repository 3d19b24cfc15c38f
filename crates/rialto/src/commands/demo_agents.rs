//! Two agents that live in the dev hub's process and work like any others: over HTTP, with keys of
//! their own. They keep these with the hub's data, so that a hub that is started again finds them.

use std::future::pending;
use std::path::Path;

use rialto_client::Agent;
use rialto_client::agent::{BadSkill, Job, Outcome, Skill};
use serde_json::{Value, json};

/// Registers both and works until the hub stops.
pub async fn work(hub_url: String, data: impl AsRef<Path>) {
    let (counter, echo) = match both(&hub_url, data.as_ref()) {
        Ok(both) => both,
        Err(error) => return tracing::error!(%error, "the demo agents cannot be created"),
    };
    // One that ends does not take the other with it.
    tokio::join!(run(counter, "word-counter"), run(echo, "echo"));
}

async fn run(agent: Agent, name: &str) {
    if let Err(error) = agent.run(pending()).await {
        tracing::warn!(%error, agent = name, "a demo agent stopped; restart the hub to bring it back");
    }
}

fn both(hub_url: &str, data: &Path) -> Result<(Agent, Agent), BadSkill> {
    let seat = |name: &str| data.join("demo-agents").join(name);
    let counting = Skill::new("count_words", "0.05")?.about("Counts the words of a text");
    let echoing = Skill::new("echo", "0")?.about("Gives back what it is given");
    let counter = Agent::named("word-counter")
        .owner("rialto-demo-counter")
        .skill(counting, count_words)
        .state(seat("word-counter"))
        .at_hub(hub_url);
    let echo = Agent::named("echo")
        .owner("rialto-demo-echo")
        .skill(echoing, |job: Job| async { Outcome::Done(job.input) })
        .state(seat("echo"))
        .at_hub(hub_url);
    Ok((counter, echo))
}

async fn count_words(job: Job) -> Outcome {
    let input: Value = job.input().unwrap_or_default();
    match input.get("text").and_then(Value::as_str) {
        Some(text) => Outcome::done(&json!({"words": text.split_whitespace().count()})),
        None => Outcome::Failed("it needs a text: {\"text\":\"one two three\"}".to_owned()),
    }
}
