//! The state directory of an agent run from the command line: by its key, or by its name in its
//! folder.

use std::path::PathBuf;

use rialto_client::agent::{AgentError, StateDir};

use super::super::super::context::agents::{AgentStart, dir_name_with_digest};
use super::super::super::context::{Context, address, home};
use super::super::super::error::CliError;
use super::super::super::hub_options::{HubOptions, KeyOrigin};
use super::super::super::key_file;
use super::plan::AgentPlan;

/// Opens the agent's state directory: the one for its key if a key is given, or else the one for
/// its name in its folder.
pub fn open_state_dir(access: &HubOptions, plan: &AgentPlan) -> Result<StateDir, CliError> {
    let lent = match access.key_origin()? {
        KeyOrigin::Variable => access.load_key()?,
        KeyOrigin::File(_) | KeyOrigin::Context(_) => None,
    };
    let context = access.context()?;
    let sit = |state: PathBuf| {
        StateDir::open(state).map_err(|error| match error {
            AgentError::AlreadyRunning { .. } => already_running(&plan.name, &context),
            error => agent_error(error),
        })
    };
    let of_key = |apart: &str| context.ensure_agent_dir(&dir_name_with_digest(&plan.name, apart));
    match (&access.key_file, lent) {
        (Some(path), _) => {
            let apart = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            Ok(sit(of_key(&apart.display().to_string())?)?.with_key_file(path))
        }
        (None, Some(lent)) => Ok(sit(of_key(lent.key.reveal())?)?.with_key(lent.key)),
        (None, None) => {
            let folder = std::fs::canonicalize(&plan.folder)
                .map_err(|error| home::read_error(&plan.folder, &error))?;
            let beside = plan.state_name.as_deref();
            sit(context.claim_name(&AgentStart {
                name: &plan.name,
                folder: &folder,
                state_name: beside,
            })?)
        }
    }
}

/// The hub to work for. A key is used only at its own hub.
pub fn hub_url(access: &HubOptions) -> Result<String, CliError> {
    let kept = match &access.key_file {
        Some(path) if path.exists() => Some(key_file::load(path)?),
        _ => None,
    };
    let chosen = access.hub_url(kept.as_ref()).to_owned();
    match kept.and_then(|keys| keys.hub) {
        Some(own) if !address::is_same_hub(&own, &chosen) => {
            let message = format!("the key file belongs to {own}, not to {chosen}");
            Err(CliError::conflict(message, "use another file with --key-file, or the key's hub"))
        }
        _ => Ok(chosen),
    }
}

/// Turns an agent error into an error of the command line.
pub fn agent_error(error: AgentError) -> CliError {
    match error {
        AgentError::Call(error) => error.into(),
        AgentError::StateFile { path, error } => home::write_error(&path, &error),
        AgentError::KeyFile { path, error } => key_file::read_error(&path, &error),
        error @ (AgentError::AlreadyRunning { .. } | AgentError::NoHubOrListener) => {
            CliError::conflict(error.to_string(), "see `rialto agent run --help`")
        }
        error @ AgentError::OtherInstance => {
            CliError::conflict(error.to_string(), "give this one another name with --name")
        }
        error @ AgentError::Removed => {
            CliError::conflict(error.to_string(), "`rialto agent run` registers it again")
        }
    }
}

fn already_running(name: &str, context: &Context) -> CliError {
    let message = format!("agent {name} of context {} is already running", context.name());
    CliError::conflict(message, "give this one another name with --name")
}
