//! What every hub of this version answers to every caller: openings and lists. `rialto mcp` answers
//! with it while no hub can be reached.

use std::sync::Arc;

use super::catalogue::{Catalogue, ResultFuture, ServerInfo};
use super::hub::SERVER;
use super::tools::{self, INSTRUCTIONS, ToolGroups};
use super::wire::error::RpcError;
use super::wire::message::ClientRequest;
use super::wire::method::Method;
use super::wire::result::{CacheHint, ResultObject, json_array};
use super::wire::version::Era;
use super::{agents, hub, serve};

/// The catalogue of a hub that cannot be asked.
#[derive(Clone, Debug)]
pub struct FixedCatalogue {
    pub groups: ToolGroups,
    /// Whether the tools are skills of agents, which only the hub knows.
    pub is_for_agents: bool,
}

impl FixedCatalogue {
    /// The server's name and version, as JSON text.
    pub fn server() -> String {
        serve::name_and_version(SERVER)
    }

    /// The result of a request for what does not depend on a hub; `None` for all others.
    pub fn result(&self, method: Method) -> Option<ResultObject> {
        Some(match method {
            Method::Discover => serve::discover(self),
            Method::ListTools if self.is_for_agents => {
                // Nothing is known of skills now, so the list is not for keeping.
                let list = json_array(tools::listed_tool("get_job"));
                ResultObject::default().raw("tools", list).cached(CacheHint::NONE)
            }
            other => return hub::list(other, &self.groups),
        })
    }
}

impl Catalogue for FixedCatalogue {
    fn server(&self) -> ServerInfo {
        SERVER
    }

    fn instructions(&self) -> &str {
        if self.is_for_agents { agents::INSTRUCTIONS } else { &INSTRUCTIONS }
    }

    fn capabilities(&self, era: Era) -> String {
        if self.is_for_agents {
            agents::capabilities(era)
        } else {
            hub::capabilities(era).to_owned()
        }
    }

    fn call(self: Arc<Self>, request: ClientRequest) -> ResultFuture {
        let result = self.result(request.method);
        let unknown = || RpcError::unknown_method(request.method.name());
        let result = result.ok_or_else(unknown);
        Box::pin(async move { result })
    }
}
