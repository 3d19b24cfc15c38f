//! Checks the agents of this machine: the hub knows them and sees them online.

use rialto_client::{CallError, Hub};

use super::super::hub_options::Access;
use super::super::context::Context;
use super::super::key_file;
use super::super::auto_register;
use super::super::error::Trouble;
use super::super::views::Me;
use super::check::Check;

pub async fn checks(access: &Access, base: &str) -> Vec<Check> {
    let found = access.context_at(Some(base)).and_then(|context| {
        let names = context.agents()?;
        Ok((context, names))
    });
    let (context, names) = match found {
        Ok(found) => found,
        Err(trouble) => return vec![Check::trouble("agents", trouble)],
    };
    let mut checks = Vec::new();
    for name in names {
        checks.push(match check(&context, &name).await {
            Ok(check) => check,
            Err(trouble) => Check::trouble("agent", trouble),
        });
    }
    checks
}

async fn check(context: &Context, name: &str) -> Result<Check, Trouble> {
    let Some(path) = context.agent_key_path(name)?.filter(|path| path.exists()) else {
        let next = format!("`rialto agent run --name {name}` registers it");
        return Ok(Check::warn("agent", format!("{name} has no key yet"), next));
    };
    let keys = key_file::load(&path)?;
    let hub = Hub::new(context.hub())?.with_key(keys.key.reveal());
    Ok(match Me::ask(&hub).await {
        Ok(me) if me.agent.online => {
            Check::ok("agent", format!("{name} is online (number {})", me.agent.id))
        }
        Ok(me) => {
            let what = format!("{name} is offline (number {})", me.agent.id);
            Check::warn("agent", what, "start it with `rialto agent run`")
        }
        Err(CallError::Refused { status: 401, .. })
            if auto_register::is_unknown(&hub, &keys).await? && !is_stopped(&hub).await =>
        {
            let what = format!("{name} was registered before the hub was reset");
            Check::warn("agent", what, "`rialto agent run` in its folder registers it here")
        }
        // Stopping an agent unregisters it, and its key works again when it restarts: the file is
        // the agent's only proof of identity.
        Err(CallError::Refused { status: 401, .. })
            if auto_register::is_unknown(&hub, &keys).await? =>
        {
            let what = format!("{name} is not registered at the hub: it was stopped");
            Check::warn("agent", what, "`rialto agent run` starts it again with its key")
        }
        Err(CallError::Refused { status: 401, .. }) => {
            let what = format!("the hub rejects the key of {name}");
            let next = format!(
                "if it got a new key elsewhere, put that on the first line of {}",
                path.display()
            );
            Check::fail("agent", what, next)
        }
        Err(error) => Check::trouble("agent", error),
    })
}

/// Whether the hub knows the key as that of an agent that is unregistered.
async fn is_stopped(hub: &Hub) -> bool {
    let asked = hub.get("/v1/work?wait=0&limit=0").await;
    matches!(asked, Err(CallError::Refused { status: 410, .. }))
}
