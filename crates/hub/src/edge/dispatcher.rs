//! The dispatcher: every request passes through it on the way to its operation, and every response
//! on the way back.
//!
//! The path is matched once. What the matched operation declares decides the checks (in `checks`),
//! the limits, the label of metrics and the format of errors, and then its handler is called.

use std::any::Any;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use axum::body::Body;
use futures_util::FutureExt;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, header};
use hyper::body::Body as HttpBody;
use rialto_core::agent::key_limits::KeyUse;
use rialto_engine::{Engine, key_use};
use rialto_protocols::adapter::idempotency::WriterEpoch;
use rialto_protocols::adapter::{EdgeError, RateClass, RowsRead};
use tracing::error;

use super::bodies::RequestBody;
use super::body_rate::BodyRateLimits;
use super::checks::CheckResult;
use super::cors::{self, Readers};
use super::hosts::HostPolicy;
use super::keyed_body::keep_key;
use super::limited_body::LimitedBody;
use super::operation_table::{ErrorFormat, OperationTable, Route};
use super::rate_limits::{CallerIdentity, Principal, RateLimits};
use super::read_rate::ReadCost;
use super::request_id::{self, IdSource, RequestId};
use super::trace::TraceParent;
use super::wrong_keys::CredentialSender;
use crate::telemetry::{CompletedRequest, MethodLabel, Metrics, RequestScope, RouteSeries};

/// Finds the principal of a valid credential. Every spelling of a key, and every key of an agent,
/// gives the same principal.
pub type PrincipalLookup = Box<dyn Fn(&mut Parts) -> Option<Principal> + Send + Sync>;

/// Finds the key of an agent in a request.
pub type KeyUseLookup = Box<dyn Fn(&mut Parts) -> Option<KeyUse> + Send + Sync>;

/// Serves all operations of a hub.
pub struct Dispatcher {
    pub operations: OperationTable,
    pub principals: PrincipalLookup,
    pub key_uses: KeyUseLookup,
    pub hosts: HostPolicy,
    pub limits: Arc<RateLimits>,
    pub request_ids: IdSource,
    pub metrics: Metrics,
    /// Number of refused keys since the start.
    pub refused_keys: AtomicU64,
    /// The minimum rate of request bodies.
    pub body_rate_limits: BodyRateLimits,
    /// This node among several; `None` at a hub of one node, which always has the newest state.
    pub node: Option<Engine>,
}

/// What is known about a request when its response is ready.
struct RequestInfo<'t> {
    began: Instant,
    id: RequestId,
    method: Method,
    route: &'t RouteSeries,
    /// Which pages may read the response.
    readers: Readers,
    /// The methods that the path has, if it does not have that of the request.
    allow: Option<HeaderValue>,
}

impl Dispatcher {
    /// Answers a request.
    pub async fn serve(&self, request: Request<RequestBody>) -> Response<Body> {
        let began = Instant::now();
        let (mut parts, body) = request.into_parts();
        let route = self.operations.find(&parts.method, parts.uri.path());
        let class = route.class(&parts.method);
        let info = RequestInfo {
            began,
            id: RequestId::from_headers(&parts.headers, &self.request_ids),
            method: parts.method.clone(),
            route: route.series(),
            readers: self.readers(&parts, class.origins),
            allow: route.allow(),
        };
        let writer_epoch = || self.node.as_ref().and_then(Engine::writer_epoch);
        let epoch = writer_epoch();
        let admitted = match self.check_request(&parts, &body, class) {
            Ok(CheckResult::Pass) => self.admit_caller(&mut parts, class).await,
            Ok(CheckResult::Preflight(method, readers)) => {
                let response = cors::preflight_response(&method, &readers, &parts.headers);
                return self
                    .finish_response(RequestInfo { readers: Readers::Own, ..info }, response);
            }
            Err(error) => Err(error),
        };
        let caller = match admitted {
            Ok(caller) => caller,
            Err(error) => {
                let refusal = error_response(route.error_format(), error);
                return self.finish_response(info, refusal);
            }
        };
        let epoch = epoch.or_else(writer_epoch);
        if epoch.is_some() {
            parts.extensions.insert(WriterEpoch(epoch));
        }
        let (sender, errors) = (CredentialSender::of(&parts), route.error_format());
        let mut scope = request_scope(&mut parts, &info.id);
        let body = if body.is_end_stream() {
            Body::empty()
        } else {
            Body::new(LimitedBody::new(body, class.body_limit, self.body_rate_limits))
        };
        let mut rate = class.rate;
        let answer = {
            let key = (self.key_uses)(&mut parts);
            let answer = self.call_operation(route, caller, &mut rate, parts, body);
            let answer = key_use::scope(key, async { keep_key(answer.await) });
            let answer = self.answer_while_current(class, errors, answer);
            let mut answer = pin!(AssertUnwindSafe(answer).catch_unwind());
            poll_fn(|context| scope.during(|| answer.as_mut().poll(context))).await
        };
        let response = answer.unwrap_or_else(|panic| {
            error!(request_id = %info.id, what = panic_text(&panic), "handler panicked");
            error_response(errors, EdgeError::Internal)
        });
        let response = self.confirm_refusal(class, errors, epoch, response).await;
        let response = self.count_refused_key(sender, errors, info.route, response);
        if rate == Some(RateClass::Read) || class.reads_too {
            self.limits.charge_read(caller, read_cost(&response));
        }
        self.finish_response(info, response)
    }

