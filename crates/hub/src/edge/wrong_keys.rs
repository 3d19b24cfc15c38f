//! Counts requests with an invalid key per address and limits them.
//!
//! Only the handler finds out that a key is invalid, so its response is examined. A valid key is
//! never affected, however many invalid keys come from the same address.

use std::sync::atomic::Ordering::Relaxed;

use axum::body::Body;
use http::request::Parts;
use http::{Response, StatusCode, header};
use tracing::info;

use super::checks::peer_of;
use super::dispatcher::{Dispatcher, error_response};
use super::operation_table::ErrorFormat;
use super::peer::Peer;
use crate::telemetry::RouteSeries;

/// The sender of a request with a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CredentialSender(Peer);

impl CredentialSender {
    /// `None` if the request has no credential.
    pub fn of(request: &Parts) -> Option<Self> {
        let has_credential = request.headers.contains_key(header::AUTHORIZATION);
        has_credential.then(|| Self(peer_of(request)))
    }
}

impl Dispatcher {
    /// Counts a response that rejects a key; past the limit the response is replaced by an error.
    pub(super) fn count_refused_key(
        &self,
        sender: Option<CredentialSender>,
        errors: ErrorFormat<'_>,
        route: &RouteSeries,
        response: Response<Body>,
    ) -> Response<Body> {
        let refused = response.status() == StatusCode::UNAUTHORIZED;
        let Some(CredentialSender(peer)) = sender.filter(|_| refused) else { return response };
        let so_far = self.refused_keys.fetch_add(1, Relaxed) + 1;
        if should_log(so_far) {
            info!(route = route.as_str(), so_far, "invalid key refused");
        }
        match self.limits.check_wrong_key(peer) {
            Ok(()) => response,
            Err(error) => error_response(errors, error),
        }
    }
}

/// Whether to log this refused key: the first ten and then every hundredth, so that guessing keys
/// cannot fill the disk.
fn should_log(so_far: u64) -> bool {
    so_far <= 10 || so_far.is_multiple_of(100)
}

#[cfg(test)]
mod tests {
    use super::should_log;

    #[test]
    fn refused_keys_are_told_of_in_samples() {
        assert_eq!((1..=1_000).filter(|count| should_log(*count)).count(), 20);
    }
}
