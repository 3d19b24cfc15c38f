//! The fast path: frequent writes skip the router.
//!
//! A router and its layers cost more than such a request itself. What is checked, counted and logged
//! is the same as at the main door; only the way from the front to the handler is shorter.

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
use super::front::{Front, Visit, text_of};
use super::house::{Class, Kind, Pages, Trouble};
use super::intake::Intake;
use super::request_id::RequestId;
use super::trace;
use super::wrong_keys::Shower;
use crate::telemetry::{Route, Verb};

/// A body that is read once somebody waits for it.
pub type Reading = Pin<Box<dyn Future<Output = Result<Bytes, Trouble>> + Send>>;

/// An answer in the making.
pub type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// Answers a request by its head and its body.
pub type Serve = dyn Fn(Parts, Reading) -> Answering + Send + Sync;

/// A handler with nothing before it but the front.
#[derive(Clone)]
pub struct Express {
    /// The route it is counted under.
    pub route: Arc<str>,
    /// What it counts as.
    pub kind: Kind,
    /// Requests with one of these headers take the main door.
    pub unless: &'static [&'static str],
    pub serve: Arc<Serve>,
}

impl Front {
    /// The express handler of a request, if it has one and nothing about it is out of the ordinary.
    pub(super) fn express(&self, request: &Request<Arriving>) -> Option<Express> {
        let express = self.house.express(request.method(), request.uri().path())?;
        let headers = request.headers();
        let odd = request.uri().query().is_some()
            || headers.contains_key(header::TRANSFER_ENCODING)
            || headers.contains_key(trace::HEADER)
            // Who asks before it sends a body is told about a bad key before it does.
            || headers.contains_key(header::EXPECT)
            || express.unless.iter().any(|name| headers.contains_key(*name));
        (!odd && request.body().size_hint().exact().is_some()).then_some(express)
    }

    /// Answers a request by the express door.
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
            // Only an OPTIONS request asks that, and none has an express door.
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

/// A body whose length was told and found to be within the limit.
async fn whole(mut body: Intake<Arriving>) -> Result<Bytes, Trouble> {
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else {
            continue;
        };
        // Nearly every body comes in one piece, and is not copied.
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
