//! Keys that do not work, and what becomes of whoever tries one after the other.
//!
//! Only the handler finds out that a key does not work, so it is its answer that is looked at. A key
//! that works gets another answer, however many others from the same address do not.

use axum::body::Body;
use http::{Request, Response, StatusCode, Uri, header};

use super::checks::peer_of;
use super::front::Front;
use super::peer::Peer;

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
        uri: &Uri,
        response: Response<Body>,
    ) -> Response<Body> {
        let refused = response.status() == StatusCode::UNAUTHORIZED;
        let Some(Shower(peer)) = shower.filter(|_| refused) else { return response };
        match self.limits.check_wrong_key(peer) {
            Ok(()) => response,
            Err(trouble) => self.refuse(uri, trouble),
        }
    }
}
