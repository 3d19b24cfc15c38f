//! `rialto agent register`: registers an agent in one of two protocols and saves its key.

mod registry;
mod relay;

use std::path::PathBuf;

use clap::ValueEnum;
use rialto_client::relay::{Key, WebhookSecret};
use serde_json::Value;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::key_file::{KeyFile, ReservedKeyFile};
use super::super::output;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto agent register alice --key-out alice.key\n  rialto agent register bob --culture zh-CN --language zh-CN --language en --key-out bob.key\n  rialto agent register carol --endpoint https://carol.example/receive\n  rialto agent register alice --culture fr --key-file alice.key     update\n  rialto agent register dora --protocol registry --skill sum=0.05 --skill max=0.02 --owner acme --key-out dora.key\n\nThe key is shown once. With --key-out it is not shown but written to a file that only you can\nread: the key on the first line, then the agent's id and the hub. Pass that file to other commands\nwith --key-file; they take the agent and the hub from it. To run a program as an agent, use\n`rialto agent run` instead."
)]
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
struct RegisteredAgent {
    id: String,
    key: Key,
    webhook_secret: Option<WebhookSecret>,
    /// Its record, without secrets.
    document: Value,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    access
        .reject_acting("registering is for new agents; pass the key of another with --key-file")?;
    let keys = access.load_key()?;
    // First of all: do not request a key that cannot be saved.
    let reserved = args.key_out.as_deref().map(ReservedKeyFile::new).transpose()?;
    let registered = match args.protocol {
        RegisterProtocol::Relay => relay::register(access, args, keys.as_ref()).await?,
        RegisterProtocol::Registry => registry::register(access, args, keys.as_ref()).await?,
    };
    let Some((reserved, path)) = reserved.zip(args.key_out.as_ref()) else {
        show(access, registered, keys.as_ref());
        return Ok(Exit::Ok);
    };
    let file = KeyFile {
        key: registered.key.clone(),
        agent_id: Some(registered.id.clone()),
        hub: Some(access.hub_url(keys.as_ref()).to_owned()),
        webhook_secret: registered.webhook_secret.clone(),
    };
    if let Err(error) = reserved.write_keys(&file) {
        // The key cannot be shown again later.
        let message = format!("cannot write {}: {error}", path.display());
        let next = format!("the agent is registered; save its key: {}", registered.key.reveal());
        return Err(CliError::failed(message, next));
    }
    let path = path.display().to_string();
    let _ = match access.json {
        true => {
            let mut document = registered.document;
            document["key_file"] = path.into();
            output::print_line(&document.to_string())
        }
        false => output::print_line(&format!(
            "{} registered, key in {path}",
            output::escape_line(&registered.id)
        )),
    };
    Ok(Exit::Ok)
}

/// Prints the registration. The key is left out if the caller already had it.
fn show(access: &HubOptions, registered: RegisteredAgent, keys: Option<&KeyFile>) {
    let known = keys.is_some_and(|keys| keys.key == registered.key);
    let secret = registered.webhook_secret.as_ref().map(WebhookSecret::reveal);
    let key = registered.key.reveal();
    let _ = if access.json {
        let mut document = registered.document;
        document["api_key"] = key.into();
        if let Some(secret) = secret {
            document["webhook_secret"] = secret.into();
        }
        output::print_line(&document.to_string())
    } else {
        let mut text = format!("id {}", output::escape_line(&registered.id));
        match known {
            true => text.push_str("\nkey unchanged"),
            false => text.push_str(&format!("\nkey {}", output::escape_line(key))),
        }
        if let Some(secret) = secret {
            text.push_str(&format!("\nwebhook secret {secret}"));
        }
        if !known {
            text.push_str(
                "\nshown only once: save it, and pass it to other commands as RIALTO_KEY",
            );
        }
        output::print_line(&text)
    };
}

impl Args {
    /// Rejects flags that the chosen protocol does not have.
    fn reject_flags(&self, flags: &[(&str, bool)], other: &str) -> Result<(), CliError> {
        match flags.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((flag, _)) => {
                let message = format!("{flag} is only for {other} agents");
                Err(CliError::usage(message, format!("remove it, or use --protocol {other}")))
            }
        }
    }
}
