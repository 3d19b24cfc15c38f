//! The fast path: frequent writes skip the router.
//!
//! The router and its layers cost more than such a request itself. Checks, rate limits, metrics and
//! logs are the same as on the normal path; only the way to the handler is shorter.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http::request::Parts;
use http::{Request, Response, header};
use http_body_util::BodyExt;
use hyper::body::Body as HttpBody;
use tracing::error;

use super::bodies::Arriving;
use super::checks::Verdict;
use super::layer::{Front, Visit, text_of};
use super::path_policy::{Class, Kind, Pages, Trouble};
use super::limited_body::Intake;
use super::request_id::RequestId;
use super::trace;
use super::wrong_keys::Shower;
use crate::telemetry::{Route, Verb};

/// A body that is read when it is awaited.
pub type Reading = Pin<Box<dyn Future<Output = Result<Bytes, Trouble>> + Send>>;

/// A response that is being computed.
pub type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// Handles a request, given its head and its body.
pub type Serve = dyn Fn(Parts, Reading) -> Answering + Send + Sync;

/// A handler that is called without the router.
#[derive(Clone)]
pub struct Express {
    /// The route label for metrics and logs.
    pub route: Arc<str>,
    /// Its rate class.
    pub kind: Kind,
    /// Requests with one of these headers take the normal path.
    pub unless: &'static [&'static str],
    pub serve: Arc<Serve>,
}

impl Front {
    /// The fast route of a request, if it has one and the request needs no special treatment.
    pub(super) fn express(&self, request: &Request<Arriving>) -> Option<Express> {
        let express = self.house.express(request.method(), request.uri().path())?;
        let headers = request.headers();
        let odd = request.uri().query().is_some()
            || headers.contains_key(header::TRANSFER_ENCODING)
            || headers.contains_key(trace::HEADER)
            // A client that sends `Expect` must learn about an invalid key before it sends the
            // body.
            || headers.contains_key(header::EXPECT)
            || express.unless.iter().any(|name| headers.contains_key(*name));
        (!odd && request.body().size_hint().exact().is_some()).then_some(express)
    }

    /// Answers a request on the fast path.
    pub(super) async fn hurry(
        self: Arc<Self>,
        express: Express,
        mut request: Request<Arriving>,
    ) -> Result<Response<Body>, Infallible> {
        let visit = Visit {
            began: Instant::now(),
            verb: Verb::from(request.method()),
            route: Route::named(express.route.clone()),
            shared: false,
            id: RequestId::of(request.headers(), &self.request_ids),
        };
        let class = Class { pages: Pages::Own, kind: express.kind };
        let caller = self.caller(&mut request, class.kind);
        let (verdict, shower) = (self.judge(&request, class, caller), Shower::of(&request));
        let (mut head, body) = request.into_parts();
        let uri = std::mem::take(&mut head.uri);
        let passed = match verdict {
            Ok(Verdict::Pass) => Ok(()),
            // Only OPTIONS requests are preflights, and none has a fast route.
            Ok(Verdict::Preflight(_)) => Err(Trouble::Broken),
            Err(trouble) => Err(trouble),
        };
        let response = match passed {
            Ok(()) => {
                let limit = self.house.body_limit(uri.path());
                let (intake, _) = Intake::new(body, limit, self.tempo);
                let body: Reading = Box::pin(whole(intake));
                let answer = (express.serve)(head, body);
                let answer = AssertUnwindSafe(answer).catch_unwind();
                answer.await.unwrap_or_else(|panic| {
                    error!(request_id = %visit.id, what = text_of(&panic), "handler panicked");
                    self.refuse(&uri, Trouble::Broken)
                })
            }
            Err(trouble) => self.refuse(&uri, trouble),
        };
        let response = self.doubt(shower, (&uri, &visit.route), response);
        Ok(self.complete(visit, response))
    }
}

/// Reads a body whose length is declared and within the limit.
async fn whole(mut body: Intake<Arriving>) -> Result<Bytes, Trouble> {
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else {
            continue;
        };
        // Nearly every body arrives in one chunk and is not copied.
        match (first.is_empty(), rest.is_empty()) {
            (true, _) => first = piece,
            (false, true) => {
                rest.extend_from_slice(&first);
                rest.extend_from_slice(&piece);
            }
            (false, false) => rest.extend_from_slice(&piece),
        }
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}
