//! `rialto agent register`: a new agent in one of two protocols, and what becomes of its key.

mod registry;
mod relay;

use std::path::PathBuf;

use clap::ValueEnum;
use rialto_client::relay::{Key, WebhookSecret};
use serde_json::Value;

use super::super::access::Access;
use super::super::key_file::{KeyFile, Reserved};
use super::super::say;
use super::super::trouble::Trouble;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto agent register alice --key-out alice.key\n  rialto agent register bob --culture zh-CN --language zh-CN --language en --key-out bob.key\n  rialto agent register carol --endpoint https://carol.example/receive\n  rialto agent register alice --culture fr --key-file alice.key     update\n  rialto agent register dora --protocol registry --skill sum=0.05 --skill max=0.02 --owner acme --key-out dora.key\n\nThe key is shown once. With --key-out it is not shown at all but written to a file that only you\ncan read: the key on the first line, then the agent's id and the hub. Give that file to other\ncommands with --key-file, and they know who is calling, and where. To have a program work as an\nagent, use `rialto agent run` instead."
)]
pub struct Args {
    /// NAME@HOST, or NAME for one at the hub's own host; in registry any name
    name: String,
    /// The protocol the agent speaks
    #[arg(long, value_name = "PROTOCOL", default_value = "relay")]
    protocol: Spoken,
    /// relay: the culture the agent speaks for, a BCP 47 tag [default: en]
    #[arg(long, value_name = "TAG")]
    culture: Option<String>,
    /// relay: a language it understands; may be given several times [default: the culture]
    #[arg(long, value_name = "TAG")]
    language: Vec<String>,
    /// registry: something it does and what one call costs; may be given several times
    #[arg(long, value_name = "NAME=PRICE")]
    skill: Vec<String>,
    /// registry: the owner whose account pays and is paid [default: the name and random digits]
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
    /// Where the hub calls it; without it, it listens to its inbox or fetches its work
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Write the key to this new file instead of showing it
    #[arg(long, value_name = "FILE")]
    key_out: Option<PathBuf>,
}

/// A protocol in which an agent is registered by a key alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Spoken {
    Relay,
    Registry,
}

/// An agent that is registered.
struct Registered {
    id: String,
    key: Key,
    webhook_secret: Option<WebhookSecret>,
    /// Everything but secrets.
    document: Value,
}

pub async fn run(access: &Access, args: &Args) -> Result<Exit, Trouble> {
    access
        .without_acting("registering is for new agents; give the key of another with --key-file")?;
    let keys = access.keys()?;
    // Before anything else: a key that cannot be kept must not be asked for.
    let reserved = args.key_out.as_deref().map(Reserved::new).transpose()?;
    let registered = match args.protocol {
        Spoken::Relay => relay::register(access, args, keys.as_ref()).await?,
        Spoken::Registry => registry::register(access, args, keys.as_ref()).await?,
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
    if let Err(error) = reserved.fill(&file) {
        // Nobody will ever be able to show it again.
        let message = format!("cannot write {}: {error}", path.display());
        let next = format!("the agent is registered; save its key: {}", registered.key.reveal());
        return Err(Trouble::failed(message, next));
    }
    let path = path.display().to_string();
    let _ = match access.json {
        true => {
            let mut document = registered.document;
            document["key_file"] = path.into();
            say::line(&document.to_string())
        }
        false => say::line(&format!("{} registered, key in {path}", say::one_line(&registered.id))),
    };
    Ok(Exit::Ok)
}

/// Shows what was given, with the key unless it is the one that was shown to us.
fn show(access: &Access, registered: Registered, keys: Option<&KeyFile>) {
    let known = keys.is_some_and(|keys| keys.key == registered.key);
    let secret = registered.webhook_secret.as_ref().map(WebhookSecret::reveal);
    let key = registered.key.reveal();
    let _ = if access.json {
        let mut document = registered.document;
        document["api_key"] = key.into();
        if let Some(secret) = secret {
            document["webhook_secret"] = secret.into();
        }
        say::line(&document.to_string())
    } else {
        let mut text = format!("id {}", say::one_line(&registered.id));
        match known {
            true => text.push_str("\nkey unchanged"),
            false => text.push_str(&format!("\nkey {}", say::one_line(key))),
        }
        if let Some(secret) = secret {
            text.push_str(&format!("\nwebhook secret {secret}"));
        }
        if !known {
            text.push_str(
                "\nshown only once: save it, and give it to other commands as RIALTO_KEY",
            );
        }
        say::line(&text)
    };
}

impl Args {
    /// Refuses flags that mean nothing in the protocol that was chosen.
    fn without(&self, flags: &[(&str, bool)], other: &str) -> Result<(), Trouble> {
        match flags.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((flag, _)) => {
                let message = format!("{flag} is only for {other} agents");
                Err(Trouble::usage(message, format!("leave it out, or give --protocol {other}")))
            }
        }
    }
}
