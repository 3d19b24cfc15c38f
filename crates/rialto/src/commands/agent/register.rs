//! `rialto agent register`.

use std::path::PathBuf;

use rialto_client::CallError;
use rialto_client::relay::{Announcement, Registered, Server, WebhookSecret};
use serde_json::{Value, json};

use super::super::access::Access;
use super::super::key_file::{KeyFile, Reserved};
use super::super::say;
use super::super::trouble::Trouble;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto agent register alice --key-out alice.key\n  rialto agent register bob --culture zh-CN --language zh-CN --language en --key-out bob.key\n  rialto agent register carol --endpoint https://carol.example/receive\n  rialto agent register alice --culture fr --key-file alice.key     update\n\nThe key is shown once. With --key-out it is not shown at all but written to a file that only you\ncan read: the key on the first line, then the agent's id and the hub. Give that file to other\ncommands with --key-file, and they know who is calling, and where."
)]
pub struct Args {
    /// NAME@HOST, or NAME for one at the hub's own host
    name: String,
    /// The culture the agent speaks for, a BCP 47 tag
    #[arg(long, value_name = "TAG", default_value = "en")]
    culture: String,
    /// A language it understands; may be given several times [default: the culture]
    #[arg(long, value_name = "TAG")]
    language: Vec<String>,
    /// Where the hub calls it; without it, it listens to its inbox
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Write the key to this new file instead of showing it
    #[arg(long, value_name = "FILE")]
    key_out: Option<PathBuf>,
}

pub async fn run(access: &Access, args: &Args) -> Result<Exit, Trouble> {
    let keys = access.keys()?;
    let hub = access.hub_url(keys.as_ref());
    // Before anything else: a key that cannot be kept must not be asked for.
    let reserved = args.key_out.as_deref().map(Reserved::new).transpose()?;
    let server = access.server(None).await?;
    let registered = announce(&server, keys.as_ref(), &announcement(args)).await?;
    let Some((reserved, path)) = reserved.zip(args.key_out.as_ref()) else {
        show(access, &registered, keys.as_ref());
        return Ok(Exit::Ok);
    };
    let file = KeyFile {
        key: registered.api_key.clone(),
        agent_id: Some(registered.agent_id.clone()),
        hub: Some(hub.to_owned()),
        webhook_secret: registered.webhook_secret.clone(),
    };
    if let Err(error) = reserved.fill(&file) {
        // Nobody will ever be able to show it again.
        show(access, &registered, None);
        return Err(Trouble {
            exit: Exit::Failed,
            code: None,
            message: format!("cannot write {}: {error}", path.display()),
            next: Some("the agent is registered; keep the key that was shown".to_owned()),
        });
    }
    let path = path.display().to_string();
    let _ = match access.json {
        true => {
            let mut document = document(&registered);
            document["key_file"] = path.into();
            say::line(&document.to_string())
        }
        false => {
            say::line(&format!("{} registered, key in {path}", say::one_line(&registered.agent_id)))
        }
    };
    Ok(Exit::Ok)
}

fn announcement(args: &Args) -> Announcement {
    let culture = [args.culture.clone()];
    let languages = if args.language.is_empty() { &culture[..] } else { &args.language };
    let mut announcement = Announcement::new(args.name.as_str(), &args.culture, languages);
    announcement.endpoint.clone_from(&args.endpoint);
    announcement
}

/// A new agent needs no key, and whoever has one for another agent must not be refused for it. So
/// the key is only shown when the name turns out to be taken.
async fn announce(
    server: &Server,
    keys: Option<&KeyFile>,
    agent: &Announcement,
) -> Result<Registered, CallError> {
    match (server.register(agent).await, keys) {
        (Err(CallError::Refused { status: 409, .. }), Some(keys)) => {
            server.with_key(keys.key.clone()).register(agent).await
        }
        (result, _) => result,
    }
}

/// Shows what was given, with the key unless it is the one that was shown to us.
fn show(access: &Access, registered: &Registered, keys: Option<&KeyFile>) {
    let known = keys.is_some_and(|keys| keys.key == registered.api_key);
    let secret = registered.webhook_secret.as_ref().map(WebhookSecret::reveal);
    let key = registered.api_key.reveal();
    let _ = if access.json {
        let mut document = document(registered);
        document["api_key"] = key.into();
        if let Some(secret) = secret {
            document["webhook_secret"] = secret.into();
        }
        say::line(&document.to_string())
    } else {
        let mut text = format!("id {}", say::one_line(&registered.agent_id));
        match known {
            true => text.push_str("\nkey unchanged"),
            false => text.push_str(&format!("\nkey {}", say::one_line(key))),
        }
        if let Some(secret) = secret {
            text.push_str(&format!("\nwebhook secret {secret}"));
        }
        if !known {
            text.push_str("\nshown only now: keep it, and give it to other commands as RIALTO_KEY");
        }
        say::line(&text)
    };
}

/// Everything but secrets.
fn document(registered: &Registered) -> Value {
    let record = registered.record.as_ref().map(|record| record.raw());
    json!({"agent_id": registered.agent_id, "registration": record})
}
