//! Encodes webhook deliveries to agents' endpoints: the same bodies as on the stream.

use std::sync::Arc;

use rialto_core::job::Job;
use rialto_core::notice::Delivery;
use rialto_engine::Engine;
use rialto_engine::delivery::egress::{HttpResponse, SendError};
use rialto_engine::delivery::{
    AttemptResult, DeliveryEncoder, OutboundRequest, RESPONSE_BYTES_MAX,
};
use uuid::Uuid;

use super::letter;
use crate::adapter::{HubContext, delivery_result};

/// The header that names the event of a body.
pub const EVENT_HEADER: &str = "rialto-event";

/// Encodes deliveries for agents of this protocol.
pub struct OpenclawEncoder {
    pub context: HubContext,
}

impl DeliveryEncoder for OpenclawEncoder {
    fn encode_if_due(
        &self,
        engine: &Engine,
        push: &Delivery,
        job: Option<&Job>,
    ) -> Option<OutboundRequest> {
        let agent = push.to?;
        // A notice that the agent has read in the meantime needs no delivery.
        if engine.read_position(agent) >= push.position {
            return None;
        }
        // The agent's current endpoint, which may have changed since the notice was written.
        let url = engine.with_world(|world| world.agent(agent)?.delivery_url())?;
        self.encode(engine, &Delivery { url, ..push.clone() }, job)
    }

    fn encode(&self, _: &Engine, push: &Delivery, job: Option<&Job>) -> Option<OutboundRequest> {
        let letter::OutgoingEvent { event, body } =
            letter::notice_event(&self.context, &push.to_notice(), job)?;
        let url = push.url.clone();
        let headers = vec![(EVENT_HEADER.to_owned(), event.to_owned())];
        Some(OutboundRequest {
            url,
            body: body.into(),
            id: id(push),
            headers,
            response_max: RESPONSE_BYTES_MAX,
        })
    }

    fn prefers_streams(&self) -> bool {
        true
    }

    /// A failed delivery is never reported as a message of an agent (R78). It is retried.
    fn interpret_response(
        &self,
        _engine: &Engine,
        _push: &Delivery,
        _job: Option<&Job>,
        answer: &Result<HttpResponse, SendError>,
    ) -> AttemptResult {
        delivery_result::from_status(answer)
    }
}

/// The delivery id, the same for every attempt at one notice.
fn id(push: &Delivery) -> String {
    const SPACE: Uuid = Uuid::from_u128(0x7a41_90e2_3b7c_5f55_a1a4_a60a_70c1_e003);
    Uuid::new_v5(&SPACE, &push.notice.0.to_be_bytes()).to_string()
}

/// The encoder, shared by all deliveries.
pub fn delivery_encoder(hub_context: &HubContext) -> Arc<dyn DeliveryEncoder> {
    Arc::new(OpenclawEncoder { context: hub_context.clone() })
}