    /// Calls the operation of a request. A rate class that depends on the body is found out here.
    async fn call_operation(
        &self,
        route: Route<'_>,
        caller: CallerIdentity,
        rate: &mut Option<RateClass>,
        parts: Parts,
        body: Body,
    ) -> Response<Body> {
        let (operation, request) = match route.select(parts, body).await {
            Ok(selected) => selected,
            Err(response) => return response,
        };
        if rate.is_none() {
            *rate = Some(operation.info.rate);
            if let Err(error) = self.limits.check(operation.info.rate, caller) {
                return error_response(ErrorFormat::of(operation), error);
            }
        }
        operation.api.call(operation, request).await
    }

    /// The response on a health-only connection to any other request.
    pub(super) fn refuse_non_health<B>(&self, request: &Request<B>) -> Response<Body> {
        let route = self.operations.find(request.method(), request.uri().path());
        let info = RequestInfo {
            began: Instant::now(),
            id: RequestId::from_headers(request.headers(), &self.request_ids),
            method: request.method().clone(),
            route: self.operations.no_route(),
            readers: Readers::Own,
            allow: None,
        };
        self.finish_response(info, error_response(route.error_format(), EdgeError::Overloaded))
    }

    fn finish_response(
        &self,
        info: RequestInfo<'_>,
        mut response: Response<Body>,
    ) -> Response<Body> {
        let RequestInfo { began, id, method, route, readers, allow } = info;
        let completed = CompletedRequest {
            method: MethodLabel::from(&method),
            route,
            status: response.status(),
            took: began.elapsed(),
        };
        self.metrics.record(&completed);
        completed.log(id.as_str());
        let length = response.body().size_hint().exact();
        let headers = response.headers_mut();
        headers.insert(request_id::HEADER, id.into_header_value());
        readers.allow(headers);
        if let Some(allow) = allow {
            headers.entry(header::ALLOW).or_insert(allow);
        }
        if let Some(length) = length {
            headers.entry(header::CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(length));
        }
        if method == Method::HEAD {
            *response.body_mut() = Body::empty();
        }
        response
    }
}

/// An error, with the time after which a retry may help.
pub(super) fn error_response(format: ErrorFormat<'_>, error: EdgeError) -> Response<Body> {
    let mut response = format.response(error);
    if let Some(seconds) = error.retry_after_seconds() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// What a response counts against the read rate. A stream has its own limits.
fn read_cost(response: &Response<Body>) -> ReadCost {
    let bytes = response.body().size_hint().exact().unwrap_or(0);
    let rows = response.extensions().get::<RowsRead>().map_or(0, |rows| rows.0 as u64);
    ReadCost { bytes, rows }
}

/// The request of all lines that its handler logs. Handlers find the id and the trace in the
/// extensions.
fn request_scope(parts: &mut Parts, id: &RequestId) -> RequestScope {
    let trace = TraceParent::from_headers(&parts.headers);
    if let Some(trace) = trace {
        parts.extensions.insert(trace);
    }
    parts.extensions.insert(id.clone());
    RequestScope::new(id.header_value(), trace.map(|trace| trace.trace_id))
}

fn panic_text(panic: &Box<dyn Any + Send>) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown")
}
