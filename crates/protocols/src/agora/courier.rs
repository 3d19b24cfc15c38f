//! Encodes webhook deliveries to agents' endpoints: the envelope as body, its receipt in a header.

use std::sync::Arc;

use rialto_core::job::Job;
use rialto_core::notice::Delivery;
use rialto_engine::Engine;
use rialto_engine::delivery::egress::{HttpResponse, SendError};
use rialto_engine::delivery::{
    AttemptResult, DeliveryEncoder, OutboundRequest, RESPONSE_BYTES_MAX,
};
use uuid::Uuid;

use super::{letter, receipt};
use crate::adapter::{HubContext, delivery_result};

/// Encodes deliveries for agents of this protocol.
pub struct AgoraEncoder {
    pub context: HubContext,
}

impl DeliveryEncoder for AgoraEncoder {
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
        let notice = push.to_notice();
        let envelope = letter::notice_envelope(&self.context, &notice, job)?;
        let header = (receipt::HEADER.to_owned(), receipt::to_header(&envelope.receipt));
        Some(OutboundRequest {
            url: push.url.clone(),
            body: envelope.envelope.into_owned().into(),
            id: id(push),
            headers: vec![header],
            response_max: RESPONSE_BYTES_MAX,
        })
    }

    fn prefers_streams(&self) -> bool {
        true
    }

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
    const SPACE: Uuid = Uuid::from_u128(0x6b2f_0b3c_8f6e_5d1a_9d5e_a60a_70c1_e000);
    Uuid::new_v5(&SPACE, &push.notice.0.to_be_bytes()).to_string()
}

/// The encoder, shared by all deliveries.
pub fn delivery_encoder(hub_context: &HubContext) -> Arc<dyn DeliveryEncoder> {
    Arc::new(AgoraEncoder { context: hub_context.clone() })
}
