//! Answers without a hub: openings and lists come from this program, and calls say how to start a hub.

use rialto_hub::mcp::fixed::FixedCatalogue;
use rialto_hub::mcp::tools::ToolError;
use rialto_hub::mcp::wire::error::{INTERNAL, RpcError};
use rialto_hub::mcp::wire::method::Method;
use rialto_hub::mcp::wire::version::Era;
use rialto_protocols::kit::object::ObjectWriter;

use super::hub::HubError;
use crate::commands::context::{DEFAULT_HUB, home};

/// The code of an error for a hub that does not answer.
const UNREACHABLE: &str = "unreachable";

/// The response of the new era to a request that the hub at `base` did not answer.
pub fn answer(
    fixed: &FixedCatalogue,
    base: &str,
    error: &HubError,
    method: &str,
    id: &str,
) -> String {
    let method = Method::parse(method, Era::New);
    if let Some(result) = method.and_then(|method| fixed.result(method)) {
        return result.write(id, Era::New, &FixedCatalogue::server());
    }
    let error = tool_error(base, error);
    if method == Some(Method::CallTool) {
        return error.into_result().write(id, Era::New, &FixedCatalogue::server());
    }
    let data = ObjectWriter::new().text("code", error.code).flag("retryable", error.retryable);
    RpcError::new(INTERNAL, format!("{}. Fix: {}", error.what, error.fix))
        .with_data(data.finish())
        .write(Some(id))
}

fn tool_error(base: &str, error: &HubError) -> ToolError {
    let unreachable = |what: String, fix: String| {
        let error = ToolError::new(UNREACHABLE, what, fix);
        ToolError { retryable: true, ..error }
    };
    match error {
        HubError::Unreachable => unreachable(
            format!("no hub answers at {base}"),
            format!("start it with {}, then call again", start_command(base)),
        ),
        HubError::Interrupted => unreachable(
            format!(
                "the connection to the hub at {base} broke before it answered, so the call may have had its effect"
            ),
            format!(
                "if the hub has stopped, start it with {}; then look with list_jobs or get_job before you call again",
                start_command(base)
            ),
        ),
        HubError::NotAHub(status) => unreachable(
            format!("what answers at {base} is no hub with MCP (HTTP {})", status.as_u16()),
            "choose the hub with --hub, RIALTO_HUB or rialto context use".to_owned(),
        ),
        HubError::NoKey { what, fix } => ToolError::new("no_key", what.clone(), fix.clone()),
    }
}

/// The command that starts a hub at this address, as far as it can be started from here.
fn start_command(base: &str) -> String {
    let host = home::without_scheme(base);
    let is_local = ["127.0.0.1:", "localhost:"].iter().any(|local| host.starts_with(local));
    if is_local && !home::is_same_hub(base, DEFAULT_HUB) {
        format!("rialto dev --listen {}", host.replace("localhost:", "127.0.0.1:"))
    } else {
        "rialto dev".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_starts_a_hub_fits_its_address() {
        assert_eq!(start_command(DEFAULT_HUB), "rialto dev");
        assert_eq!(start_command("http://localhost:9"), "rialto dev --listen 127.0.0.1:9");
        assert_eq!(start_command("https://hub.example"), "rialto dev");
    }
}
