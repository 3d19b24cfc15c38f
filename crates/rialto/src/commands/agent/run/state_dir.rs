//! The state directory of an agent run from the command line: by its key, or by its name in its
//! folder.

use std::path::PathBuf;

use rialto_client::agent::{AgentError, Seat};

use super::super::super::hub_options::{Access, Origin};
use super::super::super::context::agents::{Starting, place_apart};
use super::super::super::context::{Context, address, home};
use super::super::super::key_file;
use super::super::super::error::Trouble;
use super::plan::Plan;

/// Opens the agent's state directory: the one for its key if a key is given, or else the one for
/// its name in its folder.
pub fn take(access: &Access, plan: &Plan) -> Result<Seat, Trouble> {
    let lent = match access.origin()? {
        Origin::Variable => access.keys()?,
        Origin::File(_) | Origin::Context(_) => None,
    };
    let context = access.context()?;
    let sit = |state: PathBuf| {
        Seat::take(state).map_err(|error| match error {
            AgentError::Taken { .. } => taken(&plan.name, &context),
            error => trouble(error),
        })
    };
    let of_key = |apart: &str| context.agent_dir(&place_apart(&plan.name, apart));
    match (&access.key_file, lent) {
        (Some(path), _) => {
            let apart = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            Ok(sit(of_key(&apart.display().to_string())?)?.key_from(path))
        }
        (None, Some(lent)) => Ok(sit(of_key(lent.key.reveal())?)?.lent(lent.key)),
        (None, None) => {
            let folder = std::fs::canonicalize(&plan.folder)
                .map_err(|error| home::unreadable(&plan.folder, &error))?;
            let beside = plan.beside.as_deref();
            sit(context.claim(&Starting { name: &plan.name, folder: &folder, beside })?)
        }
    }
}

/// The hub to work for. A key is used only at its own hub.
pub fn hub(access: &Access) -> Result<String, Trouble> {
    let kept = match &access.key_file {
        Some(path) if path.exists() => Some(key_file::load(path)?),
        _ => None,
    };
    let chosen = access.hub_url(kept.as_ref()).to_owned();
    match kept.and_then(|keys| keys.hub) {
        Some(own) if !address::same(&own, &chosen) => {
            let message = format!("the key file belongs to {own}, not to {chosen}");
            Err(Trouble::conflict(message, "use another file with --key-file, or the key's hub"))
        }
        _ => Ok(chosen),
    }
}

/// Turns an agent error into an error of the command line.
pub fn trouble(error: AgentError) -> Trouble {
    match error {
        AgentError::Call(error) => error.into(),
        AgentError::State { path, error } => home::unwritable(&path, &error),
        AgentError::Key { path, error } => key_file::unreadable(&path, &error),
        error @ (AgentError::Taken { .. } | AgentError::Nowhere) => {
            Trouble::conflict(error.to_string(), "see `rialto agent run --help`")
        }
        error @ AgentError::Elsewhere => {
            Trouble::conflict(error.to_string(), "give this one another name with --name")
        }
        error @ AgentError::Removed => {
            Trouble::conflict(error.to_string(), "`rialto agent run` registers it again")
        }
    }
}

fn taken(name: &str, context: &Context) -> Trouble {
    let message = format!("agent {name} of context {} is already running", context.name());
    Trouble::conflict(message, "give this one another name with --name")
}
