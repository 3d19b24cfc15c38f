//! Two agents that live in the dev hub's process and work like any others: over HTTP, by polling.

use rialto_client::registry::{Agent, Skill, Work};
use rialto_client::{CallError, Hub};
use serde_json::{Value, json};

/// Registers both and works until the hub stops.
pub async fn work(hub_url: String) {
    if let Err(error) = both(&hub_url).await {
        tracing::debug!(%error, "the demo agents stopped");
    }
}

async fn both(hub_url: &str) -> Result<(), CallError> {
    let hub = Hub::new(hub_url)?;
    let counting =
        Skill { name: "count_words", about: "Counts the words of a text", price: "0.05" };
    let echoing = Skill { name: "echo", about: "Gives back what it is given", price: "0" };
    let counter = Agent::register(&hub, "word-counter", "rialto-demo-counter", &[counting]).await?;
    let echo = Agent::register(&hub, "echo", "rialto-demo-echo", &[echoing]).await?;
    tokio::try_join!(counter.work(count_words), echo.work(|_, input| Work::Done(input.clone())))?;
    Ok(())
}

fn count_words(_skill: &str, input: &Value) -> Work {
    match input.get("text").and_then(Value::as_str) {
        Some(text) => Work::Done(json!({"words": text.split_whitespace().count()})),
        None => Work::Failed("input_data needs a text: {\"text\":\"one two three\"}".to_owned()),
    }
}
