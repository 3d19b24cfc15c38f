//! What is checked of every request before a protocol sees it.

use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use http::{HeaderValue, Method, Request, Version, header};
use hyper::body::Body as HttpBody;

use super::connection::Ambiguous;
use super::cors;
use super::front::Front;
use super::house::{Class, Kind, Trouble};
use super::limits::Caller;
use super::peer::Peer;

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
            && self.house.class(&method, path).public
        {
            return Ok(Verdict::Preflight(method));
        }
        if !class.public && !self.is_home(request, host) {
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
    pub(super) fn caller<B>(&self, request: &Request<B>, kind: Kind) -> Caller {
        let by_principal = matches!(kind, Kind::Read | Kind::Write);
        let principal = by_principal.then(|| self.house.principal(request.headers())).flatten();
        Caller { principal, peer: peer_of(request) }
    }

    /// Only browsers say where a request comes from, and they always do when it matters.
    fn is_home<B>(&self, request: &Request<B>, host: &str) -> bool {
        let mut origins = request.headers().get_all(header::ORIGIN).iter();
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
