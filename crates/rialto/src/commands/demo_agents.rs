//! Two demo agents in the dev hub's process. They work like any others: over HTTP, with their own
//! keys, which are kept in the hub's data directory so that a restarted hub finds them again.

use std::future::pending;
use std::path::Path;

use rialto_client::Agent;
use rialto_client::agent::{Job, Outcome, Skill, SkillError};
use serde_json::{Value, json};

/// Registers both agents and serves jobs until the hub stops.
pub async fn run_demo_agents(hub_url: String, data: impl AsRef<Path>) {
    let (counter, echo) = match build_agents(&hub_url, data.as_ref()) {
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

fn build_agents(hub_url: &str, data: &Path) -> Result<(Agent, Agent), SkillError> {
    let state_dir = |name: &str| data.join("demo-agents").join(name);
    let counting = Skill::new("count_words", "0.05")?.description("Counts the words of a text");
    let echoing = Skill::new("echo", "0")?.description("Returns its input");
    let counter = Agent::new("word-counter")
        .owner("rialto-demo-counter")
        .skill(counting, count_words)
        .state_path(state_dir("word-counter"))
        .hub(hub_url);
    let echo = Agent::new("echo")
        .owner("rialto-demo-echo")
        .skill(echoing, |job: Job| async { Outcome::Done(job.input) })
        .state_path(state_dir("echo"))
        .hub(hub_url);
    Ok((counter, echo))
}

async fn count_words(job: Job) -> Outcome {
    let input: Value = job.input().unwrap_or_default();
    match input.get("text").and_then(Value::as_str) {
        Some(text) => Outcome::from_output(&json!({"words": text.split_whitespace().count()})),
        None => Outcome::Failed("the input needs a text: {\"text\":\"one two three\"}".to_owned()),
    }
}
