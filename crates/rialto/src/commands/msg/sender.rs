//! Finds the sender of a message.

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::key_file::KeyFile;
use super::super::views::CallerView;

/// The protocol of sender names.
const RELAY: &str = "relay";

/// The sender's full address: the given one, or that of the key file, or the key's relay alias at
/// the hub.
pub async fn find_sender(
    access: &HubOptions,
    said: Option<&str>,
    keys: Option<&KeyFile>,
) -> Result<String, CliError> {
    // The key file of another protocol's agent holds a name of that protocol.
    let known = keys.and_then(|keys| keys.agent_id.as_deref()).filter(|id| id.contains('@'));
    if let Some(sender) = said.or(known) {
        return Ok(sender.to_owned());
    }
    if keys.is_none() {
        return Err(no_sender());
    }
    let (hub, _) = access.client_with_key()?;
    // A relay server need not be a hub, and then it has no such endpoint.
    let me = CallerView::fetch(&hub).await.ok();
    me.and_then(|mut me| me.agent.names.remove(RELAY)).ok_or_else(no_sender)
}

fn no_sender() -> CliError {
    CliError::usage(
        "no sender given",
        "use --from NAME@HOST, or --key-file with a file written by `rialto agent register --key-out`",
    )
}
