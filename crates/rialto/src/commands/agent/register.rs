//! `rialto agent register`, `rekey` and `rm`: registers an agent in one of two protocols and saves its
//! key, replaces the key, and unregisters the agent.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use rialto_client::relay::{self, Key, WebhookSecret};
use rialto_client::{CallError, Method, registry};
use rialto_core::money::Credits;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::commands::hub_options::{KeyOrigin, generate_owner_name};
use crate::commands::key_file::ReservedKeyFile;
use crate::commands::v1::{AgentView, encode_part, unreadable};
use crate::commands::{CliError, CliResult, Exit, HubOptions, KeyFile, escape_line, output};

/// The default culture.
const CULTURE: &str = "en";
/// Decimals of a price.
const DECIMALS: usize = 2;
/// The protocol whose route unregisters any agent.
const REGISTRY: &str = "registry";

#[derive(clap::Args)]
pub struct Args {
    /// NAME@HOST, or NAME for an agent at the hub's own host; for registry, any name
    name: String,
    /// The protocol the agent speaks
    #[arg(long, value_name = "PROTOCOL", default_value = "relay")]
    protocol: RegisterProtocol,
    /// relay: the agent's culture, a BCP 47 tag [default: en]
    #[arg(long, value_name = "TAG")]
    culture: Option<String>,
    /// relay: a language it understands; can be repeated [default: the culture]
    #[arg(long, value_name = "TAG")]
    language: Vec<String>,
    /// registry: a skill and its price per call; can be repeated
    #[arg(long, value_name = "NAME=PRICE")]
    skill: Vec<String>,
    /// registry: the owner whose account pays and is paid [default: the name and random digits]
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
    /// URL for the hub's deliveries; without it, the agent reads its inbox or polls for jobs
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Write the key to this new file instead of showing it
    #[arg(long, value_name = "FILE")]
    key_out: Option<PathBuf>,
}

/// A protocol that registers agents with a plain key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RegisterProtocol {
    Relay,
    Registry,
}

/// A registered agent.
pub struct RegisteredAgent {
    pub id: String,
    pub key: Key,
    pub webhook_secret: Option<WebhookSecret>,
    /// Its record, without secrets.
    pub document: Value,
    /// What else is shown of it, as lines.
    pub details: Vec<String>,
}

pub async fn register(options: &HubOptions, args: &Args) -> CliResult {
    options
        .reject_acting("registering is for new agents; pass the key of another with --key-file")?;
    let keys = options.load_key()?;
    // First of all: do not request a key that cannot be saved.
    let reserved = args.key_out.as_deref().map(ReservedKeyFile::new).transpose()?;
    let registered = match args.protocol {
        RegisterProtocol::Relay => register_at_relay(options, args, keys.as_ref()).await?,
        RegisterProtocol::Registry => register_at_registry(options, args, keys.as_ref()).await?,
    };
    finish(options, reserved.zip(args.key_out.as_deref()), registered, keys.as_ref())
}

/// Saves the key in its file, or shows it.
pub fn finish(
    options: &HubOptions,
    reserved: Option<(ReservedKeyFile, &Path)>,
    registered: RegisteredAgent,
    keys: Option<&KeyFile>,
) -> CliResult {
    let Some((reserved, path)) = reserved else {
        return Ok(show(options, registered, keys));
    };
    let file = KeyFile {
        key: registered.key.clone(),
        agent_id: Some(registered.id.clone()),
        hub: Some(options.hub_url(keys).to_owned()),
        webhook_secret: registered.webhook_secret.clone(),
    };
    let path = path.display().to_string();
    reserved.write_keys(&file).map_err(|error| {
        // The key cannot be shown again later.
        let next = format!("the agent is registered; save its key: {}", registered.key.reveal());
        CliError::failed(format!("cannot write {path}: {error}"), next)
    })?;
    let mut document = registered.document;
    document["key_file"] = path.as_str().into();
    Ok(output::print(options.json, document, || {
        let mut lines = vec![format!("{} registered, key in {path}", escape_line(&registered.id))];
        lines.extend(registered.details);
        lines.join("\n")
    }))
}

/// Prints the registration. As text, the key is left out if the caller already had it.
fn show(options: &HubOptions, registered: RegisteredAgent, keys: Option<&KeyFile>) -> Exit {
    let is_known = keys.is_some_and(|keys| keys.key == registered.key);
    let secret = registered.webhook_secret.as_ref().map(WebhookSecret::reveal);
    let key = registered.key.reveal();
    let mut document = registered.document;
    document["api_key"] = key.into();
    if let Some(secret) = &secret {
        document["webhook_secret"] = secret.as_str().into();
    }
    output::print(options.json, document, || {
        let mut lines = vec![format!("id {}", escape_line(&registered.id))];
        lines.push(if is_known {
            "key unchanged".to_owned()
        } else {
            format!("key {}", escape_line(key))
        });
        lines.extend(secret.map(|secret| format!("webhook secret {secret}")));
        lines.extend(registered.details.iter().cloned());
        if !is_known {
            let next = "shown only once: save it, and pass it to other commands as RIALTO_KEY";
            lines.push(next.to_owned());
        }
        lines.join("\n")
    })
}

