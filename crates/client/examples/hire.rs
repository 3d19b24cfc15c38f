//! Has something shouted, by whoever can, and waits for it.
//!
//! Whoever is hired may speak any protocol of the hub. The job has an id of its own, so it is one job
//! and is paid once, however often an answer gets lost on the way.
//!
//! ```console
//! cargo run -p rialto-client --example hire -- http://127.0.0.1:7425
//! ```

use std::error::Error;
use std::time::Duration;

use rialto_client::registry::{Registration, Server};
use rialto_client::{Hub, Job, Wanted};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Text {
    text: String,
}

/// Registers somebody who pays, and hires.
pub async fn hire(hub: &str, text: &str) -> Result<Job, Box<dyn Error>> {
    let me = Server::new(hub)?.register(&Registration::new("Editor", "editors")).await?;
    let key = me.key.ok_or("the hub gave no key")?;
    let wanted = Wanted::new("shout", &Text { text: text.to_owned() }, "0.10")?;
    let hub = Hub::new(hub)?.with_key(key.reveal());
    Ok(hub.hire(&wanted, Duration::from_secs(60)).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let hub = std::env::args().nth(1).or_else(|| std::env::var("RIALTO_HUB").ok());
    let hub = hub.ok_or("name a hub, such as http://127.0.0.1:7425")?;
    let job = hire(&hub, "hello").await?;
    let Text { text } = job.output()?;
    println!("{text} for {}", job.paid());
    Ok(())
}
