//! A lane moved by hand, for simulations: the same lane without its thread, so that who comes first and
//! what shares a batch is decided by whoever holds it.

use super::lane::Lane;
use super::start::assemble;
use super::{Engine, Errand, Setup};
use crate::store::StoreError;

/// A lane that runs only when asked to. Dropping it simulates a crash: pending commands get no answer.
pub struct Hand {
    lane: Lane,
}

impl Hand {
    /// Reads the store, as `Engine::start` does, and moves nothing.
    pub fn start(setup: Setup) -> Result<(Engine, Self), StoreError> {
        let (engine, lane, _) = assemble(setup)?;
        Ok((engine, Self { lane }))
    }

    /// Fires what is due and takes everything queued as one batch. False once the lane has ended.
    pub fn turn(&mut self) -> bool {
        self.lane.turn(Errand::Wake).is_some()
    }
}
