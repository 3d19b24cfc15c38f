//! Checks of every request before it reaches a protocol.

use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use http::{HeaderName, HeaderValue, Method, Request, Version, header};
use hyper::body::Body as HttpBody;

use super::connection::Ambiguous;
use super::cors;
use super::layer::Front;
use super::path_policy::{Class, Kind, Pages, Trouble};
use super::rate_limits::Caller;
use super::peer::Peer;

/// Where a browser request comes from: the same origin, the same site, another site, or no page at
/// all (W3C Fetch Metadata).
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What to do with a request that passed all checks.
pub enum Verdict {
    Pass,
    /// Answer a CORS preflight for this method.
    Preflight(Method),
}

impl Front {
    /// Checks access first, then form, then rate: a request that is refused anyway does not count
    /// against the rate limits.
    pub(super) fn judge<B: HttpBody>(
        &self,
        request: &Request<B>,
        class: Class,
        caller: Caller,
    ) -> Result<Verdict, Trouble> {
        let host = host_of(request)?;
        let target = request.uri().authority().map(|authority| authority.as_str());
        if !self.hosts.answers_to(host) || !target.is_none_or(|name| self.hosts.answers_to(name)) {
            return Err(Trouble::WrongHost);
        }
        let path = request.uri().path();
        if let Some(method) = cors::preflighted(request)
            && self.is_shared(request, self.house.class(&method, path).pages)
        {
            return Ok(Verdict::Preflight(method));
        }
        if !self.is_shared(request, class.pages) && !self.is_home(request, host) {
            return Err(Trouble::ForeignOrigin);
        }
        if request.extensions().get::<Ambiguous>().is_some() {
            let what = "it has both Content-Length and Transfer-Encoding";
            return Err(Trouble::Malformed { what });
        }
        let headers = request.headers();
        let plain = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
        if !headers.get_all(header::CONTENT_ENCODING).iter().all(plain) {
            return Err(Trouble::Encoded);
        }
        let limit = self.house.body_limit(path);
        if request.body().size_hint().lower() > limit as u64 {
            return Err(Trouble::TooLarge { limit });
        }
        // Health checks are allowed even for a caller that has read too much.
        if !self.house.is_health(request.method(), path) {
            self.limits.check(class.kind, caller)?;
        }
        Ok(Verdict::Pass)
    }

    /// The identity a request is counted under. The key is looked up only where it makes a
    /// difference.
    pub(super) fn caller<B>(&self, request: &mut Request<B>, kind: Kind) -> Caller {
        let peer = peer_of(request);
        if !matches!(kind, Kind::Read | Kind::Write) {
            return Caller { principal: None, peer };
        }
        let mut extensions = std::mem::take(request.extensions_mut());
        let principal = self.house.principal(request.headers(), &mut extensions);
        *request.extensions_mut() = extensions;
        Caller { principal, peer }
    }

    /// Whether any page may read the response, whatever its origin.
    pub(super) fn is_shared<B>(&self, request: &Request<B>, pages: Pages) -> bool {
        match pages {
            Pages::Any => true,
            Pages::AnyIfPublished => host_of(request).is_ok_and(|host| {
                let named = request.headers().contains_key(header::ORIGIN);
                self.hosts.is_published_as(host) || named && self.is_home(request, host)
            }),
            Pages::Own => false,
        }
    }

    /// Only browsers send these headers. For images, scripts and links they omit `Origin`, but
    /// `Sec-Fetch-Site` still says that the request comes from another site.
    fn is_home<B>(&self, request: &Request<B>, host: &str) -> bool {
        let headers = request.headers();
        let mut origins = headers.get_all(header::ORIGIN).iter().peekable();
        if origins.peek().is_none() {
            let own = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
            return headers.get_all(FETCH_SITE).iter().all(own);
        }
        origins.all(|origin| origin.to_str().is_ok_and(|origin| self.hosts.is_home(origin, host)))
    }
}

/// RFC 9112 section 3.2: exactly one `Host`; only an HTTP/1.0 request may have none.
fn host_of<B>(request: &Request<B>) -> Result<&str, Trouble> {
    let malformed = |what| Trouble::Malformed { what };
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().map_err(|_| malformed("its Host is not valid text")),
        (None, _) if request.version() == Version::HTTP_10 => Ok(""),
        (None, _) => Err(malformed("it has no Host")),
        (Some(_), Some(_)) => Err(malformed("it has more than one Host")),
    }
}

/// The address of the caller. It is unknown only without the accept loop, as in tests; all such
/// callers count as one.
pub(super) fn peer_of<B>(request: &Request<B>) -> Peer {
    let connected = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let nobody = SocketAddr::from(([0, 0, 0, 0], 0));
    Peer::from(connected.map_or(nobody, |ConnectInfo(address)| *address))
}