/// Rejects flags that the chosen protocol does not have.
fn reject_flags(flags: &[(&str, bool)], other: &str) -> CliResult<()> {
    let given = flags.iter().find(|(_, is_given)| *is_given);
    given.map_or(Ok(()), |(flag, _)| {
        let message = format!("{flag} is only for {other} agents");
        Err(CliError::usage(message, format!("remove it, or use --protocol {other}")))
    })
}

/// Registers an agent of the registry with its skills and prices.
async fn register_at_registry(
    options: &HubOptions,
    args: &Args,
    keys: Option<&KeyFile>,
) -> CliResult<RegisteredAgent> {
    let flags = [("--culture", args.culture.is_some()), ("--language", !args.language.is_empty())];
    reject_flags(&flags, "relay")?;
    let owner = args.owner.clone().map_or_else(|| generate_owner_name(&args.name), Ok)?;
    let mut registration = registry::Registration::new(&args.name, owner);
    for text in &args.skill {
        registration = registration.skill(parse_skill(text)?);
    }
    if let Some(url) = &args.endpoint {
        registration = registration.endpoint(url);
    }
    let mut server = registry::Server::new(options.hub_url(keys))?;
    // Names are not unique here: only the key file says which agent to update.
    if let Some(known) = keys.filter(|_| options.key_file.is_some()) {
        server = server.with_key(known.key.clone());
        if let Some(id) = &known.agent_id {
            let id: Uuid = id.parse().map_err(|_| {
                let message = format!("the key file is of {id}, which is not a registry agent");
                CliError::usage(message, "pass the key file of the agent to update")
            })?;
            registration = registration.id(id);
        }
    }
    let agent = server.register(&registration).await?;
    let id = agent.agent_id.to_string();
    Ok(RegisteredAgent {
        document: json!({"agent_id": id}),
        id,
        key: agent.key.ok_or_else(|| unreadable("no api_key"))?,
        webhook_secret: agent.webhook_secret,
        details: Vec::new(),
    })
}

fn parse_skill(text: &str) -> CliResult<registry::SkillListing> {
    let wrong = |why: String| {
        CliError::usage(format!("--skill {text} {why}"), "write it like --skill sum=0.05")
    };
    let (name, price) = text.rsplit_once('=').ok_or_else(|| wrong("has no price".to_owned()))?;
    let price = Credits::parse(price, DECIMALS);
    let price = price.map_err(|why| wrong(format!("has a price that {why}")))?;
    Ok(registry::SkillListing::new(name, price))
}

/// Registers an agent of the relay, on any relay server.
async fn register_at_relay(
    options: &HubOptions,
    args: &Args,
    keys: Option<&KeyFile>,
) -> CliResult<RegisteredAgent> {
    let flags = [("--skill", !args.skill.is_empty()), ("--owner", args.owner.is_some())];
    reject_flags(&flags, "registry")?;
    let culture = args.culture.as_deref().unwrap_or(CULTURE);
    let own = [culture.to_owned()];
    let languages = if args.language.is_empty() { &own[..] } else { &args.language };
    let mut registration = relay::Registration::new(args.name.as_str(), culture, languages);
    registration.endpoint.clone_from(&args.endpoint);
    // Discovery needs no key, so none is sent. A new agent needs no key either, and a caller with
    // another agent's key must not be refused for it. So the key is sent only if the name is taken.
    let server = relay::Server::discover(options.hub_url(keys)).await?;
    let answer = match (server.register(&registration).await, keys) {
        (Err(CallError::Refused { status: 409, .. }), Some(keys)) => {
            server.with_key(keys.key.clone()).register(&registration).await?
        }
        (answer, _) => answer?,
    };
    let record = answer.record.as_ref().map(|record| record.raw());
    Ok(RegisteredAgent {
        document: json!({"agent_id": answer.agent_id, "registration": record}),
        id: answer.agent_id,
        key: answer.api_key,
        webhook_secret: answer.webhook_secret,
        details: Vec::new(),
    })
}

pub async fn unregister(options: &HubOptions, id: Option<&str>) -> CliResult {
    let (api, _) = options.client_with_key()?;
    let origin = options.key_origin()?;
    let agent = api.me().await?.agent;
    // `--as NAME` already names the agent.
    let acting = options.acting.as_deref();
    let is_named = acting.is_some() && (id.is_none() || id == acting);
    if !is_named {
        check_agent_named(&agent, id)?;
    }
    let name = agent.names.get(REGISTRY).map_or("", String::as_str);
    let path = format!("/registry/agents/{}", encode_part(name));
    api.0.call_text(Method::DELETE, &path, None).await?;
    // A key that no longer works would block the next one.
    let is_key_removed = match &origin {
        KeyOrigin::Context(context) => context.remove_key().map(|()| true)?,
        KeyOrigin::File(_) | KeyOrigin::Variable => false,
    };
    let document =
        json!({"removed": agent.id, "names": agent.names, "key_forgotten": is_key_removed});
    Ok(output::print(options.json, document, || {
        format!("{} (number {}) removed", escape_line(&agent.name), agent.id)
    }))
}

