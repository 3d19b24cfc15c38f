//! New random ids (UUIDs).

use uuid::{Builder, Uuid};

use crate::call::CallError;

/// A random id.
pub(crate) fn random_id() -> Result<Uuid, CallError> {
    let mut bytes = [0; 16];
    match getrandom::fill(&mut bytes) {
        Ok(()) => Ok(Builder::from_random_bytes(bytes).into_uuid()),
        Err(error) => Err(CallError::Unreadable(format!(
            "the system's random number generator failed: {error}"
        ))),
    }
}
