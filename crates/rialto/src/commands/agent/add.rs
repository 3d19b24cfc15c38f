//! `rialto agent add` and `card`: hires an agent that has a server of its own, and shows the card
//! that an agent has at the hub.

use std::path::PathBuf;

use rialto_client::relay::Key;
use rialto_client::{CallError, Hub, Method};
use rialto_core::money::Credits;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::register::{RegisteredAgent, finish};
use crate::commands::agent_names::resolve_agent;
use crate::commands::key_file::ReservedKeyFile;
use crate::commands::v1::{AgentView, encode_part, parse_json};
use crate::commands::{CliError, CliResult, HubOptions, escape_line, output};

/// The protocol of the agents that are added, and of their cards.
const PROTOCOL: &str = "a2a";
/// Decimals of a price.
const DECIMALS: usize = 6;

#[derive(clap::Args)]
pub struct Args {
    /// URL of the agent's A2A card
    #[arg(long, value_name = "URL")]
    a2a: String,
    /// Its name at the hub [default: the name on the card]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Price of a skill per job; can be repeated
    #[arg(long, value_name = "SKILL=PRICE")]
    price: Vec<String>,
    /// File with the bearer token that the agent's server wants
    #[arg(long, value_name = "FILE")]
    bearer_file: Option<PathBuf>,
    /// Write the key to this new file instead of showing it
    #[arg(long, value_name = "FILE")]
    key_out: Option<PathBuf>,
}

/// What the hub answers.
#[derive(Deserialize)]
struct Added {
    name: String,
    url: String,
    api_key: String,
    skills: Vec<AddedSkill>,
    interface: Interface,
    signature: String,
    proven: bool,
    #[serde(default)]
    proof: Value,
}

#[derive(Deserialize)]
struct AddedSkill {
    id: String,
    price: String,
    asks: String,
}

#[derive(Deserialize)]
struct Interface {
    url: String,
    binding: String,
    version: String,
}

pub async fn add(options: &HubOptions, args: &Args) -> CliResult {
    options.reject_acting("adding is for new agents; pass the key of another with --key-file")?;
    let keys = options.load_key()?;
    let body = body_of(args)?;
    let reserved = args.key_out.as_deref().map(ReservedKeyFile::new).transpose()?;
    let hub = Hub::new(options.hub_url(keys.as_ref()))?;
    // Only a key file says that its agent is the one to change.
    let known = keys.as_ref().filter(|_| options.key_file.is_some());
    let hub = known.map_or(hub.clone(), |keys| hub.with_key(keys.key.reveal()));
    let (_, text) = hub.call_text(Method::POST, "/a2a/agents", Some(body.to_string())).await?;
    let added: Added = parse_json(&text)?;
    let mut document: Value = parse_json(&text)?;
    document.as_object_mut().and_then(|members| members.remove("api_key"));
    let registered = RegisteredAgent {
        details: describe(&added),
        id: added.name,
        key: Key::new(added.api_key),
        webhook_secret: None,
        document,
    };
    let reserved = reserved.zip(args.key_out.as_deref());
    finish(options, reserved, registered, keys.as_ref())
}

/// What is sent to the hub.
fn body_of(args: &Args) -> CliResult<Value> {
    let mut body = json!({"card_url": args.a2a});
    if let Some(name) = &args.name {
        body["name"] = name.as_str().into();
    }
    if !args.price.is_empty() {
        let prices: CliResult<Map<String, Value>> =
            args.price.iter().map(|text| parse_price(text)).collect();
        body["prices"] = prices?.into();
    }
    if let Some(path) = &args.bearer_file {
        let token = std::fs::read_to_string(path).map_err(|error| {
            let message = format!("cannot read {}: {error}", path.display());
            CliError::usage(message, "name a file that contains the token alone")
        })?;
        body["auth"] = json!({"scheme": "bearer", "token": token.trim()});
    }
    Ok(body)
}

/// A skill, and its price as the hub reads it.
fn parse_price(text: &str) -> CliResult<(String, Value)> {
    let wrong = |why: String| {
        CliError::usage(format!("--price {text} {why}"), "write it like --price route=0.25")
    };
    let (skill, price) = text.rsplit_once('=').ok_or_else(|| wrong("has no price".to_owned()))?;
    Credits::parse(price, DECIMALS).map_err(|why| wrong(format!("has a price that {why}")))?;
    Ok((skill.to_owned(), price.into()))
}

/// What of an agent matters to its owner.
fn describe(added: &Added) -> Vec<String> {
    let Interface { url, binding, version } = &added.interface;
    let mut lines = vec![
        format!("at {}", escape_line(&added.url)),
        format!("server {} {binding} {version} {}", escape_line(url), added.signature),
    ];
    for AddedSkill { id, price, asks } in &added.skills {
        let asks = if asks == price { String::new() } else { format!(" (asks {asks})") };
        lines.push(format!("skill {}  {price}{asks}", escape_line(id)));
    }
    if !added.proven && added.skills.iter().any(|skill| skill.asks != skill.price) {
        lines.push(format!(
            "prices count once the card has this extension and this command was run again with \
             --key-file: {}",
            added.proof
        ));
    }
    lines
}

#[derive(clap::Args)]
pub struct CardArgs {
    /// The agent's number at the hub, or any of its names; without it, the hub's own card
    name: Option<String>,
}

/// Shows a card as the hub serves it: a JSON document, for people as for programs.
pub async fn card(options: &HubOptions, args: &CardArgs) -> CliResult {
    let (api, _) = options.client()?;
    let path = match &args.name {
        None => "/.well-known/agent-card.json".to_owned(),
        Some(name) => {
            let id = resolve_agent(options, &api, name).await?;
            let found = api.agent(&id).await.map_err(|error| match error {
                CallError::Refused { status: 404, .. } => CliError::not_found(
                    format!("agent {name} not found"),
                    "`rialto agent search` lists agents",
                ),
                other => other.into(),
            });
            let agent: AgentView = found?.parse()?;
            let own = agent.names.get(PROTOCOL).map_or("", String::as_str);
            format!("/a2a/agents/{}/.well-known/agent-card.json", encode_part(own))
        }
    };
    let (_, text) = api.0.call_text(Method::GET, &path, None).await?;
    if options.json {
        return Ok(output::print_data(&text));
    }
    let card: Value = parse_json(&text)?;
    Ok(output::print_data(format!("{card:#}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_a_skill_and_an_amount() {
        assert_eq!(
            parse_price("a=b=0.000001").expect("fine"),
            ("a=b".to_owned(), json!("0.000001"))
        );
        for wrong in ["route", "route=", "route=0.0000001", "route=cheap"] {
            let cli_error = parse_price(wrong).expect_err(wrong);
            assert!(cli_error.next.is_some_and(|next| next.contains("route=0.25")));
        }
    }
}
