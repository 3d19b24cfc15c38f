//! What an endpoint offers, apart from how it travels.

use std::pin::Pin;
use std::sync::Arc;

use super::wire::error::RpcError;
use super::wire::message::ClientRequest;
use super::wire::result::ResultObject;
use super::wire::version::Era;

/// A result being computed.
pub type ResultFuture = Pin<Box<dyn Future<Output = Result<ResultObject, RpcError>> + Send>>;

/// A change being waited for.
pub type ChangeFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The server as it names itself.
#[derive(Clone, Copy, Debug)]
pub struct ServerInfo {
    pub name: &'static str,
    pub title: &'static str,
    pub version: &'static str,
}

/// What an endpoint offers to one caller.
pub trait Catalogue: Send + Sync + 'static {
    fn server(&self) -> ServerInfo;

    /// What a model should know before it calls anything.
    fn instructions(&self) -> &str;

    /// The capabilities, as a JSON object.
    fn capabilities(&self, era: Era) -> String;

    /// Answers a request, but for `initialize`, `ping` and `server/discover`. The future is dropped
    /// when the caller hangs up.
    fn call(self: Arc<Self>, request: ClientRequest) -> ResultFuture;
}

/// Notices when the list of tools of an endpoint changes.
pub trait ToolChanges: Send + Sync {
    /// Waits until the tools are others than at the last call. Can be dropped and called again.
    fn changed(&mut self) -> ChangeFuture<'_>;
}
