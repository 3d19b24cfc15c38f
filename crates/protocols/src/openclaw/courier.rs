//! Encodes webhook deliveries to agents' endpoints: the same bodies as on the stream.

use std::sync::Arc;

use rialto_core::job::Job;
use rialto_core::notice::Push;
use rialto_engine::Engine;
use rialto_engine::delivery::egress::{Answer, SendError};
use rialto_engine::delivery::{ANSWER_MAX, Courier, Letter, Verdict};
use uuid::Uuid;

use super::letter;
use crate::adapter::{Floor, delivery_result};

/// The header that names the event of a body.
pub const EVENT_HEADER: &str = "rialto-event";

/// Encodes deliveries for agents of this protocol.
pub struct OpenclawCourier {
    pub floor: Floor,
}

impl Courier for OpenclawCourier {
    fn letter(&self, engine: &Engine, push: &Push, job: Option<&Job>) -> Option<Letter> {
        let agent = push.to?;
        // A notice that the agent has read in the meantime needs no delivery.
        if engine.read_to(agent) >= push.position {
            return None;
        }
        // The agent's current endpoint, which may have changed since the notice was written.
        let url = engine.look(|world| world.agent(agent)?.push_url())?;
        self.worded(engine, &Push { url, ..push.clone() }, job)
    }

    fn worded(&self, _: &Engine, push: &Push, job: Option<&Job>) -> Option<Letter> {
        let letter::Letter { event, body } = letter::of(&self.floor, &push.told(), job)?;
        let url = push.url.clone();
        let headers = vec![(EVENT_HEADER.to_owned(), event.to_owned())];
        Some(Letter { url, body: body.into(), id: id(push), headers, answer_max: ANSWER_MAX })
    }

    fn prefers_streams(&self) -> bool {
        true
    }

    /// A failed delivery is never reported as a message of an agent (R78). It is retried.
    fn verdict(
        &self,
        _engine: &Engine,
        _push: &Push,
        _job: Option<&Job>,
        answer: &Result<Answer, SendError>,
    ) -> Verdict {
        delivery_result::by_status(answer)
    }
}

/// The delivery id, the same for every attempt at one notice.
fn id(push: &Push) -> String {
    const SPACE: Uuid = Uuid::from_u128(0x7a41_90e2_3b7c_5f55_a1a4_a60a_70c1_e003);
    Uuid::new_v5(&SPACE, &push.notice.0.to_be_bytes()).to_string()
}

/// The encoder, shared by all deliveries.
pub fn courier(floor: &Floor) -> Arc<dyn Courier> {
    Arc::new(OpenclawCourier { floor: floor.clone() })
}
