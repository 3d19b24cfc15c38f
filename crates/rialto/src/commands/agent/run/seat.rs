//! Which seat an agent of the command line takes: that of its name, or of its key.

use std::path::Path;

use rialto_client::agent::{AgentError, Seat, plain};
use rialto_core::alias::Digest;

use super::super::super::access::{Access, Origin};
use super::super::super::context::{Context, address, home};
use super::super::super::key_file::{self, KeyFile};
use super::super::super::trouble::Trouble;
use super::flags::Args;
use super::plan::Plan;

/// How many agents of one name are tried before somebody has to choose a name.
const SEATS_MAX: usize = 64;

/// Takes the seat of a name, or the next one that is free if the name was not asked for. Gives the
/// name that goes with it.
pub fn take(access: &Access, args: &Args, plan: &Plan) -> Result<(String, Seat), Trouble> {
    let lent = match access.origin()? {
        Origin::Variable => access.keys()?,
        Origin::File(_) | Origin::Context(_) => None,
    };
    let context = access.context()?;
    let base = place(&plan.name, access.key_file.as_deref(), lent.as_ref());
    let only_one = args.name.is_some() || access.key_file.is_some() || lent.is_some();
    for number in 1..=if only_one { 1 } else { SEATS_MAX } {
        let place = if number == 1 { base.clone() } else { format!("{base}-{number}") };
        let seat = match Seat::take(context.agent_dir(&place)?) {
            Err(AgentError::Taken { .. }) => continue,
            seat => seat.map_err(trouble)?,
        };
        let seat = match (&access.key_file, lent) {
            (Some(path), _) => seat.key_from(path),
            (None, Some(lent)) => seat.lent(lent.key),
            (None, None) => seat,
        };
        return Ok((if number == 1 { plan.name.clone() } else { place }, seat));
    }
    Err(taken(&plan.name, &context))
}

/// The hub to work for. A key goes to the hub it is for, and to no other.
pub fn hub(access: &Access) -> Result<String, Trouble> {
    let kept = match &access.key_file {
        Some(path) if path.exists() => Some(key_file::load(path)?),
        _ => None,
    };
    let chosen = access.hub_url(kept.as_ref()).to_owned();
    match kept.and_then(|keys| keys.hub) {
        Some(own) if !address::same(&own, &chosen) => {
            let message = format!("the key file is for {own}, not for {chosen}");
            Err(Trouble::conflict(message, "name another file with --key-file, or the key's hub"))
        }
        _ => Ok(chosen),
    }
}

/// Why an agent does not run, in the words of the command line.
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

/// A directory of its own for each agent: those with keys of their own are told apart by these.
fn place(name: &str, key_file: Option<&Path>, lent: Option<&KeyFile>) -> String {
    let apart = match (key_file, lent) {
        (Some(path), _) => {
            std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
        }
        (None, Some(lent)) => lent.key.reveal().to_owned(),
        // Two names that look alike as directories are two agents all the same.
        (None, None) if plain(name) != name => name.to_owned(),
        (None, None) => return plain(name),
    };
    let digest = Digest::of(&[b"seat", apart.as_bytes()]);
    let number = digest.0.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("{}-{number}", plain(name))
}

fn taken(name: &str, context: &Context) -> Trouble {
    let message = format!("agent {name} of context {} runs already", context.name());
    Trouble::conflict(message, "give this one another name with --name")
}
