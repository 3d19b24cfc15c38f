//! One completed request, as it is logged and counted.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use tracing::{debug, info};

/// The label for every path without a route, so that callers cannot invent label values.
const ROUTE_NONE: &str = "none";
/// The label for every other method, for the same reason.
const VERB_OTHER: &str = "OTHER";

/// A request and the result of its response.
#[derive(Clone, Debug)]
pub struct CompletedRequest {
    pub method: MethodLabel,
    pub route: RouteLabel,
    pub status: StatusCode,
    /// Until the response head was ready; a stream goes on long after that.
    pub took: Duration,
}

/// A method label from a closed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MethodLabel(&'static str);

/// The path template of an operation, such as `/v1/agents/{id}`.
#[derive(Clone)]
pub struct RouteLabel(Option<Arc<str>>);

impl CompletedRequest {
    /// Writes the access log line. Log lines cost more than most requests, so at the default level
    /// only server errors are written; `RIALTO_LOG=info,rialto::access=debug` writes all.
    pub fn log(&self, request_id: &str) {
        let Self { method: MethodLabel(method), route, status, took } = self;
        let (route, status, micros) = (route.as_str(), status.as_u16(), took.as_micros() as u64);
        if status >= 500 {
            info!(target: "rialto::access", method, route, status, micros, request_id, "request completed");
        } else {
            debug!(target: "rialto::access", method, route, status, micros, request_id, "request completed");
        }
    }
}

impl MethodLabel {
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl From<&Method> for MethodLabel {
    fn from(method: &Method) -> Self {
        const NAMED: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
        let named = NAMED.into_iter().find(|name| *name == method.as_str());
        Self(named.unwrap_or(VERB_OTHER))
    }
}

impl RouteLabel {
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or(ROUTE_NONE)
    }
}

impl From<Option<Arc<str>>> for RouteLabel {
    fn from(template: Option<Arc<str>>) -> Self {
        Self(template)
    }
}

impl PartialEq for RouteLabel {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RouteLabel {}

impl Hash for RouteLabel {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for RouteLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invented_methods_share_one_name() {
        let invented = Method::from_bytes(b"BREW").expect("a token is a method");
        assert_eq!(MethodLabel::from(&invented).as_str(), "OTHER");
        assert_eq!(MethodLabel::from(&Method::PATCH).as_str(), "PATCH");
    }
}
