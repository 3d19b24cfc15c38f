//! What is checked of every request before a protocol sees it.

use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use http::{HeaderName, HeaderValue, Method, Request, Version, header};
use hyper::body::Body as HttpBody;

use super::connection::Ambiguous;
use super::cors;
use super::front::Front;
use super::house::{Class, Kind, Pages, Trouble};
use super::limits::Caller;
use super::peer::Peer;

/// Where a browser says a request comes from: the same origin, the same site, another one, or no
/// page at all (W3C Fetch Metadata).
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What becomes of a request nothing is wrong with.
pub enum Verdict {
    Pass,
    /// A browser only asks whether a page may send this method.
    Preflight(Method),
}

impl Front {
    /// Who asks for what comes first, then what it looks like, then how often: a request that is
    /// refused anyway is not counted.
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
        // How the hub is may be asked however much else was read.
        if !self.house.is_health(request.method(), path) {
            self.limits.check(class.kind, caller)?;
        }
        Ok(Verdict::Pass)
    }

    /// Who is counted for a request. Whose key it shows is looked up where that makes a difference.
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

    /// Whether the page that sends a request may read its answer, whatever its origin is.
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

    /// Only browsers say where a request comes from. They leave `Origin` out of what a page fetches
    /// without reading it (an image, a script, a link), but say there that it is another site's.
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

/// RFC 9112 section 3.2: a request has exactly one `Host`, and only an old one may have none.
fn host_of<B>(request: &Request<B>) -> Result<&str, Trouble> {
    let malformed = |what| Trouble::Malformed { what };
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().map_err(|_| malformed("its Host is no text")),
        (None, _) if request.version() == Version::HTTP_10 => Ok(""),
        (None, _) => Err(malformed("it has no Host")),
        (Some(_), Some(_)) => Err(malformed("it has more than one Host")),
    }
}

/// Who asks. Only a router without the accept loop, as in a test, does not know; all its callers
/// are one.
pub(super) fn peer_of<B>(request: &Request<B>) -> Peer {
    let connected = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let nobody = SocketAddr::from(([0, 0, 0, 0], 0));
    Peer::from(connected.map_or(nobody, |ConnectInfo(address)| *address))
}
