//! The path policy: what the edge must know about paths.
//!
//! The edge knows no protocol. The `app` module tells it what a path is for and how its errors
//! look.

use axum::body::Body;
use http::{Extensions, HeaderMap, Method, Response, StatusCode};

use super::fast_path::FastRoute;

/// Knows all paths of the hub.
pub trait PathPolicy: Send + Sync {
    /// The class of a request to `path`. Also called for paths that do not exist.
    fn classify(&self, method: &Method, path: &str) -> RequestClass;

    /// The response for an error, in the format of the protocol that owns `path`. The edge adds the
    /// request id and `Retry-After`.
    fn error_response(&self, path: &str, error: EdgeError) -> Response<Body>;

    /// The largest body for `path`, in bytes.
    fn body_limit(&self, path: &str) -> usize;

    /// Whether a request is a health check. A few connections are reserved for them when all others
    /// are taken, so it must be cheap to answer.
    fn is_health_check(&self, _method: &Method, _path: &str) -> bool {
        false
    }

    /// The path without superfluous slashes; `None` if there are none.
    fn normalized_path(&self, _path: &str) -> Option<String> {
        None
    }

    /// The principal of a valid credential. Every spelling of a key, and every key of an agent,
    /// gives the same principal. The result is stored in the request's extensions for its handler.
    fn find_principal(
        &self,
        _headers: &HeaderMap,
        _extensions: &mut Extensions,
    ) -> Option<Principal> {
        None
    }

    /// How many rows were read for a response.
    fn rows_read(&self, _answer: &Response<Body>) -> u64 {
        0
    }

    /// The fast route of a frequent write, if the path has one.
    fn fast_routes(&self, _method: &Method, _path: &str) -> Option<FastRoute> {
        None
    }
}

/// How a request is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestClass {
    pub origins: AllowedOrigins,
    pub rate: RateClass,
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
}

/// A caller whose credential was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    /// An agent, by its number.
    Agent(u64),
    Operator,
}

/// The rate class of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateClass {
    /// Counted by the length of its response.
    Read,
    /// Counted per principal.
    Write,
    /// Counted per address, because an agent that registers has no credential yet.
    Register,
    /// Counted per address with a generous limit; the signer is counted once it is known.
    Signed,
}

/// Why the edge itself refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EdgeError {
    #[error("malformed HTTP request: {what}")]
    Malformed { what: &'static str },
    #[error("unknown Host; the operator can add it to http.allowed_hosts")]
    WrongHost,
    #[error("cross-origin requests are not allowed here")]
    ForeignOrigin,
    #[error("compressed bodies are not supported; send the body without Content-Encoding")]
    EncodedBody,
    #[error("the body is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the body took too long to arrive")]
    TooSlow,
    #[error("too many requests; retry in {retry_after_seconds} s")]
    TooManyRequests { retry_after_seconds: u64 },
    #[error("the hub is overloaded; retry in {} s", OVERLOAD_RETRY_SECONDS)]
    Overloaded,
    #[error("internal error; the log has details under the request id")]
    Internal,
}

/// When to retry if the hub is overloaded.
const OVERLOAD_RETRY_SECONDS: u64 = 1;

impl EdgeError {
    /// The HTTP status, the same in every protocol.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Malformed { .. } => StatusCode::BAD_REQUEST,
            Self::WrongHost => StatusCode::MISDIRECTED_REQUEST,
            Self::ForeignOrigin => StatusCode::FORBIDDEN,
            Self::EncodedBody => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooManyRequests { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// After how many seconds the same request may succeed; `None` when waiting does not help.
    pub const fn retry_after_seconds(self) -> Option<u64> {
        match self {
            Self::TooManyRequests { retry_after_seconds } => Some(retry_after_seconds),
            Self::Overloaded => Some(OVERLOAD_RETRY_SECONDS),
            Self::Malformed { .. }
            | Self::WrongHost
            | Self::ForeignOrigin
            | Self::EncodedBody
            | Self::TooLarge { .. }
            | Self::TooSlow
            | Self::Internal => None,
        }
    }

    /// Whether the same request may succeed later.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::TooSlow | Self::Internal) || self.retry_after_seconds().is_some()
    }
}
