//! The current time.

use std::time::{SystemTime, UNIX_EPOCH};

use rialto_core::time::Timestamp;

/// The current time, from the system clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
