//! A lane without its thread, for simulations: the caller decides when a batch runs, and so which
//! command is first and which commands share a batch.

use super::lane::Lane;
use super::start::assemble;
use super::{Engine, EngineParts, LaneMessage};
use crate::store::StoreError;

/// A lane that runs only when called. Dropping it simulates a crash: pending commands get no
/// answer.
pub struct ManualLane {
    lane: Lane,
}

impl ManualLane {
    /// Reads the store, as `Engine::start` does, and runs nothing.
    pub fn start(setup: EngineParts) -> Result<(Engine, Self), StoreError> {
        let (engine, lane, _) = assemble(setup)?;
        Ok((engine, Self { lane }))
    }

    /// Fires what is due and runs the whole queue as one batch. False once the lane has ended.
    pub fn run_batch(&mut self) -> bool {
        self.lane.run_batch(LaneMessage::Wake).is_some()
    }
}
