//! Checks of every request before it reaches a protocol.

use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Version, header};
use hyper::body::Body as HttpBody;
use rialto_protocols::adapter::{AllowedOrigins, EdgeError, RateClass};

use super::connection::AmbiguousLength;
use super::cors::{self, Readers};
use super::dispatcher::Dispatcher;
use super::operation_table::RequestClass;
use super::peer::Peer;
use super::rate_limits::CallerIdentity;

/// Where a browser request comes from: the same origin, the same site, another site, or no page at
/// all (W3C Fetch Metadata).
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What to do with a request that passed all checks.
pub enum CheckResult {
    Pass,
    /// Answer a CORS preflight for this method, from a page that may read the response.
    Preflight(Method, Readers),
}

impl Dispatcher {
    /// Checks access first, then form. The rate is counted afterwards, so that a request that is
    /// refused anyway does not count against the limits.
    pub(super) fn check_request(
        &self,
        request: &Parts,
        body: &impl HttpBody,
        class: RequestClass,
    ) -> Result<CheckResult, EdgeError> {
        let host = host_of(request)?;
        let target = request.uri.authority().map(|authority| authority.as_str());
        if !self.hosts.accepts_host(host)
            || !target.is_none_or(|name| self.hosts.accepts_host(name))
        {
            return Err(EdgeError::WrongHost);
        }
        if let Some(method) = cors::preflight_method(request) {
            let route = self.operations.find(&method, request.uri.path());
            let readers = self.readers(request, route.class(&method).origins);
            if readers != Readers::Own {
                return Ok(CheckResult::Preflight(method, readers));
            }
        }
        if self.readers(request, class.origins) == Readers::Own && !self.is_own_page(request, host)
        {
            return Err(EdgeError::ForeignOrigin);
        }
        if request.extensions.get::<AmbiguousLength>().is_some() {
            let what = "it has both Content-Length and Transfer-Encoding";
            return Err(EdgeError::Malformed { what });
        }
        let headers = &request.headers;
        let plain = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
        if !headers.get_all(header::CONTENT_ENCODING).iter().all(plain) {
            return Err(EdgeError::EncodedBody);
        }
        let limit = class.body_limit;
        if body.size_hint().lower() > limit as u64 {
            return Err(EdgeError::TooLarge { limit });
        }
        Ok(CheckResult::Pass)
    }

    /// Finds out who calls, and counts the request against the caller's rate limit.
    pub(super) async fn admit_caller(
        &self,
        request: &mut Parts,
        class: RequestClass,
    ) -> Result<CallerIdentity, EdgeError> {
        let caller = match &self.node {
            None => self.identify_caller(request, class.rate),
            Some(node) => self.identify_caller_at_node(node, request, class).await?,
        };
        // Health checks are allowed even for a caller that has read too much.
        if let Some(rate) = class.rate.filter(|_| !class.is_health_check) {
            self.limits.check(rate, caller)?;
        }
        if class.reads_too {
            self.limits.check(RateClass::Read, caller)?;
        }
        Ok(caller)
    }

    /// The identity a request is counted under. The key is looked up only where it makes a
    /// difference.
    pub(super) fn identify_caller(
        &self,
        request: &mut Parts,
        rate: Option<RateClass>,
    ) -> CallerIdentity {
        let peer = peer_of(request);
        let by_address = matches!(rate, Some(RateClass::Register | RateClass::Signed));
        let principal = if by_address { None } else { (self.principals)(request) };
        CallerIdentity { principal, peer }
    }

    /// Which pages may read the response, besides the hub's own.
    pub(super) fn readers(&self, request: &Parts, origins: AllowedOrigins) -> Readers {
        match origins {
            AllowedOrigins::Any => Readers::Any,
            AllowedOrigins::AnyIfPublished => {
                let is_open = host_of(request).is_ok_and(|host| {
                    let named = request.headers.contains_key(header::ORIGIN);
                    self.hosts.is_public_host(host) || named && self.is_own_page(request, host)
                });
                if is_open { Readers::Any } else { Readers::Own }
            }
            AllowedOrigins::Own => Readers::Own,
            AllowedOrigins::OwnOrListed => self.listed_origin(request),
        }
    }

    /// The origin of the request, if it is listed.
    fn listed_origin(&self, request: &Parts) -> Readers {
        let mut origins = request.headers.get_all(header::ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (Some(origin), None)
                if origin.to_str().is_ok_and(|text| self.hosts.is_listed_origin(text)) =>
            {
                Readers::Origin(origin.clone())
            }
            _ => Readers::Own,
        }
    }

    /// Only browsers send these headers. For images, scripts and links they omit `Origin`, but
    /// `Sec-Fetch-Site` still says that the request comes from another site.
    fn is_own_page(&self, request: &Parts, host: &str) -> bool {
        let headers = &request.headers;
        let mut origins = headers.get_all(header::ORIGIN).iter().peekable();
        if origins.peek().is_none() {
            let own = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
            return headers.get_all(FETCH_SITE).iter().all(own);
        }
        origins.all(|origin| {
            origin.to_str().is_ok_and(|origin| self.hosts.is_own_origin(origin, host))
        })
    }
}

/// RFC 9112 section 3.2: exactly one `Host`; only an HTTP/1.0 request may have none.
fn host_of(request: &Parts) -> Result<&str, EdgeError> {
    let malformed = |what| EdgeError::Malformed { what };
    let mut hosts = request.headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().map_err(|_| malformed("its Host is not valid text")),
        (None, _) if request.version == Version::HTTP_10 => Ok(""),
        (None, _) => Err(malformed("it has no Host")),
        (Some(_), Some(_)) => Err(malformed("it has more than one Host")),
    }
}

/// The address of the caller. It is unknown only without the accept loop, as in tests; all such
/// callers count as one.
pub(super) fn peer_of(request: &Parts) -> Peer {
    let connected = request.extensions.get::<ConnectInfo<SocketAddr>>();
    let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
    Peer::from(connected.map_or(unknown, |ConnectInfo(address)| *address))
}
