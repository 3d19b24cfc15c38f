//! Who a message is from.

use super::super::access::Access;
use super::super::key_file::KeyFile;
use super::super::trouble::Trouble;
use super::super::views::Me;

/// The protocol whose names senders have.
const RELAY: &str = "relay";

/// The sender's whole address: the one that was said, or that of the key file, or what the hub calls
/// whoever has the key in this protocol.
pub async fn find(
    access: &Access,
    said: Option<&str>,
    keys: Option<&KeyFile>,
) -> Result<String, Trouble> {
    // An agent of another protocol has a name of that one in its key file.
    let known = keys.and_then(|keys| keys.agent_id.as_deref()).filter(|id| id.contains('@'));
    if let Some(sender) = said.or(known) {
        return Ok(sender.to_owned());
    }
    if keys.is_none() {
        return Err(nobody());
    }
    let (hub, _) = access.me()?;
    // A relay server need not be a hub, and then it cannot say.
    let me = Me::ask(&hub).await.ok();
    me.and_then(|mut me| me.agent.names.remove(RELAY)).ok_or_else(nobody)
}

fn nobody() -> Trouble {
    Trouble::usage(
        "no sender is given",
        "give --from NAME@HOST, or --key-file with a file that `rialto agent register --key-out` wrote",
    )
}
