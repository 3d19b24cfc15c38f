//! The table of all operations: which of them a request is for, and in whose format errors are.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::request::Parts;
use http::{HeaderValue, Method};
use rialto_protocols::adapter::api::{Api, ServedOperation, default_origins};
use rialto_protocols::adapter::operation::BodyRule;
use rialto_protocols::adapter::request::{MatchedOperation, decode_path_param, read_body};
use rialto_protocols::adapter::{AllowedOrigins, EdgeError, Freshness, OperationInfo, RateClass};
use rialto_protocols::kit::ijson;

use crate::telemetry::RouteSeries;

/// The response to a body that none of several operations recognizes, or more than one. Where the
/// body is not JSON, the text says why.
pub type UnrecognizedBody =
    Box<dyn Fn(&[Arc<ServedOperation>], Option<String>) -> Response + Send + Sync>;

/// Every operation of the hub, by path and method.
pub struct OperationTable {
    paths: matchit::Router<PathEntry>,
    /// The API that answers paths without an operation, by their first segment.
    by_segment: HashMap<String, Arc<dyn Api>>,
    /// The API that answers all other paths.
    fallback: Arc<dyn Api>,
    /// The series of requests for these.
    no_route: RouteSeries,
    body_limit: usize,
    unrecognized: UnrecognizedBody,
}

/// Two operations cannot be told apart.
#[derive(Debug, thiserror::Error)]
#[error("two operations cannot be told apart: {method} {path}")]
pub struct OperationClash {
    method: &'static str,
    path: String,
}

/// One path and its operations.
struct PathEntry {
    series: RouteSeries,
    by_method: Vec<(&'static str, Vec<Arc<ServedOperation>>)>,
    api: Arc<dyn Api>,
    allow: HeaderValue,
}

/// What the table has for a request.
pub struct Route<'t> {
    table: &'t OperationTable,
    path: Option<&'t PathEntry>,
    /// None, one, or several that are told apart by the body.
    operations: &'t [Arc<ServedOperation>],
    /// In whose format errors are.
    pub api: &'t Arc<dyn Api>,
    path_params: Vec<Option<String>>,
}

/// In which format errors of a request are.
#[derive(Clone, Copy)]
pub struct ErrorFormat<'t> {
    api: &'t dyn Api,
    /// The operation, where it is known without the body.
    operation: Option<&'t OperationInfo>,
}

impl<'t> ErrorFormat<'t> {
    /// That of an operation.
    pub fn of(operation: &'t ServedOperation) -> Self {
        Self { api: &*operation.api, operation: Some(&operation.info) }
    }

    pub fn response(self, error: EdgeError) -> Response {
        match self.operation {
            Some(operation) => self.api.operation_error(operation, error),
            None => self.api.error_response(error),
        }
    }
}

/// How a request is treated before its operation is known for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestClass {
    pub origins: AllowedOrigins,
    /// `None` if it depends on the body.
    pub rate: Option<RateClass>,
    /// Whether the answer counts against the read rate in any case.
    pub reads_too: bool,
    pub freshness: Freshness,
    /// The longest body, in bytes.
    pub body_limit: usize,
    pub is_health_check: bool,
}

