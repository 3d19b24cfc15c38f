//! Why the hub refuses a request before an operation sees it, or instead of one.

/// A refusal by the edge. Every API words it in its own format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EdgeError {
    #[error("no such path")]
    NotFound,
    #[error("this path does not have that method")]
    MethodNotAllowed,
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
    /// The node does not have the newest state of the hub.
    #[error("{}; retry in {} s", NOT_CURRENT, NOT_CURRENT_RETRY_SECONDS)]
    NotCurrent,
    #[error("internal error; the log has details under the request id")]
    Internal,
}

/// The reason for [`EdgeError::NotCurrent`], as every API words it.
pub const NOT_CURRENT: &str = "this node does not have the newest state of the hub";

/// When to retry if the hub is overloaded.
const OVERLOAD_RETRY_SECONDS: u64 = 1;
/// When to retry if the node is behind, there or at another node.
const NOT_CURRENT_RETRY_SECONDS: u64 = 1;

impl EdgeError {
    /// After how many seconds the same request may succeed; `None` when waiting does not help.
    pub const fn retry_after_seconds(self) -> Option<u64> {
        match self {
            Self::TooManyRequests { retry_after_seconds } => Some(retry_after_seconds),
            Self::Overloaded => Some(OVERLOAD_RETRY_SECONDS),
            Self::NotCurrent => Some(NOT_CURRENT_RETRY_SECONDS),
            _ => None,
        }
    }
}
