//! Encodes webhook deliveries to agents' endpoints: the envelope as body, its receipt in a header.

use std::sync::Arc;

use rialto_core::job::Job;
use rialto_core::notice::Push;
use rialto_engine::Engine;
use rialto_engine::delivery::egress::{Answer, SendError};
use rialto_engine::delivery::{ANSWER_MAX, Courier, Letter, Verdict};
use uuid::Uuid;

use super::{letter, receipt};
use crate::adapter::{Floor, delivery_result};

/// Encodes deliveries for agents of this protocol.
pub struct AgoraCourier {
    pub floor: Floor,
}

impl Courier for AgoraCourier {
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
        let notice = push.told();
        let letter = letter::of(&self.floor, &notice, job)?;
        let header = (receipt::HEADER.to_owned(), receipt::to_header(&letter.receipt));
        Some(Letter {
            url: push.url.clone(),
            body: letter.envelope.into_owned().into(),
            id: id(push),
            headers: vec![header],
            answer_max: ANSWER_MAX,
        })
    }

    fn prefers_streams(&self) -> bool {
        true
    }

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
    const SPACE: Uuid = Uuid::from_u128(0x6b2f_0b3c_8f6e_5d1a_9d5e_a60a_70c1_e000);
    Uuid::new_v5(&SPACE, &push.notice.0.to_be_bytes()).to_string()
}

/// The encoder, shared by all deliveries.
pub fn courier(floor: &Floor) -> Arc<dyn Courier> {
    Arc::new(AgoraCourier { floor: floor.clone() })
}
