//! Opens a job, for any requester and from any API.

use std::sync::Arc;

use rialto_core::answer::Answer;
use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester};
use rialto_core::refusal::Refusal;
use rialto_core::time::Timestamp;
use rialto_engine::{Failure as EngineFailure, Idempotency};

use super::ID;
use super::translate::{self, Fresh};
use super::wire::JobPost;
use crate::adapter::Floor;
use crate::adapter::input_check::{self, Wanted};

/// A job, its requester and its worker.
pub struct Order {
    pub wire: JobPost,
    pub requester: Requester,
    /// `None` lets the hub choose.
    pub worker: Option<AgentId>,
    pub wishes: Wishes,
}

/// Options that have no members in a job's body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes {
    pub choice: Choice,
    /// When the job expires.
    pub deadline: Option<Timestamp>,
    /// Whether the requester waits for the result, whichever agent does the work.
    pub waits: bool,
}

/// How the hub chooses a worker when none is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    #[default]
    Best,
    Cheapest,
    /// The hub does not choose: the requester accepts one of the offers.
    Offers,
}

/// Opens the job, or refuses it and leaves nothing behind. A repeat returns the first job.
pub async fn open(
    floor: &Floor,
    order: Order,
    once: Option<Idempotency>,
) -> Result<Arc<Job>, EngineFailure> {
    let ids = floor.engine.ids();
    let fresh = Fresh { uuid: ids.uuid(), job_id: ids.uuid() };
    let (names, input) = ([order.wire.skill_name.as_str()], &order.wire.input_data);
    let wanted = Wanted { by: ID, names: &names, of: order.worker, input };
    let unfit = input_check::unfit(floor, &wanted).await;
    let (settings, now) = (&floor.settings.registry, floor.engine.now());
    let command = translate::open_job(order, fresh, unfit, settings, now);
    match floor.engine.run_once(command, once).await?.answer {
        Answer::Job { job, .. } => Ok(job),
        _ => Err(Refusal::NotYours.into()),
    }
}
