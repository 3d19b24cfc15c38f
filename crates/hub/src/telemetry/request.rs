//! One completed request, as it is logged and counted.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use parking_lot::RwLock;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use tracing::{debug, info};

/// The label for every path without a route, so that callers cannot invent label values.
const ROUTE_NONE: &str = "none";
/// The label for every other method, for the same reason.
const VERB_OTHER: &str = "OTHER";

/// A request and the result of its response.
#[derive(Clone, Copy)]
pub struct CompletedRequest<'r> {
    pub method: MethodLabel,
    pub route: &'r RouteSeries,
    pub status: StatusCode,
    /// Until the response head was ready; a stream goes on long after that.
    pub took: Duration,
}

/// A method label from a closed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MethodLabel(&'static str);

/// The path template of an operation, such as `/v1/agents/{id}`.
#[derive(Clone, Debug)]
pub struct RouteLabel(Option<Arc<str>>);

/// A route, and the series that its requests are counted in. A series is looked up by its labels
/// once, and not at every request.
pub struct RouteSeries {
    label: RouteLabel,
    /// As many as there are methods and statuses.
    known: RwLock<Vec<RequestSeries>>,
}

/// The series of the requests with one method, route and status.
pub struct RequestSeries {
    pub method: MethodLabel,
    pub status: StatusCode,
    pub duration: Histogram,
    pub count: Counter,
}

impl CompletedRequest<'_> {
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

impl RouteSeries {
    /// The route with this template; without one, that of all paths that have none.
    pub fn new(template: Option<&str>) -> Self {
        Self { label: RouteLabel(template.map(Arc::from)), known: RwLock::default() }
    }

    pub fn as_str(&self) -> &str {
        self.label.as_str()
    }

    pub fn label(&self) -> &RouteLabel {
        &self.label
    }

    /// Uses the series of a method and status, which is created the first time.
    pub fn with_series<T>(
        &self,
        (method, status): (MethodLabel, StatusCode),
        create: impl FnOnce() -> RequestSeries,
        record: impl FnOnce(&RequestSeries) -> T,
    ) -> T {
        let same = |known: &&RequestSeries| known.status == status && known.method == method;
        if let Some(series) = self.known.read().iter().find(same) {
            return record(series);
        }
        let series = create();
        let recorded = record(&series);
        let mut known = self.known.write();
        // Another thread may have been faster; both have the same series.
        if !known.iter().any(|known| same(&known)) {
            known.push(series);
        }
        recorded
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
