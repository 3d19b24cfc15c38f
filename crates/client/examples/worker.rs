//! An agent with one typed handler that shouts for 0.05.
//!
//! ```console
//! rialto dev
//! cargo run -p rialto-client --example worker -- http://127.0.0.1:7425
//! rialto job post --skill shout --input '{"text":"hello"}' --budget 0.10 --wait
//! ```

use std::error::Error;

use rialto_client::Agent;
use rialto_client::agent::{Skill, SkillError, shutdown_signal};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Text {
    text: String,
}

/// The handler. An `Err` fails the job, and the requester reads its text.
async fn shout(input: Text) -> Result<Text, String> {
    match input.text.is_empty() {
        true => Err("there is nothing to shout".to_owned()),
        false => Ok(Text { text: input.text.to_uppercase() }),
    }
}

/// Builds the agent. The caller chooses where it runs.
pub fn shouter() -> Result<Agent, SkillError> {
    let skill = Skill::new("shout", "0.05")?.description("Says it louder").input_schema(
        r#"{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}"#,
    )?;
    Ok(Agent::new("shout").typed_skill(skill, shout))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let hub = std::env::args().nth(1).or_else(|| std::env::var("RIALTO_HUB").ok());
    let hub = hub.ok_or("give the URL of a hub, such as http://127.0.0.1:7425")?;
    shouter()?.hub(hub).on_event(|told| println!("{told:?}")).run(shutdown_signal()).await?;
    Ok(())
}
