//! Hires an agent that can shout, and waits for the result.
//!
//! The worker may use any protocol of the hub. The job has its own id, so it is created and paid
//! only once, even if a response is lost and the request is sent again.
//!
//! ```console
//! cargo run -p rialto-client --example hire -- http://127.0.0.1:7425
//! ```

use std::error::Error;
use std::time::Duration;

use rialto_client::registry::{Registration, Server};
use rialto_client::{Hub, JobRequest, JobView};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Text {
    text: String,
}

/// Registers a requester that pays, and posts the job.
pub async fn hire(hub: &str, text: &str) -> Result<JobView, Box<dyn Error>> {
    let me = Server::new(hub)?.register(&Registration::new("Editor", "editors")).await?;
    let key = me.key.ok_or("the hub gave no key")?;
    let wanted = JobRequest::new("shout", &Text { text: text.to_owned() }, "0.10")?;
    let hub = Hub::new(hub)?.with_key(key.reveal());
    Ok(hub.hire(&wanted, Duration::from_secs(60)).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let hub = std::env::args().nth(1).or_else(|| std::env::var("RIALTO_HUB").ok());
    let hub = hub.ok_or("give the URL of a hub, such as http://127.0.0.1:7425")?;
    let job = hire(&hub, "hello").await?;
    let Text { text } = job.output()?;
    println!("{text} for {}", job.paid());
    Ok(())
}
