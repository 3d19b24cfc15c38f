//! Relay agents with an endpoint.

use rialto_core::price_step::PriceStep;

use super::relay::{Member, Relay};
use crate::crossing::party::{Doing, End, Found, Protocol, Requester, Saying, Terms, Worker};
use crate::kit::{Behaviour, TestHub, Worker as Endpoint};

/// The same protocol, with workers that have an endpoint.
pub struct Called;

/// The response of an endpoint that has received a message.
const GOT: &str = r#"{"status":"ok"}"#;

impl Protocol for Called {
    fn id(&self) -> &'static str {
        Relay.id()
    }

    fn price_step(&self) -> PriceStep {
        Relay.price_step()
    }

    fn price(&self) -> &'static str {
        Relay.price()
    }

    fn words(&self, end: End, begun: bool) -> &'static str {
        Relay.words(end, begun)
    }

    fn hires_its_own(&self) -> bool {
        Relay.hires_its_own()
    }

    fn sayings(&self) -> &'static [Saying] {
        // An agent with an endpoint counts as online until deliveries fail, and those are retried.
        &[Saying::Declines, Saying::Fails]
    }

    fn worker<'a>(&'a self, hub: &'a TestHub, seat: u8, _: Terms) -> Doing<'a, Box<dyn Worker>> {
        Box::pin(async move {
            let called = Endpoint::start(Behaviour::Say(200, GOT.to_owned())).await;
            let peer = hub.join_at(&format!("w{seat}@chorus"), &called.url).await;
            Box::new(Member::new(peer, Some(called))) as Box<dyn Worker>
        })
    }

    fn requester<'a>(&'a self, hub: &'a TestHub, seat: u8) -> Doing<'a, Box<dyn Requester>> {
        Relay.requester(hub, seat)
    }

    fn find<'a>(&'a self, hub: &'a TestHub, worker: &'a dyn Worker) -> Doing<'a, Found> {
        Relay.find(hub, worker)
    }
}
