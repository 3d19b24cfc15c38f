//! Counts requests with an invalid key per address and limits them.
//!
//! Only the handler finds out that a key does not work, so it is its answer that is looked at. A key
//! that works gets another answer, however many others from the same address do not.

use std::sync::atomic::Ordering::Relaxed;

use axum::body::Body;
use http::{Request, Response, StatusCode, Uri, header};
use tracing::info;

use super::checks::peer_of;
use super::front::Front;
use super::peer::Peer;
use crate::telemetry::Route;

/// Whoever has shown something to be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shower(Peer);

impl Shower {
    /// Nobody, if the request came without a credential.
    pub fn of<B>(request: &Request<B>) -> Option<Self> {
        let shows = request.headers().contains_key(header::AUTHORIZATION);
        shows.then(|| Self(peer_of(request)))
    }
}

impl Front {
    /// Counts an answer that says that a key does not work; past the limit it is another answer.
    pub(super) fn doubt(
        &self,
        shower: Option<Shower>,
        (uri, route): (&Uri, &Route),
        response: Response<Body>,
    ) -> Response<Body> {
        let refused = response.status() == StatusCode::UNAUTHORIZED;
        let Some(Shower(peer)) = shower.filter(|_| refused) else { return response };
        let so_far = self.refused_keys.fetch_add(1, Relaxed) + 1;
        if is_told(so_far) {
            info!(route = route.as_str(), so_far, "invalid key refused");
        }
        match self.limits.check_wrong_key(peer) {
            Ok(()) => response,
            Err(trouble) => self.refuse(uri, trouble),
        }
    }
}

/// Whether this many refused keys are worth a line: the first ten, and then every hundredth, so that
/// whoever tries many fills no disk.
fn is_told(so_far: u64) -> bool {
    so_far <= 10 || so_far.is_multiple_of(100)
}

#[cfg(test)]
mod tests {
    use super::is_told;

    #[test]
    fn refused_keys_are_told_of_in_samples() {
        assert_eq!((1..=1_000).filter(|count| is_told(*count)).count(), 20);
    }
}
