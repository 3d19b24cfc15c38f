//! Which hub, and with which key: the flags that all client commands share.

use std::future::Future;
use std::path::PathBuf;

use rialto_client::relay::Server;

use super::key_file::KeyFile;
use super::trouble::Trouble;
use super::{complain, runtime};
use crate::exit::Exit;

/// Where a hub of one's own listens.
const HUB: &str = "http://127.0.0.1:7425";
/// Where a key comes from that is in no file.
const KEY: &str = "RIALTO_KEY";

#[derive(clap::Args)]
pub struct Access {
    /// The hub's base URL [default: that of the key file, or http://127.0.0.1:7425]
    #[arg(long, global = true, env = "RIALTO_HUB", hide_env_values = true, value_name = "URL")]
    pub hub: Option<String>,
    /// File with the key, as `agent register --key-out` writes it; otherwise env RIALTO_KEY
    #[arg(long, global = true, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

impl Access {
    /// The key to show, if there is one: that of the file, or the first of the variables.
    pub fn keys_or(&self, variables: &[&str]) -> Result<Option<KeyFile>, Trouble> {
        if let Some(path) = &self.key_file {
            return KeyFile::load(path).map(Some);
        }
        let set = |name: &&str| std::env::var(name).ok().filter(|key| !key.trim().is_empty());
        Ok(variables.iter().find_map(set).map(|key| KeyFile::of(key.trim())))
    }

    /// The key of an agent.
    pub fn keys(&self) -> Result<Option<KeyFile>, Trouble> {
        self.keys_or(&[KEY])
    }

    /// The hub's URL: what was said, or else where the key belongs.
    pub fn hub_url<'a>(&'a self, keys: Option<&'a KeyFile>) -> &'a str {
        let remembered = keys.and_then(|keys| keys.hub.as_deref());
        self.hub.as_deref().or(remembered).unwrap_or(HUB)
    }

    /// The relay server, to be called with the key.
    pub async fn server(&self, keys: Option<&KeyFile>) -> Result<Server, Trouble> {
        let server = Server::discover(self.hub_url(keys)).await?;
        Ok(match keys {
            Some(keys) => server.with_key(keys.key.clone()),
            None => server,
        })
    }

    /// Waits for a command; what went wrong is told.
    pub fn run(&self, work: impl Future<Output = Result<Exit, Trouble>>) -> Exit {
        match runtime() {
            Err(error) => complain(error),
            Ok(runtime) => runtime.block_on(work).unwrap_or_else(|trouble| trouble.tell(self.json)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hub_is_what_was_said_or_where_the_key_belongs() {
        let mut access = Access { hub: None, key_file: None, json: false };
        let mut keys = KeyFile::of("ca_1");
        assert_eq!(access.hub_url(Some(&keys)), HUB);
        keys.hub = Some("http://there".to_owned());
        assert_eq!(access.hub_url(Some(&keys)), "http://there");
        access.hub = Some("http://here".to_owned());
        assert_eq!(access.hub_url(Some(&keys)), "http://here");
    }
}
