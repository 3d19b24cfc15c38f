//! The front: what is checked of every request, and added to every answer.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, DefaultBodyLimit, MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use futures_util::FutureExt;
use http::{HeaderValue, Response, Uri, Version, header};
use hyper::body::Body as HttpBody;
use tracing::{Instrument, Span, error, error_span, field};

use super::connection::Ambiguous;
use super::cors;
use super::hosts::Hosts;
use super::house::{Class, House, Trouble};
use super::intake::{Fate, Intake};
use super::limits::Limits;
use super::peer::Peer;
use super::request_id::{self, IdSource, RequestId};
use super::trace::TraceParent;
use crate::telemetry::{Answered, Metrics, Route, Verb};

/// Everything the front needs to know.
pub struct Front {
    pub house: Arc<dyn House>,
    pub hosts: Hosts,
    pub limits: Limits,
    pub request_ids: IdSource,
    pub metrics: Metrics,
    /// How long a request's body may take to arrive.
    pub body_timeout: Duration,
}

/// What becomes of a request.
enum Verdict {
    Pass,
    Preflight(http::Method),
}

impl Front {
    /// Puts the front before every route and fallback of `router`, which must be complete.
    pub fn over(self, router: Router) -> Router {
        router.layer(from_fn_with_state(Arc::new(self), pass))
    }

    fn judge(&self, request: &Request, class: Class) -> Result<Verdict, Trouble> {
        let host = host_of(request)?;
        let target = request.uri().authority().map(|authority| authority.as_str());
        if !self.hosts.answers_to(host) || !target.is_none_or(|name| self.hosts.answers_to(name)) {
            return Err(Trouble::WrongHost);
        }
        let preflighted = cors::preflighted(request);
        if let Some(method) = preflighted
            && self.house.class(&method, request.uri().path()).public
        {
            return Ok(Verdict::Preflight(method));
        }
        let headers = request.headers();
        let origin = headers.get(header::ORIGIN).filter(|_| !class.public);
        if let Some(origin) = origin
            && !origin.to_str().is_ok_and(|origin| self.hosts.is_home(origin, host))
        {
            return Err(Trouble::ForeignOrigin);
        }
        if request.extensions().get::<Ambiguous>().is_some() {
            let what = "it has both Content-Length and Transfer-Encoding";
            return Err(Trouble::Malformed { what });
        }
        let plain = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
        if !headers.get_all(header::CONTENT_ENCODING).iter().all(plain) {
            return Err(Trouble::Encoded);
        }
        let limit = self.house.body_limit(request.uri().path());
        if request.body().size_hint().lower() > limit as u64 {
            return Err(Trouble::TooLarge { limit });
        }
        self.limits.check(class.kind, headers, peer_of(request))?;
        Ok(Verdict::Pass)
    }

    /// Lets the handler answer, and answers for it where it cannot.
    async fn handle(&self, request: Request, next: Next) -> Response<Body> {
        let uri = request.uri().clone();
        let (request, fate) = self.limit_body(request);
        let answer = AssertUnwindSafe(next.run(request)).catch_unwind().await;
        let trouble = match &answer {
            Ok(_) => fate.and_then(|fate| fate.get().copied()),
            Err(panic) => {
                error!(what = text_of(panic.as_ref()), "a handler panicked");
                Some(Trouble::Broken)
            }
        };
        match (answer, trouble) {
            (Ok(answer), None) => answer,
            (_, trouble) => self.refuse(&uri, trouble.unwrap_or(Trouble::Broken)),
        }
    }

    fn limit_body(&self, mut request: Request) -> (Request, Option<Fate>) {
        if request.body().is_end_stream() {
            return (request, None);
        }
        // axum's own limit knows nothing of ours.
        DefaultBodyLimit::disable().apply(&mut request);
        let limit = self.house.body_limit(request.uri().path());
        let (head, body) = request.into_parts();
        let (intake, fate) = Intake::new(body, limit, self.body_timeout);
        (Request::from_parts(head, Body::new(intake)), Some(fate))
    }

    fn refuse(&self, uri: &Uri, trouble: Trouble) -> Response<Body> {
        let mut response = self.house.trouble(uri.path(), trouble);
        if let Some(seconds) = trouble.retry_after_seconds() {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

async fn pass(State(front): State<Arc<Front>>, mut request: Request, next: Next) -> Response<Body> {
    let began = Instant::now();
    let id = RequestId::of(request.headers(), &front.request_ids);
    let span = span(&mut request, &id);
    let verb = Verb::from(request.method());
    let route = Route::from(request.extensions().get::<MatchedPath>().cloned());
    let class = front.house.class(request.method(), request.uri().path());

    let mut response = match front.judge(&request, class) {
        Ok(Verdict::Pass) => front.handle(request, next).instrument(span).await,
        Ok(Verdict::Preflight(method)) => cors::preflight(&method),
        Err(trouble) => front.refuse(request.uri(), trouble),
    };
    response.headers_mut().insert(request_id::HEADER, id.header());
    if class.public {
        cors::allow(response.headers_mut());
    }
    let answered = Answered { verb, route, status: response.status(), took: began.elapsed() };
    front.metrics.count(&answered);
    answered.log(id.as_str());
    response
}

/// The span all log lines of this request belong to. It has the level of errors, because even the
/// only line of a silent hub must tell which request it is about.
fn span(request: &mut Request, id: &RequestId) -> Span {
    let span = error_span!("request", request_id = %id, trace_id = field::Empty);
    if let Some(parent) = TraceParent::of(request.headers()) {
        span.record("trace_id", field::display(format_args!("{:032x}", parent.trace_id)));
        request.extensions_mut().insert(parent);
    }
    request.extensions_mut().insert(id.clone());
    span
}

/// RFC 9112 section 3.2: a request has exactly one `Host`, and only an old one may have none.
fn host_of(request: &Request) -> Result<&str, Trouble> {
    let malformed = |what| Trouble::Malformed { what };
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().map_err(|_| malformed("its Host is no text")),
        (None, _) if request.version() == Version::HTTP_10 => Ok(""),
        (None, _) => Err(malformed("it has no Host")),
        (Some(_), Some(_)) => Err(malformed("it has more than one Host")),
    }
}

fn peer_of(request: &Request) -> Peer {
    let nobody = std::net::SocketAddr::from(([0, 0, 0, 0], 0));
    let connected = request.extensions().get::<ConnectInfo<std::net::SocketAddr>>();
    Peer::from(connected.map_or(nobody, |ConnectInfo(address)| *address))
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown")
}
