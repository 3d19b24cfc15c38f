//! An agent in direct mode that upper-cases text for 0.05.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rialto_client::agent::direct::{self, PeerIdentity};
use rialto_client::agent::{Handlers, Job, Outcome, Skill};
use rialto_client::agora::Seed;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The agent; it stops when dropped.
pub struct Stand {
    pub url: String,
    pub identity: PeerIdentity,
    works: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Stand {
    pub async fn new() -> Self {
        let works = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&works);
        let shout = move |job: Job| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                let input: Value = job.input().unwrap_or_default();
                match input["text"].as_str() {
                    Some(text) => Outcome::from_output(&json!({"text": text.to_uppercase()})),
                    None => Outcome::Declined("there is nothing to shout".to_owned()),
                }
            }
        };
        let skill = Skill::new("shout", "0.05").expect("a skill");
        let shop = Handlers::builder().skill(skill, shout).build();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let identity = PeerIdentity::new("Shouter", &Seed::from_bytes([7; 32]));
        let served = direct::serve(listener, shop, identity.clone(), std::future::pending());
        let task = tokio::spawn(async move { served.await.expect("served") });
        Self { url, identity, works, task }
    }

    /// The number of jobs it got.
    pub fn works(&self) -> usize {
        self.works.load(Ordering::SeqCst)
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.task.abort();
    }
}
