//! The clients of a round, on all nodes and in all protocols.

pub mod cast;
mod flows;
mod jobs;
mod messages;
mod money;
mod readers;

use std::pin::Pin;

use tokio::task::JoinHandle;

use super::client::{Client, RoundContext};
use crate::kit::in_time;
use cast::Cast;
pub use flows::{FlowAgents, assert_flow_accounts};

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The running clients of one round.
pub struct Traffic(Vec<JoinHandle<()>>);

impl Traffic {
    /// Starts all clients.
    pub fn start(round: &RoundContext, cast: &Cast, flows: &FlowAgents, seed: u64) -> Self {
        let mut all: Vec<Work> = Vec::new();
        let mut number = 1;
        let mut client = || {
            number += 1;
            Client::new(number, round.clone(), seed)
        };
        for sender in 0..cast.senders.len() {
            all.push(Box::pin(messages::send(client(), cast.clone(), sender)));
        }
        all.push(Box::pin(messages::send_without_key(client(), cast.clone())));
        all.push(Box::pin(messages::send_everywhere(client(), cast.clone())));
        all.push(Box::pin(messages::relay(client(), cast.clone())));
        for payer in 0..2 {
            all.push(Box::pin(money::pay(client(), cast.clone(), payer)));
        }
        all.push(Box::pin(money::spend(client(), cast.clone())));
        for protocol in [jobs::HirePath::Api, jobs::HirePath::Registry] {
            all.push(Box::pin(jobs::hire(client(), cast.clone(), protocol)));
        }
        for worker in 0..cast.workers.len() {
            all.push(Box::pin(jobs::work(client(), cast.clone(), worker)));
        }
        all.push(Box::pin(readers::read_accounts(client(), cast.clone())));
        all.push(Box::pin(readers::read_inboxes(client(), cast.clone())));
        all.push(Box::pin(readers::read_statistics(client())));
        all.push(Box::pin(readers::change_keys(client(), cast.rotating.clone())));
        for receiver in &cast.receivers {
            let stream = readers::InboxStream::v1(receiver);
            all.push(Box::pin(readers::follow(client(), stream)));
        }
        let stream = readers::InboxStream::relay(&cast.relay_receiver);
        all.push(Box::pin(readers::follow(client(), stream)));
        all.push(Box::pin(flows::agora(client(), flows.clone())));
        all.push(Box::pin(flows::openclaw(client(), flows.clone())));
        all.push(Box::pin(flows::clara(client(), flows.clone())));
        for node in 0..round.urls.len() {
            all.push(Box::pin(round.clone().probe(node)));
        }
        Self(all.into_iter().map(tokio::spawn).collect())
    }

    /// Waits until all clients have finished what they were doing.
    pub async fn finish(self) {
        for client in self.0 {
            in_time(client).await.expect("no client panicked");
        }
    }
}
