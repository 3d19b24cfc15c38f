//! What the edge has to be told about paths.
//!
//! The edge knows no protocol: whoever puts the protocols together tells it what a path is for and
//! how its errors look.

use axum::body::Body;
use http::{Extensions, HeaderMap, Method, Response, StatusCode};

use super::express::Express;

/// Knows all paths of the hub.
pub trait House: Send + Sync {
    /// What a request to `path` is for. Also asked about paths that do not exist.
    fn class(&self, method: &Method, path: &str) -> Class;

    /// `trouble` as the protocol that owns `path` tells it. The request id and `Retry-After` are
    /// added by the edge.
    fn trouble(&self, path: &str, trouble: Trouble) -> Response<Body>;

    /// The largest body `path` takes, in bytes.
    fn body_limit(&self, path: &str) -> usize;

    /// Whether a request only asks how the hub is. There are a few connections for that when all
    /// others are taken, so it must be cheap to answer.
    fn is_health(&self, _method: &Method, _path: &str) -> bool {
        false
    }

    /// The path that is meant by one with slashes too many; nothing if it is meant as it stands.
    fn tidied(&self, _path: &str) -> Option<String> {
        None
    }

    /// Whose credential a request shows, if it is one that works. However a key is spelled, and
    /// whichever of its keys an agent shows, it is the same caller. What was found is kept in the
    /// request's extensions for its handler.
    fn principal(&self, _headers: &HeaderMap, _extensions: &mut Extensions) -> Option<Principal> {
        None
    }

    /// How many rows were looked at for an answer.
    fn rows_read(&self, _answer: &Response<Body>) -> u64 {
        0
    }

    /// The fast route of a frequent write, if the path has one.
    fn express(&self, _method: &Method, _path: &str) -> Option<Express> {
        None
    }
}

/// How a request is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    pub pages: Pages,
    pub kind: Kind,
}

/// Whose web pages may send a request and read its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Those of every origin: it changes nothing, and everybody may read the answer.
    Any,
    /// Those of every origin where the hub is published to strangers; elsewhere only its own. The
    /// body's signature says who may do what, and nothing the browser adds counts.
    AnyIfPublished,
    /// Those of the hub's own origin and of configured ones.
    Own,
}

/// A caller whose credential was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    /// An agent, by its number.
    Agent(u64),
    Operator,
}

/// What a request counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Counted by the length of its answer.
    Read,
    /// Counted for each principal.
    Write,
    /// Counted for each peer, since an agent that registers has no credential yet.
    Register,
    /// Counted for each peer, loosely: who signed it is counted once that is known.
    Signed,
}

/// Why the edge itself refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    #[error("malformed HTTP request: {what}")]
    Malformed { what: &'static str },
    #[error("unknown Host; the operator can add it to http.allowed_hosts")]
    WrongHost,
    #[error("cross-origin requests are not allowed here")]
    ForeignOrigin,
    #[error("compressed bodies are not supported; send the body without Content-Encoding")]
    Encoded,
    #[error("the body is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the body took too long to arrive")]
    TooSlow,
    #[error("too many requests; retry in {retry_after_seconds} s")]
    TooManyRequests { retry_after_seconds: u64 },
    #[error("the hub is overloaded; retry in {} s", OVERLOAD_SECONDS)]
    Overloaded,
    #[error("internal error; the log has details under the request id")]
    Broken,
}

/// When to come back to a hub that has too much to do.
const OVERLOAD_SECONDS: u64 = 1;

impl Trouble {
    /// The status every protocol answers it with.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Malformed { .. } => StatusCode::BAD_REQUEST,
            Self::WrongHost => StatusCode::MISDIRECTED_REQUEST,
            Self::ForeignOrigin => StatusCode::FORBIDDEN,
            Self::Encoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooManyRequests { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// In how many seconds the same request may succeed; `None` when waiting does not help.
    pub const fn retry_after_seconds(self) -> Option<u64> {
        match self {
            Self::TooManyRequests { retry_after_seconds } => Some(retry_after_seconds),
            Self::Overloaded => Some(OVERLOAD_SECONDS),
            Self::Malformed { .. }
            | Self::WrongHost
            | Self::ForeignOrigin
            | Self::Encoded
            | Self::TooLarge { .. }
            | Self::TooSlow
            | Self::Broken => None,
        }
    }

    /// Whether the same request may succeed later.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::TooSlow | Self::Broken) || self.retry_after_seconds().is_some()
    }
}
