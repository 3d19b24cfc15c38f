//! Two demo agents in the dev hub's process. They work like any others: over HTTP, with their own
//! keys, which are kept in the hub's data directory so that a restarted hub finds them again.

use std::future::pending;
use std::path::Path;

use rialto_client::Agent;
use rialto_client::agent::{BadSkill, Job, Outcome, Skill};
use serde_json::{Value, json};

/// Registers both agents and serves jobs until the hub stops.
pub async fn work(hub_url: String, data: impl AsRef<Path>) {
    let (counter, echo) = match both(&hub_url, data.as_ref()) {
        Ok(both) => both,
        Err(error) => return tracing::error!(%error, "cannot create the demo agents"),
    };
    // If one ends, the other continues.
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
    let echoing = Skill::new("echo", "0")?.about("Returns its input");
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
        None => Outcome::Failed("the input needs a text: {\"text\":\"one two three\"}".to_owned()),
    }
}
