//! Relay agents for benchmarks, registered over HTTP like any other agent (relay 2.3), and a hub with
//! senders and receivers, of which some are never online.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::StatusCode;
use serde_json::Value;

use crate::arrivals::measure_arrivals;
use crate::connection::RawRequest;
use crate::fill::send_all;
use crate::hub::{BenchHub, HubBinary};
use crate::inbox::open_inboxes;
use crate::load::{self, LoadPlan, LoadRun, Target};
use crate::measurement::Measurement;
use crate::message::Messages;

/// An agent, its key, and its position in its inbox.
#[derive(Clone, Debug)]
pub struct RelayAgent {
    pub id: String,
    pub key: String,
    /// Position of the last inbox event it has read.
    pub read_to: Arc<AtomicU64>,
}

impl RelayAgent {
    pub fn new(id: String, key: String) -> Self {
        Self { id, key, read_to: Arc::default() }
    }
}

/// A running hub with its agents.
pub struct RelayFixture {
    pub hub: BenchHub,
    pub agents: RelayAgents,
}

/// The senders and receivers at a hub.
pub struct RelayAgents {
    pub senders: Vec<RelayAgent>,
    /// Receivers without an open inbox: messages to them are queued.
    pub offline_receivers: Vec<RelayAgent>,
    /// Receivers whose inbox is open while arrivals are counted.
    pub online_receivers: Vec<RelayAgent>,
}

impl RelayFixture {
    /// Starts a hub over the named store.
    pub fn start(
        binary: &HubBinary,
        backend: &str,
        senders: usize,
        receivers: usize,
    ) -> io::Result<Self> {
        let hub = BenchHub::start(binary, &[("store.backend", backend)])?;
        Self::at(hub, senders, receivers)
    }

    /// Registers agents at a hub that runs.
    pub fn at(hub: BenchHub, senders: usize, receivers: usize) -> io::Result<Self> {
        Ok(Self { agents: RelayAgents::register(hub.address, senders, receivers)?, hub })
    }

    /// Sends to offline receivers. The plan may also point at an echo.
    pub fn send(&self, plan: &LoadPlan) -> io::Result<Measurement> {
        self.send_timed(plan).map(|run| run.measured)
    }

    /// Like `send`, and also returns when everything happened.
    pub fn send_timed(&self, plan: &LoadPlan) -> io::Result<LoadRun> {
        self.agents.send_timed(plan)
    }

    /// Sends to online receivers, which acknowledge what they read, and measures arrivals and
    /// delivery times.
    pub fn send_and_receive(&self, plan: &LoadPlan) -> io::Result<Measurement> {
        self.agents.send_and_receive(plan, plan.address)
    }
}

impl RelayAgents {
    /// Registers this many senders, and as many receivers of either kind.
    pub fn register(hub: SocketAddr, senders: usize, receivers: usize) -> io::Result<Self> {
        Ok(Self {
            senders: register_agents(hub, "from", senders)?,
            offline_receivers: register_agents(hub, "away", receivers)?,
            online_receivers: register_agents(hub, "here", receivers)?,
        })
    }

    /// Sends to offline receivers, and also returns when everything happened.
    pub fn send_timed(&self, plan: &LoadPlan) -> io::Result<LoadRun> {
        self.send_spread(plan, &[plan.target()])
    }

    /// Sends to offline receivers through several nodes, with the connections spread over them.
    pub fn send_spread(&self, plan: &LoadPlan, nodes: &[Target]) -> io::Result<LoadRun> {
        let for_node =
            |node: &Target| Messages::new(node.address, &self.senders, &self.offline_receivers, 0);
        let messages: Vec<_> = nodes.iter().map(for_node).collect();
        let request_for = move |at: usize, n: u64| messages[at % messages.len()].nth(at, n);
        let check = |status, _: &[u8]| status == StatusCode::ACCEPTED;
        load::run_spread(plan, nodes, request_for, check)
    }

    /// Sends to receivers whose inboxes are open at another node or the same.
    pub fn send_and_receive(
        &self,
        plan: &LoadPlan,
        inboxes_at: SocketAddr,
    ) -> io::Result<Measurement> {
        let inboxes = open_inboxes(inboxes_at, &self.online_receivers)?;
        let messages = Messages::new(plan.address, &self.senders, &self.online_receivers, 0);
        let accepted = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&accepted);
        let request_for = move |at: usize, n: u64| messages.nth(at, n);
        let check = move |status: StatusCode, _: &[u8]| {
            counter.fetch_add(u64::from(status.is_success()), Ordering::Relaxed);
            status.is_success()
        };
        let sent = load::run_timed(plan, request_for, check)?;
        let accepted = accepted.load(Ordering::Relaxed);
        inboxes.wait_for(accepted);
        let arrivals = inboxes.close()?;
        Ok(measure_arrivals(plan, sent, &arrivals, accepted))
    }
}

/// Registers `count` agents without an endpoint. Their names all have the same length.
pub fn register_agents(hub: SocketAddr, prefix: &str, count: usize) -> io::Result<Vec<RelayAgent>> {
    let request_for = |number: usize| {
        let body = format!(r#"{{"agent_id":"{prefix}-{number:05}"}}"#);
        let json = "content-type: application/json\r\n";
        RawRequest::post(hub, "/relay/register", json, body.as_bytes())
    };
    send_all(hub, count, request_for, read_agent)
}

fn read_agent(status: StatusCode, answer: &[u8]) -> Option<RelayAgent> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let text = |name: &str| Some(answer["data"][name].as_str()?.to_owned());
    (status == StatusCode::CREATED).then_some(())?;
    Some(RelayAgent::new(text("agent_id")?, text("api_key")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registration_gives_the_full_name_and_the_key() {
        let answer = br#"{"success":true,"data":{"agent_id":"a-1@chorus","api_key":"ca_1f",
            "registration":{"agent_id":"a-1@chorus"}},"metadata":{"timestamp":"x"}}"#;
        let agent = read_agent(StatusCode::CREATED, answer).unwrap();
        assert_eq!((agent.id.as_str(), agent.key.as_str()), ("a-1@chorus", "ca_1f"));
    }

    #[test]
    fn everything_else_is_a_failure() {
        let whole = br#"{"data":{"agent_id":"a@chorus","api_key":"ca_1f"}}"#;
        assert!(read_agent(StatusCode::OK, whole).is_none());
        assert!(read_agent(StatusCode::CREATED, br#"{"data":{"agent_id":"a@chorus"}}"#).is_none());
        assert!(read_agent(StatusCode::CREATED, b"busy").is_none());
    }
}
