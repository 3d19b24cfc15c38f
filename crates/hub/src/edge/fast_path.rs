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

use super::bodies::RequestBody;
use super::checks::CheckResult;
use super::layer::{EdgeLayer, RequestInfo, panic_text};
use super::limited_body::LimitedBody;
use super::path_policy::{AllowedOrigins, EdgeError, RateClass, RequestClass};
use super::request_id::RequestId;
use super::trace;
use super::wrong_keys::CredentialSender;
use crate::telemetry::{MethodLabel, RouteLabel};

/// A body that is read when it is awaited.
pub type BodyFuture = Pin<Box<dyn Future<Output = Result<Bytes, EdgeError>> + Send>>;

/// A response that is being computed.
pub type ResponseFuture = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// Handles a request, given its head and its body.
pub type FastHandler = dyn Fn(Parts, BodyFuture) -> ResponseFuture + Send + Sync;

/// A handler that is called without the router.
#[derive(Clone)]
pub struct FastRoute {
    /// The route label for metrics and logs.
    pub route: Arc<str>,
    /// Its rate class.
    pub rate: RateClass,
    /// Requests with one of these headers take the normal path.
    pub excluded_headers: &'static [&'static str],
    pub handler: Arc<FastHandler>,
}

impl EdgeLayer {
    /// The fast route of a request, if it has one and the request needs no special treatment.
    pub(super) fn fast_route(&self, request: &Request<RequestBody>) -> Option<FastRoute> {
        let express = self.policy.fast_routes(request.method(), request.uri().path())?;
        let headers = request.headers();
        let odd = request.uri().query().is_some()
            || headers.contains_key(header::TRANSFER_ENCODING)
            || headers.contains_key(trace::HEADER)
            // A client that sends `Expect` must learn about an invalid key before it sends the
            // body.
            || headers.contains_key(header::EXPECT)
            || express.excluded_headers.iter().any(|name| headers.contains_key(*name));
        (!odd && request.body().size_hint().exact().is_some()).then_some(express)
    }

    /// Answers a request on the fast path.
    pub(super) async fn serve_fast_route(
        self: Arc<Self>,
        express: FastRoute,
        mut request: Request<RequestBody>,
    ) -> Result<Response<Body>, Infallible> {
        let visit = RequestInfo {
            began: Instant::now(),
            method: MethodLabel::from(request.method()),
            route: RouteLabel::from_template(express.route.clone()),
            open_to_any_page: false,
            id: RequestId::from_headers(request.headers(), &self.request_ids),
        };
        let class = RequestClass { origins: AllowedOrigins::Own, rate: express.rate };
        let caller = self.identify_caller(&mut request, class.rate);
        let (verdict, shower) =
            (self.check_request(&request, class, caller), CredentialSender::from_request(&request));
        let (mut head, body) = request.into_parts();
        let uri = std::mem::take(&mut head.uri);
        let passed = match verdict {
            Ok(CheckResult::Pass) => Ok(()),
            // Only OPTIONS requests are preflights, and none has a fast route.
            Ok(CheckResult::Preflight(_)) => Err(EdgeError::Internal),
            Err(edge_error) => Err(edge_error),
        };
        let response = match passed {
            Ok(()) => {
                let limit = self.policy.body_limit(uri.path());
                let (intake, _) = LimitedBody::new(body, limit, self.body_rate_limits);
                let body: BodyFuture = Box::pin(read_body(intake));
                let answer = (express.handler)(head, body);
                let answer = AssertUnwindSafe(answer).catch_unwind();
                answer.await.unwrap_or_else(|panic| {
                    error!(request_id = %visit.id, what = panic_text(&panic), "handler panicked");
                    self.error_response(&uri, EdgeError::Internal)
                })
            }
            Err(edge_error) => self.error_response(&uri, edge_error),
        };
        let response = self.count_refused_key(shower, (&uri, &visit.route), response);
        Ok(self.finish_response(visit, response))
    }
}

/// Reads a body whose length is declared and within the limit.
async fn read_body(mut body: LimitedBody<RequestBody>) -> Result<Bytes, EdgeError> {
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
