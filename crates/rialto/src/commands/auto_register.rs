//! Registers a new requester automatically, under the user's login name.

use rialto_client::{CallError, Hub};
use serde_json::{Value, json};

use super::context::Context;
use super::error::CliError;
use super::key_file::KeyFile;
use super::output::{self, escape_line};
use super::uri;

/// The maximum length of the login name part.
const NAME_MAX: usize = 32;

/// Registers the caller, saves the key, and reports it on standard error.
pub async fn register_requester(hub: &Hub, context: &Context) -> Result<KeyFile, CliError> {
    // First of all: do not request a key that cannot be saved.
    context.ensure_dir()?;
    let name = login_name();
    let owner = generate_owner_name(&name)?;
    let body = json!({"agent_name": name, "owner_id": owner, "skills": []});
    let answer = hub.post("/registry/register", &body).await?;
    let text = |member: &str| {
        let found = answer.get(member).and_then(Value::as_str);
        found.ok_or_else(|| CallError::Unreadable(format!("no {member}")))
    };
    let fresh = KeyFile {
        agent_id: Some(text("agent_id")?.to_owned()),
        ..KeyFile::from_key(text("api_key")?)
    };
    // Two first commands at once belong to one user: the key saved first is used.
    let kept = context.save_key_if_none(&fresh)?;
    let id = escape_line(kept.agent_id.as_deref().unwrap_or_default());
    let (base, context) = (hub.base(), context.name());
    output::print_stderr(&format!(
        "registered as {name} ({id}) at {base}; key saved in context {context}"
    ));
    Ok(kept)
}

/// Whether the hub does not know the agent of a saved key: it was reset, as `rialto dev` is at each
/// start. A revoked key belongs to an agent that the hub knows.
pub async fn is_agent_unknown(hub: &Hub, keys: &KeyFile) -> Result<bool, CliError> {
    let (Err(CallError::Refused { status: 401, .. }), Some(id)) =
        (hub.get("/v1/me").await, keys.agent_id.as_deref())
    else {
        return Ok(false);
    };
    match Hub::new(hub.base())?.get(&format!("/registry/agents/{}", uri::encode_part(id))).await {
        Ok(_) => Ok(false),
        Err(CallError::Refused { status: 404, .. }) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// The user's login name, as far as it is a valid agent name.
fn login_name() -> String {
    let set = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| std::env::var(name).ok());
    clean_name(&set.unwrap_or_default())
}

fn clean_name(name: &str) -> String {
    let fine = |c: &char| c.is_ascii_alphanumeric() || "-_".contains(*c);
    let plain: String = name.chars().filter(fine).take(NAME_MAX).collect();
    if plain.is_empty() { "me".to_owned() } else { plain }
}

/// An account name for a new owner. Random digits keep equal names apart.
pub fn generate_owner_name(name: &str) -> Result<String, CliError> {
    let number = getrandom::u32().map_err(|error| {
        CliError::failed(
            format!("the system's random number generator failed: {error}"),
            "set the account with --owner",
        )
    })?;
    Ok(format!("{name}-{number:08x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_becomes_a_plain_name() {
        assert_eq!(clean_name("alice"), "alice");
        assert_eq!(clean_name("HOST\\al ice\n"), "HOSTalice");
        assert_eq!(clean_name("яна"), "me");
        assert_eq!(clean_name(&"x".repeat(99)).len(), NAME_MAX);
    }
}