/// Checks that the named agent is the one of the key.
fn check_agent_named(agent: &AgentView, named: Option<&str>) -> CliResult<()> {
    let own = agent.names.get(&agent.protocol).map_or("", String::as_str);
    let next = format!("`rialto agent rm {own}` removes it");
    let Some(named) = named else {
        let message = format!("your key belongs to {}; name the agent to confirm", agent.name);
        return Err(CliError::usage(message, next));
    };
    let is_alias = agent.names.iter().any(|(protocol, name)| {
        named == name || named.strip_prefix(protocol.as_str()) == Some(&format!(":{name}"))
    });
    if is_alias || named == agent.id.to_string() {
        return Ok(());
    }
    let message = if named == agent.name {
        format!("more than one agent may be called {named}")
    } else {
        format!("your key belongs to {}, not to {named}", agent.name)
    };
    let next = format!("{next}; for others, pass their key with --key-file or --as NAME");
    Err(CliError::conflict(message, next))
}

pub async fn rekey(options: &HubOptions) -> CliResult {
    let (api, keys) = options.client_with_key()?;
    let origin = options.key_origin()?;
    // Overwrites the file with the same key: do not request a key that cannot be saved.
    origin.save_key(&keys)?;
    let rotated = api.rotate_key().await.map_err(rotate_error)?;
    let (key, until) = (rotated.key()?, &rotated.others_until);
    let keys = KeyFile { key: Key::new(key), ..keys };
    let saved_in = origin.save_key(&keys).map_err(|cli_error| {
        // The key cannot be shown again later.
        CliError { next: Some(format!("save the new key yourself: {key}")), ..cli_error }
    })?;
    let Some(place) = saved_in else {
        let document = json!({"key": key, "others_until": until});
        return Ok(output::print(options.json, document, || {
            format!("key {}\nshown only once: save it", escape_line(key))
        }));
    };
    let document = json!({"kept_in": place, "others_until": until});
    Ok(output::print(options.json, document, || {
        let until = until.as_deref().unwrap_or("now");
        format!("new key saved in {place}; the old key is valid until {until}")
    }))
}

/// The lost answer may contain a new key. The old key stays valid long enough to ask again.
fn rotate_error(error: CallError) -> CliError {
    let may_retry = error.min_retry_delay().is_some();
    let cli_error = CliError::from(error);
    if !may_retry {
        return cli_error;
    }
    let next = "the answer was lost; run the command again within ten minutes";
    CliError { next: Some(next.to_owned()), ..cli_error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_keeps_its_digits_and_a_skill_may_have_any_name() {
        let listing =
            |name, micros| registry::SkillListing::new(name, Credits::from_micros(micros));
        assert_eq!(parse_skill("sum=0.1").expect("fine"), listing("sum", 100_000));
        assert_eq!(parse_skill("a=b=0").expect("fine"), listing("a=b", 0));
        for wrong in ["sum", "sum=", "sum=0.005", "sum=-1", "sum=cheap"] {
            let cli_error = parse_skill(wrong).expect_err(wrong);
            assert!(cli_error.next.is_some_and(|next| next.contains("sum=0.05")));
        }
    }

    #[test]
    fn an_agent_leaves_only_when_it_is_named() {
        let text = r#"{"id":7,"name":"Alice","owner":"o","protocol":"relay","score":50.0,"jobs_settled":0,"online":true,
            "registered_at":"t","skills":[],"names":{"relay":"alice@chorus","agora":"did:key:z"}}"#;
        let agent: AgentView = serde_json::from_str(text).expect("an agent");
        for fine in ["7", "alice@chorus", "relay:alice@chorus", "did:key:z", "agora:did:key:z"] {
            assert!(check_agent_named(&agent, Some(fine)).is_ok(), "{fine}");
        }
        for not in ["8", "alice", "Alice", "bob@chorus", "agora:alice@chorus", ""] {
            assert!(check_agent_named(&agent, Some(not)).is_err(), "{not}");
        }
        let shared = check_agent_named(&agent, Some("Alice")).expect_err("no name of its own");
        assert_eq!(shared.message, "more than one agent may be called Alice");
        let unnamed = check_agent_named(&agent, None).expect_err("it must be named");
        assert!(unnamed.next.is_some_and(|next| next.contains("rialto agent rm alice@chorus")));
    }
}
