//! APIs: operations with one error format, those of a protocol or the hub's own.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;

use super::edge_error::EdgeError;
use super::idempotency::{self, IdempotencyResponses};
use super::operation::{Operation, OperationHandler, OperationInfo, ResponseFuture};

/// A protocol, or an API of the hub itself, while the hub runs.
pub trait Api: Send + Sync {
    /// The first segment of its paths. Every path that begins with it belongs to this API, whether
    /// or not there is such a path.
    fn prefix(&self) -> &str;

    /// Its operations at all paths where they are served.
    fn operations(&self) -> Vec<Operation<()>>;

    /// A refusal by the edge, in the format of this API.
    fn error_response(&self, error: EdgeError) -> Response;

    /// A refusal of a request for one of its operations, which may have a format of its own.
    fn operation_error(&self, _: &OperationInfo, error: EdgeError) -> Response {
        self.error_response(error)
    }

    /// The response where a variable part of a path is not valid UTF-8; `None` if operations answer
    /// it like a name that does not exist.
    fn unreadable_path(&self) -> Option<Response> {
        None
    }

    /// The longest body it reads, where that is less than the hub's own limit.
    fn body_max(&self) -> usize {
        usize::MAX
    }

    /// How it answers requests with an idempotency key; `None` if it takes none.
    fn idempotency(&self) -> Option<&dyn IdempotencyResponses> {
        None
    }

    /// Whether web pages of any origin may call all of it where the hub is published, and extra
    /// slashes in its paths are ignored: for protocols that trust only signatures.
    fn allows_any_origin(&self) -> bool {
        false
    }

    /// Whether web pages of the origins that the operator lists for models may call it.
    fn allows_listed_origins(&self) -> bool {
        false
    }

    /// Whether paths that belong to no API are answered in its format.
    fn handles_unknown_paths(&self) -> bool {
        false
    }

    /// Calls the operation, at most once per idempotency key.
    fn call(&self, operation: &Arc<ServedOperation>, request: Request) -> ResponseFuture {
        if operation.info.takes_idempotency_key
            && request.headers().contains_key(idempotency::HEADER)
        {
            Box::pin(idempotency::call_with_key(operation.clone(), request))
        } else {
            operation.call_handler(request)
        }
    }
}

/// Which web pages may send a request and read its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedOrigins {
    /// Pages of every origin: the request changes nothing, and the response is public.
    Any,
    /// Pages of every origin if the hub is public, else only its own. The body is signed, so
    /// nothing that the browser adds gives any access.
    AnyIfPublished,
    /// Pages of the hub's own origin and of configured ones.
    Own,
    /// The same, and pages of the origins that are listed for models.
    OwnOrListed,
}

/// An operation at one of its paths.
pub struct ServedOperation {
    pub info: OperationInfo,
    pub api: Arc<dyn Api>,
    pub origins: AllowedOrigins,
    /// The longest body, in bytes.
    pub body_limit: usize,
    handler: OperationHandler<()>,
}

impl ServedOperation {
    pub fn new(operation: Operation<()>, api: Arc<dyn Api>, body_limit: usize) -> Self {
        let Operation { info, handler, .. } = operation;
        let origins = if info.access.is_public() && info.method == "GET" {
            AllowedOrigins::Any
        } else {
            default_origins(&*api)
        };
        Self { info, origins, body_limit: body_limit.min(api.body_max()), handler, api }
    }

    /// Calls its handler, without regard to idempotency.
    pub fn call_handler(&self, request: Request) -> ResponseFuture {
        (self.handler)((), request)
    }

    /// The path of a request, relative to the API where its operations are declared that way: the
    /// same under the prefix and at the root.
    pub fn relative_path<'p>(&self, path: &'p str) -> &'p str {
        self.info.protocol.map_or(path, |protocol| without_prefix(protocol.as_str(), path))
    }
}

fn without_prefix<'p>(prefix: &str, path: &'p str) -> &'p str {
    match path.strip_prefix('/').and_then(|rest| rest.strip_prefix(prefix)) {
        Some("") => "/",
        Some(rest) if rest.starts_with('/') => rest,
        _ => path,
    }
}

/// The origins that may call what is not a public read.
pub fn default_origins(api: &dyn Api) -> AllowedOrigins {
    if api.allows_any_origin() {
        AllowedOrigins::AnyIfPublished
    } else if api.allows_listed_origins() {
        AllowedOrigins::OwnOrListed
    } else {
        AllowedOrigins::Own
    }
}

#[cfg(test)]
mod tests {
    use super::without_prefix;

    #[test]
    fn a_path_is_the_same_under_the_prefix_and_at_the_root() {
        for (path, relative) in [
            ("/some/jobs", "/jobs"),
            ("/jobs", "/jobs"),
            ("/some", "/"),
            ("/something/jobs", "/something/jobs"),
        ] {
            assert_eq!(without_prefix("some", path), relative, "{path}");
        }
    }
}
