//! Checks the agents of this machine: the hub knows them and sees them online.

use rialto_client::{CallError, Hub};

use super::super::auto_register;
use super::super::context::Context;
use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::key_file;
use super::super::views::CallerView;
use super::check::HealthCheck;

pub async fn checks(access: &HubOptions, base: &str) -> Vec<HealthCheck> {
    let found = access.context_for(Some(base)).and_then(|context| {
        let names = context.agents()?;
        Ok((context, names))
    });
    let (context, names) = match found {
        Ok(found) => found,
        Err(cli_error) => return vec![HealthCheck::from_error("agents", cli_error)],
    };
    let mut checks = Vec::new();
    for name in names {
        checks.push(match check(&context, &name).await {
            Ok(check) => check,
            Err(cli_error) => HealthCheck::from_error("agent", cli_error),
        });
    }
    checks
}

async fn check(context: &Context, name: &str) -> Result<HealthCheck, CliError> {
    let Some(path) = context.agent_key_path(name)?.filter(|path| path.exists()) else {
        let next = format!("`rialto agent run --name {name}` registers it");
        return Ok(HealthCheck::warn("agent", format!("{name} has no key yet"), next));
    };
    let keys = key_file::load(&path)?;
    let hub = Hub::new(context.hub())?.with_key(keys.key.reveal());
    Ok(match CallerView::fetch(&hub).await {
        Ok(me) if me.agent.online => {
            HealthCheck::ok("agent", format!("{name} is online (number {})", me.agent.id))
        }
        Ok(me) => {
            let what = format!("{name} is offline (number {})", me.agent.id);
            HealthCheck::warn("agent", what, "start it with `rialto agent run`")
        }
        Err(CallError::Refused { status: 401, .. })
            if auto_register::is_agent_unknown(&hub, &keys).await? && !is_stopped(&hub).await =>
        {
            let what = format!("{name} was registered before the hub was reset");
            HealthCheck::warn("agent", what, "`rialto agent run` in its folder registers it here")
        }
        // Stopping an agent unregisters it, and its key works again when it restarts: the file is
        // the agent's only proof of identity.
        Err(CallError::Refused { status: 401, .. })
            if auto_register::is_agent_unknown(&hub, &keys).await? =>
        {
            let what = format!("{name} is not registered at the hub: it was stopped");
            HealthCheck::warn("agent", what, "`rialto agent run` starts it again with its key")
        }
        Err(CallError::Refused { status: 401, .. }) => {
            let what = format!("the hub rejects the key of {name}");
            let next = format!(
                "if it got a new key elsewhere, put that on the first line of {}",
                path.display()
            );
            HealthCheck::fail("agent", what, next)
        }
        Err(error) => HealthCheck::from_error("agent", error),
    })
}

/// Whether the hub knows the key as that of an agent that is unregistered.
async fn is_stopped(hub: &Hub) -> bool {
    let asked = hub.get("/v1/work?wait=0&limit=0").await;
    matches!(asked, Err(CallError::Refused { status: 410, .. }))
}
