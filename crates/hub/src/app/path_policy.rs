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
    Access, EdgeError as AdapterError, HubContext, OperationInfo, ProtocolAdapter, RequestHead,
    RowsRead, Signer, WriteLimiter,
};

use super::openapi::operations;
use super::probes;
use crate::edge::{
    AllowedOrigins, BodyFuture, EdgeError, FastRoute, PathPolicy, Principal, RateClass, RateLimits,
    RequestClass,
};
use crate::v1::problem::Problem;

/// The path policy over all paths of this hub.
pub struct HubPathPolicy {
    by_path: Router<Vec<(&'static str, Access)>>,
    body_limit: usize,
    express: HashMap<String, (&'static str, FastRoute)>,
    health: HashSet<String>,
    context: HubContext,
}

impl HubPathPolicy {
    /// Collects the paths of every protocol and of the hub itself.
    pub fn new(context: &HubContext) -> Self {
        let mut by_path: Router<Vec<(&'static str, Access)>> = Router::new();
        for OperationInfo { method, path, access: reach, .. } in operations() {
            match by_path.at_mut(&path) {
                Ok(known) => known.value.push((method, reach)),
                // Two templates for one path never get here: the router has already rejected them.
                Err(_) => drop(by_path.insert(path, vec![(method, reach)])),
            }
        }
        let (express, context) = (express(context), context.clone());
        Self { by_path, body_limit: context.body_limit, express, health: health_paths(), context }
    }

    fn access_of(&self, method: &Method, path: &str) -> Option<Access> {
        let found = self.by_path.at(path).ok()?;
        let wanted = if method == Method::HEAD { "GET" } else { method.as_str() };
        found.value.iter().find(|(method, _)| *method == wanted).map(|(_, reach)| *reach)
    }
}

impl PathPolicy for HubPathPolicy {
    fn classify(&self, method: &Method, path: &str) -> RequestClass {
        let reach = self.access_of(method, path);
        let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        let kind = match reach {
            Some(Access::Register) => RateClass::Register,
            _ if reads => RateClass::Read,
            reach => reach.map_or(RateClass::Write, write_rate_class),
        };
        let open = || owning_protocol(path).is_some_and(ProtocolAdapter::allows_any_origin);
        let pages = match reach {
            Some(Access::Public) if reads => AllowedOrigins::Any,
            _ if open() => AllowedOrigins::AnyIfPublished,
            _ => AllowedOrigins::Own,
        };
        RequestClass { origins: pages, rate: kind }
    }

    fn error_response(&self, path: &str, error: EdgeError) -> Response<Body> {
        error_response(&self.context, path, to_protocol_error(error))
    }

    fn body_limit(&self, path: &str) -> usize {
        // Two protocols share the path; the larger of their body limits applies.
        let shared = path == "/register";
        let owner = owning_protocol(path).filter(|_| !shared);
        owner.map_or(self.body_limit, |adapter| adapter.body_limit(self.body_limit))
    }

    fn is_health_check(&self, method: &Method, path: &str) -> bool {
        matches!(*method, Method::GET | Method::HEAD) && self.health.contains(path)
    }

    fn normalized_path(&self, path: &str) -> Option<String> {
        let untidy = path.contains("//") || path.len() > 1 && path.ends_with('/');
        let spare = untidy && owning_protocol(path).is_some_and(ProtocolAdapter::allows_any_origin);
        let parts = || path.split('/').filter(|part| !part.is_empty());
        spare.then(|| parts().fold(String::new(), |path, part| path + "/" + part))
    }

    fn find_principal(
        &self,
        headers: &HeaderMap,
        extensions: &mut Extensions,
    ) -> Option<Principal> {
        headers.get(header::AUTHORIZATION)?;
        match Caller::identify(&self.context.engine, headers, extensions) {
            Ok(Caller::Agent(id) | Caller::FormerAgent(id)) => Some(Principal::Agent(id.0)),
            Ok(Caller::Operator) => Some(Principal::Operator),
            Ok(Caller::Anonymous) => None,
            // Not an agent or operator key, but it may be a read token of a protocol.
            Err(_) => {
                let reader = self.context.authenticate_reader(headers);
                reader.map(|id| Principal::Agent(id.0))
            }
        }
    }

    fn rows_read(&self, answer: &Response<Body>) -> u64 {
        answer.extensions().get::<RowsRead>().map_or(0, |rows| rows.0 as u64)
    }

    fn fast_routes(&self, method: &Method, path: &str) -> Option<FastRoute> {
        let (taken, express) = self.express.get(path)?;
        (method.as_str() == *taken).then(|| express.clone())
    }
}

/// Health check paths: the hub's own probes and the health operation of each protocol that has one.
/// `/metrics` is not included, because collecting metrics is work.
fn health_paths() -> HashSet<String> {
    let asks = |row: &OperationInfo| row.method == "GET" && row.access.is_public();
    let paths = operations().into_iter().filter(asks).map(|row| row.path);
    paths
        .filter(|path| path.ends_with("/health") || probes::HEALTH_PATHS.contains(&&**path))
        .collect()
}

/// Write rate limits for callers that are identified by their signature.
pub struct SignerLimits(pub Arc<RateLimits>);

impl WriteLimiter for SignerLimits {
    fn count_write(&self, who: Signer<'_>) -> Result<(), AdapterError> {
        let counted = match who {
            Signer::Agent(id) => self.0.check_signer(Principal::Agent(id.0)),
            Signer::Unregistered(name) => self.0.check_signer(name),
        };
        counted.map_err(to_protocol_error)
    }

    fn count_signature_check(&self, from: Option<SocketAddr>) -> Result<(), AdapterError> {
        from.map_or(Ok(()), |from| self.0.check_signature(from.into())).map_err(to_protocol_error)
    }

    fn count_new_sender(&self, from: Option<SocketAddr>) -> Result<(), AdapterError> {
        from.map_or(Ok(()), |from| self.0.check_registration_from(from)).map_err(to_protocol_error)
    }
}

/// An error in the format of the protocol that owns the path.
pub fn error_response(context: &HubContext, path: &str, error: AdapterError) -> Response<Body> {
    match owning_protocol(path).and_then(|adapter| context.protocol(adapter.id())) {
        Some(protocol) => protocol.clone().edge_error_response(context, error),
        None => Problem::from(error).into_response(),
    }
}

/// Fast routes of all protocols, under their prefixes and at every other path they are served on.
fn express(context: &HubContext) -> HashMap<String, (&'static str, FastRoute)> {
    let mut doors = HashMap::new();
    for protocol in &context.protocols {
        let adapter = protocol.adapter();
        for door in protocol.clone().fast_routes(context) {
            let prefixed = format!("/{}{}", adapter.id(), door.path);
            let served = |row: &OperationInfo| {
                row.method == door.method && (row.path == prefixed || row.path == door.path)
            };
            let operations: Vec<_> = adapter.operations().into_iter().filter(served).collect();
            let handler = Arc::new(door.handler);
            for OperationInfo { path, access: reach, .. } in operations {
                let handler = handler.clone();
                let serve = Arc::new(move |parts: Parts, body: BodyFuture| {
                    let Parts { headers, extensions, .. } = parts;
                    let peer = extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
                    let body = Box::pin(async move { body.await.map_err(to_protocol_error) });
                    handler(RequestHead { headers, extensions, peer }, body)
                });
                let (route, unless, kind) =
                    (Arc::from(path.as_str()), door.excluded_headers, write_rate_class(reach));
                doors.insert(
                    path,
                    (
                        door.method,
                        FastRoute { route, rate: kind, excluded_headers: unless, handler: serve },
                    ),
                );
            }
        }
    }
    doors
}

/// The rate class of a write.
fn write_rate_class(reach: Access) -> RateClass {
    match reach {
        Access::Register => RateClass::Register,
        Access::Public => RateClass::Read,
        Access::Signed => RateClass::Signed,
        _ => RateClass::Write,
    }
}

/// The protocol whose prefix the path has.
fn owning_protocol(path: &str) -> Option<&'static dyn ProtocolAdapter> {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    static OWNERS: OnceLock<HashMap<String, &'static dyn ProtocolAdapter>> = OnceLock::new();
    let owners = OWNERS.get_or_init(protocols_by_segment);
    if let Some(adapter) = owners.get(first) {
        return Some(*adapter);
    }
    // `/v1` has its own error format for paths that do not exist.
    let rest = ALL.iter().find(|adapter| adapter.handles_unknown_paths() && first != "v1");
    rest.copied()
}

/// Which protocol owns which first path segment. A path that a protocol's specification puts at the
/// root belongs to that protocol there, too. If several claim it, the first in the list gets it.
fn protocols_by_segment() -> HashMap<String, &'static dyn ProtocolAdapter> {
    let mut owners = HashMap::new();
    for adapter in ALL {
        for OperationInfo { path, .. } in adapter.operations() {
            let first = path.split('/').nth(1).unwrap_or_default();
            owners.entry(first.to_owned()).or_insert(*adapter);
        }
    }
    // A protocol prefix takes precedence over any path at the root.
    owners.extend(ALL.iter().map(|adapter| (adapter.id().as_str().to_owned(), *adapter)));
    owners
}

fn to_protocol_error(error: EdgeError) -> AdapterError {
    match error {
        EdgeError::Malformed { what } => AdapterError::Malformed { what },
        EdgeError::WrongHost => AdapterError::WrongHost,
        EdgeError::ForeignOrigin => AdapterError::ForeignOrigin,
        EdgeError::EncodedBody => AdapterError::EncodedBody,
        EdgeError::TooLarge { limit } => AdapterError::TooLarge { limit },
        EdgeError::TooSlow => AdapterError::TooSlow,
        EdgeError::TooManyRequests { retry_after_seconds } => {
            AdapterError::TooManyRequests { retry_after_seconds }
        }
        EdgeError::Overloaded => AdapterError::Overloaded,
        EdgeError::Internal => AdapterError::Internal,
    }
}
