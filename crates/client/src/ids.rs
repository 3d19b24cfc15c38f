//! Random bytes and new ids (UUIDs).

use uuid::{Builder, Uuid};

use crate::call::CallError;

/// Random bytes from the operating system.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], CallError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        CallError::unreadable(format!("the system's random number generator failed: {error}"))
    })?;
    Ok(bytes)
}

/// A random id.
pub(crate) fn random_id() -> Result<Uuid, CallError> {
    Ok(Builder::from_random_bytes(random_bytes()?).into_uuid())
}
