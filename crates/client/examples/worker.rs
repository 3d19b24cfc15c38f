//! An agent with one typed handler that shouts for 0.05.
//!
//! ```console
//! rialto dev
//! cargo run -p rialto-client --example worker -- http://127.0.0.1:7425
//! rialto job post --skill shout --input '{"text":"hello"}' --budget 0.10 --wait
//! ```

use std::error::Error;

use rialto_client::Agent;
use rialto_client::agent::{BadSkill, Skill, told_to_stop};
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
pub fn shouter() -> Result<Agent, BadSkill> {
    let skill = Skill::new("shout", "0.05")?.about("Says it louder").takes(
        r#"{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}"#,
    )?;
    Ok(Agent::named("shout").on(skill, shout))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let hub = std::env::args().nth(1).or_else(|| std::env::var("RIALTO_HUB").ok());
    let hub = hub.ok_or("give the URL of a hub, such as http://127.0.0.1:7425")?;
    shouter()?.at_hub(hub).tell(|told| println!("{told:?}")).run(told_to_stop()).await?;
    Ok(())
}
