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

use super::checks::Verdict;
use super::cors;
use super::hosts::Hosts;
use super::path_policy::{House, Kind, Trouble};
use super::limited_body::{Fate, Intake};
use super::rate_limits::Limits;
use super::body_rate::Tempo;
use super::read_rate::Cost;
use super::request_id::{self, IdSource, RequestId};
use super::trace::TraceParent;
use super::wrong_keys::Shower;
use crate::telemetry::{Answered, Metrics, Route, Verb};

/// What the edge layer needs.
pub struct Front {
    pub house: Arc<dyn House>,
    pub hosts: Hosts,
    pub limits: Arc<Limits>,
    pub request_ids: IdSource,
    pub metrics: Metrics,
    /// Number of refused keys since the start.
    pub refused_keys: AtomicU64,
    /// The minimum rate of request bodies.
    pub tempo: Tempo,
}

/// A route wrapped in the edge layer.
#[derive(Clone)]
struct Behind<S> {
    front: Arc<Front>,
    route: S,
}

/// What is known about a request when its response is ready.
pub(super) struct Visit {
    pub began: Instant,
    pub id: RequestId,
    pub verb: Verb,
    pub route: Route,
    /// Whether every page may read the response.
    pub shared: bool,
}

/// Everything the hub serves, wrapped in the edge layer.
#[derive(Clone)]
pub struct Fronted {
    pub(super) front: Arc<Front>,
    pub(super) router: Router,
}

impl Front {
    /// Wraps every route and fallback of `router`, which must be complete.
    pub fn over(self, router: Router) -> Fronted {
        let front = Arc::new(self);
        let behind = Arc::clone(&front);
        let router =
            router.layer(layer_fn(move |route| Behind { front: Arc::clone(&behind), route }));
        Fronted { front, router }
    }

    fn limit_body(&self, mut request: Request) -> (Request, Option<Fate>) {
        if request.body().is_end_stream() {
            return (request, None);
        }
        // The hub has its own body limits.
        DefaultBodyLimit::disable().apply(&mut request);
        let limit = self.house.body_limit(request.uri().path());
        let (head, body) = request.into_parts();
        let (intake, fate) = Intake::new(body, limit, self.tempo);
        (Request::from_parts(head, Body::new(intake)), Some(fate))
    }

    /// The response on a health-only connection to any other request.
    pub(super) fn turn_away<B>(&self, request: &http::Request<B>) -> Response<Body> {
        let visit = Visit {
            began: Instant::now(),
            id: RequestId::of(request.headers(), &self.request_ids),
            verb: Verb::from(request.method()),
            route: Route::from(None::<MatchedPath>),
            shared: false,
        };
        self.complete(visit, self.refuse(request.uri(), Trouble::Overloaded))
    }

    pub(super) fn refuse(&self, uri: &Uri, trouble: Trouble) -> Response<Body> {
        let mut response = self.house.trouble(uri.path(), trouble);
        if let Some(seconds) = trouble.retry_after_seconds() {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    /// What a response counts against the read rate. A stream has its own limits.
    fn cost_of(&self, response: &Response<Body>) -> Cost {
        // A HEAD request computes the whole response, but only its length is sent.
        let told = response.headers().get(header::CONTENT_LENGTH);
        let told = told.and_then(|length| length.to_str().ok()?.parse().ok());
        let bytes = response.body().size_hint().exact().unwrap_or(0).max(told.unwrap_or(0));
        Cost { bytes, rows: self.house.rows_read(response) }
    }

    pub(super) fn complete(&self, visit: Visit, mut response: Response<Body>) -> Response<Body> {
        let Visit { began, id, verb, route, shared } = visit;
        response.headers_mut().insert(request_id::HEADER, id.header());
        if shared {
            cors::allow(response.headers_mut());
        }
        let answered = Answered { verb, route, status: response.status(), took: began.elapsed() };
        self.metrics.count(&answered);
        answered.log(id.as_str());
        response
    }
}

impl<S> Service<Request> for Behind<S>
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
        let id = RequestId::of(request.headers(), &front.request_ids);
        let class = front.house.class(request.method(), request.uri().path());
        let visit = Visit {
            began,
            verb: Verb::from(request.method()),
            route: Route::from(request.extensions().get::<MatchedPath>().cloned()),
            shared: front.is_shared(&request, class.pages),
            id,
        };
        let caller = front.caller(&mut request, class.kind);
        let refusal = match front.judge(&request, class, caller) {
            Ok(Verdict::Pass) => None,
            Ok(Verdict::Preflight(method)) => Some(cors::preflight(&method)),
            Err(trouble) => Some(front.refuse(request.uri(), trouble)),
        };
        if let Some(refusal) = refusal {
            let response = front.complete(visit, refusal);
            return Box::pin(std::future::ready(Ok(response)));
        }
        let uri = request.uri().clone();
        let shower = Shower::of(&request);
        let span = span(&mut request, &visit.id);
        let (request, fate) = front.limit_body(request);
        let answer = AssertUnwindSafe(self.route.call(request)).catch_unwind().instrument(span);
        Box::pin(async move {
            // If the body failed, the caller gets that error, whatever the handler made of it.
            let response = match (answer.await, fate.and_then(|fate| fate.get().copied())) {
                (Ok(Ok(response)), None) => response,
                (Ok(Ok(_)), Some(trouble)) => front.refuse(&uri, trouble),
                (Err(panic), _) => {
                    error!(request_id = %visit.id, what = text_of(&panic), "handler panicked");
                    front.refuse(&uri, Trouble::Broken)
                }
            };
            let response = front.doubt(shower, (&uri, &visit.route), response);
            if class.kind == Kind::Read {
                front.limits.charge(caller, front.cost_of(&response));
            }
            Ok(front.complete(visit, response))
        })
    }
}

/// The span of all log lines of this request. It has level ERROR, so that it is present even if
/// only errors are logged.
fn span(request: &mut Request, id: &RequestId) -> Span {
    let span = error_span!("request", request_id = %id, trace_id = field::Empty);
    if let Some(parent) = TraceParent::of(request.headers()) {
        span.record("trace_id", field::display(format_args!("{:032x}", parent.trace_id)));
        request.extensions_mut().insert(parent);
    }
    request.extensions_mut().insert(id.clone());
    span
}

pub(super) fn text_of(panic: &Box<dyn Any + Send>) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown")
}