impl OperationTable {
    /// The operations of `apis`, of which there is at least one. No body may have more than
    /// `body_limit` bytes.
    pub fn new(
        apis: &[Arc<dyn Api>],
        body_limit: usize,
        unrecognized: UnrecognizedBody,
    ) -> Result<Self, OperationClash> {
        let mut by_path: Vec<(String, Vec<Arc<ServedOperation>>)> = Vec::new();
        let mut by_segment = HashMap::new();
        for api in apis {
            for operation in api.operations() {
                let path = operation.info.path.clone();
                let segment = first_segment(&path).to_owned();
                by_segment.entry(segment).or_insert_with(|| api.clone());
                let served = Arc::new(ServedOperation::new(operation, api.clone(), body_limit));
                match by_path.iter_mut().find(|(known, _)| *known == path) {
                    Some((_, operations)) => operations.push(served),
                    None => by_path.push((path, vec![served])),
                }
            }
        }
        // A prefix takes precedence over any path at the root.
        by_segment.extend(apis.iter().map(|api| (api.prefix().to_owned(), api.clone())));
        let mut paths = matchit::Router::new();
        for (path, operations) in by_path {
            let method = operations[0].info.method;
            let entry = PathEntry::new(&path, operations)?;
            paths.insert(&path, entry).map_err(|_| OperationClash { method, path })?;
        }
        let fallback = apis.iter().find(|api| api.handles_unknown_paths()).or(apis.first());
        let fallback = fallback.expect("there is at least one API").clone();
        let no_route = RouteSeries::new(None);
        Ok(Self { paths, by_segment, fallback, no_route, body_limit, unrecognized })
    }

    /// What is served at a path. It is the only place where a path is matched.
    pub fn find(&self, method: &Method, path: &str) -> Route<'_> {
        let Ok(entry) = self.paths.at(path) else {
            let (operations, api) = (Default::default(), self.api_of_unknown(path));
            return Route { table: self, path: None, operations, api, path_params: Vec::new() };
        };
        let path_params = entry.params.iter().map(|(_, text)| decode_path_param(text)).collect();
        let method = if method == Method::HEAD { "GET" } else { method.as_str() };
        let entry = entry.value;
        let mut with_method = entry.by_method.iter().filter(|(known, _)| *known == method);
        let operations = with_method.next().map(|(_, all)| all.as_slice()).unwrap_or_default();
        Route { table: self, path: Some(entry), operations, api: &entry.api, path_params }
    }

    /// The series of paths without an operation.
    pub fn no_route(&self) -> &RouteSeries {
        &self.no_route
    }

    /// The path without superfluous slashes; `None` if there are none, or they count.
    pub fn normalized_path(&self, path: &str) -> Option<String> {
        let has_extra = path.contains("//") || path.len() > 1 && path.ends_with('/');
        if !has_extra || !self.api_of_unknown(path).allows_any_origin() {
            return None;
        }
        let parts = path.split('/').filter(|part| !part.is_empty());
        Some(parts.fold(String::new(), |path, part| path + "/" + part))
    }

    fn api_of_unknown(&self, path: &str) -> &Arc<dyn Api> {
        self.by_segment.get(first_segment(path)).unwrap_or(&self.fallback)
    }
}

fn first_segment(path: &str) -> &str {
    path.trim_start_matches('/').split('/').next().unwrap_or_default()
}

impl PathEntry {
    fn new(path: &str, mut all: Vec<Arc<ServedOperation>>) -> Result<Self, OperationClash> {
        let api = all[0].api.clone();
        // `Allow` names public reads first.
        all.sort_by_key(|operation| !operation.info.access.is_public());
        let mut by_method: Vec<(&str, Vec<Arc<ServedOperation>>)> = Vec::new();
        for operation in all {
            let method = operation.info.method;
            let same = by_method.iter_mut().find(|(known, _)| *known == method);
            let Some((_, others)) = same else {
                by_method.push((method, vec![operation]));
                continue;
            };
            let takes_any = |one: &ServedOperation| matches!(one.info.body_rule, BodyRule::Any);
            if takes_any(&operation) && others.iter().any(|other| takes_any(other)) {
                return Err(OperationClash { method, path: path.to_owned() });
            }
            others.push(operation);
        }
        let with_head = |method| if method == "GET" { "GET,HEAD" } else { method };
        let allow: Vec<&str> = by_method.iter().map(|(method, _)| with_head(*method)).collect();
        let allow = HeaderValue::from_str(&allow.join(",")).expect("methods are valid text");
        Ok(Self { series: RouteSeries::new(Some(path)), by_method, api, allow })
    }
}

