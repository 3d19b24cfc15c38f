//! Every example of the library, run against a real hub.
//!
//! Cargo builds examples only of the package under test, which here is the binary's, and starting
//! cargo from a test would build everything again. So the examples are included as modules: this
//! runs their code, and `cargo test --workspace` shows that they build as programs.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::agents::Running;
use crate::kit::{TestHub, eventually};

#[allow(dead_code)]
#[path = "../../../crates/client/examples/agora.rs"]
mod agora;
#[allow(dead_code)]
#[path = "../../../crates/client/examples/clara.rs"]
mod clara;
#[allow(dead_code)]
#[path = "../../../crates/client/examples/direct.rs"]
mod direct;
#[allow(dead_code)]
#[path = "../../../crates/client/examples/hire.rs"]
mod hire;
#[allow(dead_code)]
#[path = "../../../crates/client/examples/openclaw.rs"]
mod openclaw;
#[allow(dead_code)]
#[path = "../../../crates/client/examples/registry.rs"]
mod registry;
#[allow(dead_code)]
#[path = "../../../crates/client/examples/relay.rs"]
mod relay;
#[allow(dead_code)]
#[path = "../../../crates/client/examples/worker.rs"]
mod worker;

fn read(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worker_is_hired_and_paid_by_the_one_who_hires() {
    let (hub, state) = (TestHub::open(&[]).await, TempDir::new().expect("a directory"));
    let agent = worker::shouter().expect("an agent").hub(&hub.url).state_path(state.path());
    let running = Running::start(agent);
    eventually(async || running.said("Started")).await;
    let job = hire::hire(&hub.url, "hello").await.expect("an answer");
    assert_eq!((job.state.as_str(), job.paid()), ("completed", "0.05"));
    assert_eq!(job.output::<Value>().expect("an output"), json!({"text": "HELLO"}));
    let job = hire::hire(&hub.url, "").await.expect("an answer");
    assert_eq!((job.state.as_str(), job.paid()), ("failed", "0.00"));
    assert_eq!(job.failure_reason(), Some("there is nothing to shout"));
    assert!(job.output::<Value>().is_err());
    running.stop().await.expect("it leaves");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_work_for_each_other_without_a_hub() {
    let state = TempDir::new().expect("a directory");
    let said = direct::run(state.path()).await.expect("a headline");
    assert_eq!(read(&said), json!({"text": "SPRING IS HERE"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_protocol_s_example_comes_to_its_end() {
    let hub = TestHub::open(&[]).await;
    let shouted = json!({"text": "HELLO"});
    assert_eq!(read(&registry::run(&hub.url).await.expect("registry")), shouted);
    assert_eq!(relay::run(&hub.url).await.expect("relay"), "HELLO");
    assert_eq!(read(&openclaw::run(&hub.url).await.expect("openclaw")), shouted);
    let cried = read(&clara::run(&hub.url).await.expect("clara"));
    assert_eq!(cried, json!({"cried": "THE BRIDGE IS OPEN"}));
    let sky = read(&agora::run(&hub.url).await.expect("agora"));
    assert_eq!(sky, json!({"sky": "clear"}));
    hub.stop().await;
}
