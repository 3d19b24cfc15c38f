//! Path policy of the hub: which protocol owns a path, its rate class, and the format of its
//! errors.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{Extensions, HeaderMap, Method, header};
use matchit::Router;
use rialto_protocols::ALL;
use rialto_protocols::adapter::caller::Caller;
use rialto_protocols::adapter::{
    Face, Floor, Head, Listed, Reach, RowsRead, Signer, Trouble as FaceTrouble, Writes,
};

use super::openapi::listed;
use super::probes;
use crate::edge::{Class, Express, House, Kind, Limits, Pages, Principal, Reading, Trouble};
use crate::v1::problem::Problem;

/// The path policy over all paths of this hub.
pub struct Paths {
    by_path: Router<Vec<(&'static str, Reach)>>,
    body_limit: usize,
    express: HashMap<String, (&'static str, Express)>,
    health: HashSet<String>,
    floor: Floor,
}

impl Paths {
    /// Collects the paths of every protocol and of the hub itself.
    pub fn new(floor: &Floor) -> Self {
        let mut by_path: Router<Vec<(&'static str, Reach)>> = Router::new();
        for Listed { method, path, reach, .. } in listed() {
            match by_path.at_mut(&path) {
                Ok(known) => known.value.push((method, reach)),
                // Two templates for one path never get here: the router has already rejected them.
                Err(_) => drop(by_path.insert(path, vec![(method, reach)])),
            }
        }
        let (express, floor) = (express(floor), floor.clone());
        Self { by_path, body_limit: floor.body_limit, express, health: health(), floor }
    }

    fn reach(&self, method: &Method, path: &str) -> Option<Reach> {
        let found = self.by_path.at(path).ok()?;
        let wanted = if method == Method::HEAD { "GET" } else { method.as_str() };
        found.value.iter().find(|(method, _)| *method == wanted).map(|(_, reach)| *reach)
    }
}

impl House for Paths {
    fn class(&self, method: &Method, path: &str) -> Class {
        let reach = self.reach(method, path);
        let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        let kind = match reach {
            Some(Reach::Register) => Kind::Register,
            _ if reads => Kind::Read,
            reach => reach.map_or(Kind::Write, counted),
        };
        let open = || owner(path).is_some_and(Face::is_open_to_pages);
        let pages = match reach {
            Some(Reach::Public) if reads => Pages::Any,
            _ if open() => Pages::AnyIfPublished,
            _ => Pages::Own,
        };
        Class { pages, kind }
    }

    fn trouble(&self, path: &str, trouble: Trouble) -> Response<Body> {
        refuse(&self.floor, path, translate(trouble))
    }

    fn body_limit(&self, path: &str) -> usize {
        // Two protocols share the path; the larger of their body limits applies.
        let shared = path == "/register";
        let owner = owner(path).filter(|_| !shared);
        owner.map_or(self.body_limit, |face| face.body_limit(self.body_limit))
    }

    fn is_health(&self, method: &Method, path: &str) -> bool {
        matches!(*method, Method::GET | Method::HEAD) && self.health.contains(path)
    }

    fn tidied(&self, path: &str) -> Option<String> {
        let untidy = path.contains("//") || path.len() > 1 && path.ends_with('/');
        let spare = untidy && owner(path).is_some_and(Face::is_open_to_pages);
        let parts = || path.split('/').filter(|part| !part.is_empty());
        spare.then(|| parts().fold(String::new(), |path, part| path + "/" + part))
    }

    fn principal(&self, headers: &HeaderMap, extensions: &mut Extensions) -> Option<Principal> {
        headers.get(header::AUTHORIZATION)?;
        match Caller::identify(&self.floor.engine, headers, extensions) {
            Ok(Caller::Agent(id) | Caller::Former(id)) => Some(Principal::Agent(id.0)),
            Ok(Caller::Operator) => Some(Principal::Operator),
            Ok(Caller::Nobody) => None,
            // Not an agent or operator key, but it may be a read token of a protocol.
            Err(_) => {
                let reader = ALL.iter().find_map(|face| face.reader(&self.floor, headers));
                reader.map(|id| Principal::Agent(id.0))
            }
        }
    }

    fn rows_read(&self, answer: &Response<Body>) -> u64 {
        answer.extensions().get::<RowsRead>().map_or(0, |rows| rows.0 as u64)
    }

    fn express(&self, method: &Method, path: &str) -> Option<Express> {
        let (taken, express) = self.express.get(path)?;
        (method.as_str() == *taken).then(|| express.clone())
    }
}

/// Health check paths: the hub's own probes and the health operation of each protocol that has one.
/// `/metrics` is not included, because collecting metrics is work.
fn health() -> HashSet<String> {
    let asks = |row: &Listed| row.method == "GET" && row.reach.is_public();
    let paths = listed().into_iter().filter(asks).map(|row| row.path);
    paths.filter(|path| path.ends_with("/health") || probes::HEALTH.contains(&&**path)).collect()
}

/// Write rate limits for callers that are identified by their signature.
pub struct SignersLimits(pub Arc<Limits>);

impl Writes for SignersLimits {
    fn count(&self, who: Signer<'_>) -> Result<(), FaceTrouble> {
        let counted = match who {
            Signer::Agent(id) => self.0.check_signer(Principal::Agent(id.0)),
            Signer::Name(name) => self.0.check_signer(name),
        };
        counted.map_err(translate)
    }

    fn count_check(&self, from: Option<SocketAddr>) -> Result<(), FaceTrouble> {
        from.map_or(Ok(()), |from| self.0.check_signed(from.into())).map_err(translate)
    }

    fn count_newcomer(&self, from: Option<SocketAddr>) -> Result<(), FaceTrouble> {
        from.map_or(Ok(()), |from| self.0.check_newcomer(from)).map_err(translate)
    }
}

/// An error in the format of the protocol that owns the path.
pub fn refuse(floor: &Floor, path: &str, trouble: FaceTrouble) -> Response<Body> {
    match owner(path) {
        Some(face) => face.trouble(floor, trouble),
        None => Problem::from(trouble).into_response(),
    }
}

/// Fast routes of all protocols, under their prefixes and at every other path they are served on.
fn express(floor: &Floor) -> HashMap<String, (&'static str, Express)> {
    let mut doors = HashMap::new();
    for face in ALL {
        for door in face.express() {
            let prefixed = format!("/{}{}", face.id(), door.path);
            let served = |row: &Listed| {
                row.method == door.method && (row.path == prefixed || row.path == door.path)
            };
            for Listed { path, reach, .. } in face.listed().into_iter().filter(served) {
                let (floor, handler) = (floor.clone(), door.handler);
                let serve = Arc::new(move |parts: Parts, body: Reading| {
                    let Parts { headers, extensions, .. } = parts;
                    let peer = extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
                    let body = Box::pin(async move { body.await.map_err(translate) });
                    handler(floor.clone(), Head { headers, extensions, peer }, body)
                });
                let (route, unless, kind) = (Arc::from(path.as_str()), door.unless, counted(reach));
                doors.insert(path, (door.method, Express { route, kind, unless, serve }));
            }
        }
    }
    doors
}

/// The rate class of a write.
fn counted(reach: Reach) -> Kind {
    match reach {
        Reach::Register => Kind::Register,
        Reach::Public => Kind::Read,
        Reach::Signed => Kind::Signed,
        _ => Kind::Write,
    }
}

/// The protocol whose prefix the path has.
fn owner(path: &str) -> Option<&'static dyn Face> {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    static OWNERS: OnceLock<HashMap<String, &'static dyn Face>> = OnceLock::new();
    let owners = OWNERS.get_or_init(owners);
    if let Some(face) = owners.get(first) {
        return Some(*face);
    }
    // `/v1` has its own error format for paths that do not exist.
    let rest = ALL.iter().find(|face| face.owns_the_rest() && first != "v1");
    rest.copied()
}

/// Which protocol owns which first path segment. A path that a protocol's specification puts at the
/// root belongs to that protocol there, too. If several claim it, the first in the list gets it.
fn owners() -> HashMap<String, &'static dyn Face> {
    let mut owners = HashMap::new();
    for face in ALL {
        for Listed { path, .. } in face.listed() {
            let first = path.split('/').nth(1).unwrap_or_default();
            owners.entry(first.to_owned()).or_insert(*face);
        }
    }
    // A protocol prefix takes precedence over any path at the root.
    owners.extend(ALL.iter().map(|face| (face.id().as_str().to_owned(), *face)));
    owners
}

fn translate(trouble: Trouble) -> FaceTrouble {
    match trouble {
        Trouble::Malformed { what } => FaceTrouble::Malformed { what },
        Trouble::WrongHost => FaceTrouble::WrongHost,
        Trouble::ForeignOrigin => FaceTrouble::ForeignOrigin,
        Trouble::Encoded => FaceTrouble::Encoded,
        Trouble::TooLarge { limit } => FaceTrouble::TooLarge { limit },
        Trouble::TooSlow => FaceTrouble::TooSlow,
        Trouble::TooManyRequests { retry_after_seconds } => {
            FaceTrouble::TooManyRequests { retry_after_seconds }
        }
        Trouble::Overloaded => FaceTrouble::Overloaded,
        Trouble::Broken => FaceTrouble::Broken,
    }
}
