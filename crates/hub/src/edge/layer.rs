//! The edge layer: every request and every response passes through it.
//!
//! The checks are in `checks`. This module assigns the request id and completes, counts and logs
//! the response.

use std::any::Any;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request};
use futures_util::FutureExt;
use http::{HeaderValue, Response, Uri, header};
use hyper::body::Body as HttpBody;
use tower::Service;
use tower::layer::layer_fn;
use tracing::{Instrument, Span, error, error_span, field};

use super::body_rate::BodyRateLimits;
use super::checks::CheckResult;
use super::cors;
use super::hosts::HostPolicy;
use super::limited_body::{BodyErrorCell, LimitedBody};
use super::path_policy::{EdgeError, PathPolicy, RateClass};
use super::rate_limits::RateLimits;
use super::read_rate::ReadCost;
use super::request_id::{self, IdSource, RequestId};
use super::trace::TraceParent;
use super::wrong_keys::CredentialSender;
use crate::telemetry::{CompletedRequest, MethodLabel, Metrics, RouteLabel};

/// What the edge layer needs.
pub struct EdgeLayer {
    pub policy: Arc<dyn PathPolicy>,
    pub hosts: HostPolicy,
    pub limits: Arc<RateLimits>,
    pub request_ids: IdSource,
    pub metrics: Metrics,
    /// Number of refused keys since the start.
    pub refused_keys: AtomicU64,
    /// The minimum rate of request bodies.
    pub body_rate_limits: BodyRateLimits,
}

/// A route wrapped in the edge layer.
#[derive(Clone)]
struct EdgeService<S> {
    front: Arc<EdgeLayer>,
    route: S,
}

/// What is known about a request when its response is ready.
pub(super) struct RequestInfo {
    pub began: Instant,
    pub id: RequestId,
    pub method: MethodLabel,
    pub route: RouteLabel,
    /// Whether every page may read the response.
    pub open_to_any_page: bool,
}

/// Everything the hub serves, wrapped in the edge layer.
#[derive(Clone)]
pub struct EdgeRouter {
    pub(super) front: Arc<EdgeLayer>,
    pub(super) router: Router,
}

impl EdgeLayer {
    /// Wraps every route and fallback of `router`, which must be complete.
    pub fn wrap(self, router: Router) -> EdgeRouter {
        let front = Arc::new(self);
        let behind = Arc::clone(&front);
        let router =
            router.layer(layer_fn(move |route| EdgeService { front: Arc::clone(&behind), route }));
        EdgeRouter { front, router }
    }

    fn limit_body(&self, mut request: Request) -> (Request, Option<BodyErrorCell>) {
        if request.body().is_end_stream() {
            return (request, None);
        }
        // The hub has its own body limits.
        DefaultBodyLimit::disable().apply(&mut request);
        let limit = self.policy.body_limit(request.uri().path());
        let (head, body) = request.into_parts();
        let (intake, fate) = LimitedBody::new(body, limit, self.body_rate_limits);
        (Request::from_parts(head, Body::new(intake)), Some(fate))
    }

    /// The response on a health-only connection to any other request.
    pub(super) fn refuse_non_health<B>(&self, request: &http::Request<B>) -> Response<Body> {
        let visit = RequestInfo {
            began: Instant::now(),
            id: RequestId::from_headers(request.headers(), &self.request_ids),
            method: MethodLabel::from(request.method()),
            route: RouteLabel::from(None::<MatchedPath>),
            open_to_any_page: false,
        };
        self.finish_response(visit, self.error_response(request.uri(), EdgeError::Overloaded))
    }

    pub(super) fn error_response(&self, uri: &Uri, edge_error: EdgeError) -> Response<Body> {
        let mut response = self.policy.error_response(uri.path(), edge_error);
        if let Some(seconds) = edge_error.retry_after_seconds() {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    /// What a response counts against the read rate. A stream has its own limits.
    fn read_cost(&self, response: &Response<Body>) -> ReadCost {
        // A HEAD request computes the whole response, but only its length is sent.
        let told = response.headers().get(header::CONTENT_LENGTH);
        let told = told.and_then(|length| length.to_str().ok()?.parse().ok());
        let bytes = response.body().size_hint().exact().unwrap_or(0).max(told.unwrap_or(0));
        ReadCost { bytes, rows: self.policy.rows_read(response) }
    }

    pub(super) fn finish_response(
        &self,
        visit: RequestInfo,
        mut response: Response<Body>,
    ) -> Response<Body> {
        let RequestInfo { began, id, method: verb, route, open_to_any_page: shared } = visit;
        response.headers_mut().insert(request_id::HEADER, id.header_value());
        if shared {
            cors::allow_any_origin(response.headers_mut());
        }
        let answered = CompletedRequest {
            method: verb,
            route,
            status: response.status(),
            took: began.elapsed(),
        };
        self.metrics.record(&answered);
        answered.log(id.as_str());
        response
    }
}

impl<S> Service<Request> for EdgeService<S>
where
    S: Service<Request, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.route.poll_ready(context)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let began = Instant::now();
        let front = Arc::clone(&self.front);
        let id = RequestId::from_headers(request.headers(), &front.request_ids);
        let class = front.policy.classify(request.method(), request.uri().path());
        let visit = RequestInfo {
            began,
            method: MethodLabel::from(request.method()),
            route: RouteLabel::from(request.extensions().get::<MatchedPath>().cloned()),
            open_to_any_page: front.is_open_to_any_page(&request, class.origins),
            id,
        };
        let caller = front.identify_caller(&mut request, class.rate);
        let refusal = match front.check_request(&request, class, caller) {
            Ok(CheckResult::Pass) => None,
            Ok(CheckResult::Preflight(method)) => Some(cors::preflight_response(&method)),
            Err(edge_error) => Some(front.error_response(request.uri(), edge_error)),
        };
        if let Some(refusal) = refusal {
            let response = front.finish_response(visit, refusal);
            return Box::pin(std::future::ready(Ok(response)));
        }
        let uri = request.uri().clone();
        let shower = CredentialSender::from_request(&request);
        let span = span(&mut request, &visit.id);
        let (request, fate) = front.limit_body(request);
        let answer = AssertUnwindSafe(self.route.call(request)).catch_unwind().instrument(span);
        Box::pin(async move {
            // If the body failed, the caller gets that error, whatever the handler made of it.
            let response = match (answer.await, fate.and_then(|fate| fate.get().copied())) {
                (Ok(Ok(response)), None) => response,
                (Ok(Ok(_)), Some(edge_error)) => front.error_response(&uri, edge_error),
                (Err(panic), _) => {
                    error!(request_id = %visit.id, what = panic_text(&panic), "handler panicked");
                    front.error_response(&uri, EdgeError::Internal)
                }
            };
            let response = front.count_refused_key(shower, (&uri, &visit.route), response);
            if class.rate == RateClass::Read {
                front.limits.charge_read(caller, front.read_cost(&response));
            }
            Ok(front.finish_response(visit, response))
        })
    }
}

/// The span of all log lines of this request. It has level ERROR, so that it is present even if
/// only errors are logged.
fn span(request: &mut Request, id: &RequestId) -> Span {
    let span = error_span!("request", request_id = %id, trace_id = field::Empty);
    if let Some(parent) = TraceParent::from_headers(request.headers()) {
        span.record("trace_id", field::display(format_args!("{:032x}", parent.trace_id)));
        request.extensions_mut().insert(parent);
    }
    request.extensions_mut().insert(id.clone());
    span
}

pub(super) fn panic_text(panic: &Box<dyn Any + Send>) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown")
}
