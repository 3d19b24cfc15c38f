//! What time it is here.

use std::time::{SystemTime, UNIX_EPOCH};

use rialto_core::time::Timestamp;

/// Now.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