impl<'t> Route<'t> {
    /// The series that the request is counted in.
    pub fn series(&self) -> &'t RouteSeries {
        self.path.map_or(&self.table.no_route, |path| &path.series)
    }

    /// The value of `Allow`, where the path exists and not the method.
    pub fn allow(&self) -> Option<HeaderValue> {
        self.path.filter(|_| self.operations.is_empty()).map(|path| path.allow.clone())
    }

    /// The format of its errors.
    pub fn error_format(&self) -> ErrorFormat<'t> {
        match self.operations {
            [only] => ErrorFormat::of(only),
            _ => ErrorFormat { api: &**self.api, operation: None },
        }
    }

    /// How the request is treated. `method` is that of the request.
    pub fn class(&self, method: &Method) -> RequestClass {
        let Some((first, others)) = self.operations.split_first() else {
            let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
            return RequestClass {
                origins: default_origins(&**self.api),
                rate: Some(if reads { RateClass::Read } else { RateClass::Write }),
                reads_too: false,
                freshness: Freshness::AsIs,
                body_limit: self.table.body_limit.min(self.api.body_max()),
                is_health_check: false,
            };
        };
        let mut class = RequestClass {
            origins: first.origins,
            rate: Some(first.info.rate),
            reads_too: first.info.reads_too,
            freshness: first.info.freshness,
            body_limit: first.body_limit,
            is_health_check: first.info.is_health_check,
        };
        for other in others {
            class.rate = class.rate.filter(|rate| *rate == other.info.rate);
            class.reads_too |= other.info.reads_too;
            class.freshness = class.freshness.max(other.info.freshness);
            class.body_limit = class.body_limit.max(other.body_limit);
            if class.origins != other.origins {
                class.origins = AllowedOrigins::Own;
            }
        }
        class
    }

    /// The operation that a request is for, with the request for it. The body is read only where
    /// it decides. An error is the response.
    pub async fn select(
        self,
        mut parts: Parts,
        mut body: Body,
    ) -> Result<(&'t Arc<ServedOperation>, Request), Response> {
        let operation = match self.operations {
            [] if self.path.is_none() => return Err(self.api.error_response(EdgeError::NotFound)),
            [] => return Err(self.api.error_response(EdgeError::MethodNotAllowed)),
            [operation] => operation,
            several => {
                let error_response = |error| self.api.error_response(error);
                let bytes = read_body(body).await.map_err(error_response)?;
                let unrecognized = |unreadable| (self.table.unrecognized)(several, unreadable);
                let operation = recognize(several, &bytes).map_err(unrecognized)?;
                let limit = operation.body_limit;
                body = if bytes.len() > limit {
                    // The operation refuses its caller first, if it has a reason to.
                    Body::from_stream(stream::iter([Err::<Bytes, _>(EdgeError::TooLarge {
                        limit,
                    })]))
                } else {
                    Body::from(bytes)
                };
                operation
            }
        };
        let path_params = self.path_params;
        parts.extensions.insert(MatchedOperation { operation: operation.clone(), path_params });
        Ok((operation, Request::from_parts(parts, body)))
    }
}

/// The operation that takes a body. An error says why the body is not JSON, if it is not.
fn recognize<'o>(
    operations: &'o [Arc<ServedOperation>],
    body: &[u8],
) -> Result<&'o Arc<ServedOperation>, Option<String>> {
    let json = ijson::read(body);
    let recognizes = |operation: &&Arc<ServedOperation>| {
        json.as_ref().is_ok_and(|json| operation.info.body_rule.recognizes(json))
    };
    let mut recognizing = operations.iter().filter(recognizes);
    if let (Some(operation), None) = (recognizing.next(), recognizing.next()) {
        return Ok(operation);
    }
    let takes_any =
        |operation: &&Arc<ServedOperation>| matches!(operation.info.body_rule, BodyRule::Any);
    let unreadable = || json.as_ref().err().map(ToString::to_string);
    operations.iter().find(takes_any).ok_or_else(unreadable)
}
