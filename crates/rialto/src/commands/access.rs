//! Which hub, and with which key: the flags that all client commands share.
//!
//! Flags come first, then the environment, then the context that is named or current, and last a
//! hub of one's own. A key of a context goes to that context's hub and to no other.

use std::future::Future;
use std::path::PathBuf;
use std::sync::OnceLock;

use rialto_client::Hub;
use rialto_client::relay::Server;

use super::acting;
use super::context::{Context, OWN_HUB, address};
use super::key_file::{self, KeyFile};
use super::newcomer;
use super::trouble::{BAD_KEY, KeySource, Trouble};
use super::{complain, runtime};
use crate::exit::Exit;

/// What helps where the hub does not know the caller's own key.
const NEW_HUB: &str = "the hub may have been reset (`rialto dev` is after each start); the next `rialto job post` registers you again";

/// Where a key comes from that is in no file.
const KEY: &str = "RIALTO_KEY";

#[derive(clap::Args)]
pub struct Access {
    /// The hub's base URL [default: from the key file or the context, or http://127.0.0.1:7425]
    #[arg(long, global = true, env = "RIALTO_HUB", hide_env_values = true, value_name = "URL")]
    pub hub: Option<String>,
    /// File with the key, as `agent register --key-out` writes it; otherwise env RIALTO_KEY
    #[arg(long, global = true, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// The context to use instead of the current one: see `rialto context`
    // Its id differs from its name: there are commands that mean something else by that name.
    #[arg(
        id = "hub_context",
        long = "context",
        global = true,
        env = "RIALTO_CONTEXT",
        hide_env_values = true,
        value_name = "NAME"
    )]
    pub context: Option<String>,
    /// Act as this agent of the context (started with `rialto agent run`) instead of yourself
    #[arg(
        long = "as",
        id = "acting",
        global = true,
        value_name = "NAME",
        conflicts_with = "key_file"
    )]
    pub acting: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// The hub of the context, once it was looked for.
    #[arg(skip)]
    context_hub: OnceLock<String>,
    /// Where the key comes from that was looked for last, for whoever has to replace it.
    #[arg(skip)]
    key_source: OnceLock<KeySource>,
}

/// Where the caller's key comes from, and where a new one goes.
pub enum Origin {
    File(PathBuf),
    /// The environment, which only its owner can change.
    Variable,
    Context(Context),
}

impl Origin {
    /// Puts a key where the old one was, and says where; `None` where only its owner can.
    pub fn keep(&self, keys: &KeyFile) -> Result<Option<String>, Trouble> {
        match self {
            Self::Variable => Ok(None),
            Self::Context(context) => {
                context.keep_me(keys)?;
                Ok(Some(format!("context {}", context.name())))
            }
            Self::File(path) => {
                let shown = path.display().to_string();
                let failed = |error| {
                    let next = "make the file and its directory writable";
                    Trouble::failed(format!("cannot write {shown}: {error}"), next)
                };
                keys.replace(path).map_err(failed)?;
                Ok(Some(shown))
            }
        }
    }
}

/// Whether a key in the environment comes before that of the context.
pub fn has_key_variable() -> bool {
    set(KEY).is_some()
}

impl Access {
    /// What a command without flags uses.
    pub fn of_environment() -> Self {
        Self {
            hub: set("RIALTO_HUB"),
            key_file: None,
            context: set("RIALTO_CONTEXT"),
            acting: None,
            json: false,
            context_hub: OnceLock::new(),
            key_source: OnceLock::new(),
        }
    }

    /// The key to show, if there is one: that of the file or of the agent that is named, or the
    /// first of the variables, or that of the context.
    pub fn keys_or(&self, variables: &[&str]) -> Result<Option<KeyFile>, Trouble> {
        if let Some(name) = &self.acting {
            return self.keys_of(name).map(Some);
        }
        let given = match &self.key_file {
            Some(path) => {
                self.comes_from(|| KeySource::of(format!("the key in {}", path.display())));
                Some(key_file::load(path)?)
            }
            None => {
                let set = variables.iter().find_map(|name| Some((name, set(name)?)));
                if let Some((name, _)) = &set {
                    self.comes_from(|| KeySource::of(format!("the key in {name}")));
                }
                set.map(|(name, value)| key_file::of_variable(name, &value)).transpose()?
            }
        };
        match given {
            Some(mut keys) => {
                if keys.hub.is_none() && self.hub.is_none() {
                    keys.hub = Some(self.context()?.hub().to_owned());
                }
                Ok(Some(keys))
            }
            None => {
                let context = self.context()?;
                self.comes_from(|| KeySource {
                    key: format!("your key in context {}", context.name()),
                    next: Some(format!("{NEW_HUB}; or {BAD_KEY}")),
                });
                context.me()
            }
        }
    }

    fn comes_from(&self, source: impl FnOnce() -> KeySource) {
        self.key_source.get_or_init(source);
    }

    /// The key of an agent of this machine.
    fn keys_of(&self, name: &str) -> Result<KeyFile, Trouble> {
        let (context, path) = (self.context()?, self.agent_key(name)?);
        self.comes_from(|| KeySource {
            key: format!("the key of {name} in {}", path.display()),
            // Stopping takes an agent off the lists, and its key with it.
            next: Some(format!("agent {name} is stopped or the hub was reset; start it with `rialto agent run` in its folder: its key works only while it runs")),
        });
        Ok(KeyFile { hub: Some(context.hub().to_owned()), ..key_file::load(&path)? })
    }

    /// The key file of an agent of this machine.
    fn agent_key(&self, name: &str) -> Result<PathBuf, Trouble> {
        let context = self.context()?;
        let path = context.agent_key_path(name)?.filter(|path| path.exists());
        path.map_or_else(|| Err(acting::unknown(&context, name)), Ok)
    }

    /// Refuses `--as` where no agent acts.
    pub fn without_acting(&self, why: &str) -> Result<(), Trouble> {
        match &self.acting {
            None => Ok(()),
            Some(name) => {
                Err(Trouble::usage(format!("--as {name} cannot be used with this command"), why))
            }
        }
    }

    /// The key of an agent.
    pub fn keys(&self) -> Result<Option<KeyFile>, Trouble> {
        self.keys_or(&[KEY])
    }

    /// Where that key comes from.
    pub fn origin(&self) -> Result<Origin, Trouble> {
        if let Some(name) = &self.acting {
            return self.agent_key(name).map(Origin::File);
        }
        match &self.key_file {
            Some(path) => Ok(Origin::File(path.clone())),
            None if has_key_variable() => Ok(Origin::Variable),
            None => self.context().map(Origin::Context),
        }
    }

    /// The hub's URL: what was said, or else where the key belongs, or else that of the context.
    pub fn hub_url<'a>(&'a self, keys: Option<&'a KeyFile>) -> &'a str {
        let remembered = keys.and_then(|keys| keys.hub.as_deref());
        let known = self.context_hub.get().map(String::as_str);
        self.hub.as_deref().or(remembered).or(known).unwrap_or(OWN_HUB)
    }

    /// The context of this call: the named or current one, or that of the hub that was said.
    pub fn context(&self) -> Result<Context, Trouble> {
        let context = self.context_at(self.hub.as_deref())?;
        Ok(self.remember(context))
    }

    /// The named or current context if it is for this hub, or else the hub's own.
    pub fn context_at(&self, hub: Option<&str>) -> Result<Context, Trouble> {
        let context = Context::current(self.context.as_deref())?;
        match hub {
            Some(hub) if !address::same(hub, context.hub()) => Context::of_hub(hub),
            _ => Ok(context),
        }
    }

    fn remember(&self, context: Context) -> Context {
        self.context_hub.get_or_init(|| context.hub().to_owned());
        context
    }

    /// The hub, to be called with the caller's key if there is one.
    pub fn caller(&self) -> Result<(Hub, Option<KeyFile>), Trouble> {
        self.caller_or(&[KEY])
    }

    /// The same with a key from one of these variables.
    pub fn caller_or(&self, variables: &[&str]) -> Result<(Hub, Option<KeyFile>), Trouble> {
        let keys = self.keys_or(variables)?;
        let hub = Hub::new(self.hub_url(keys.as_ref()))?;
        match &keys {
            Some(known) => Ok((hub.with_key(known.key.reveal()), keys)),
            None => Ok((hub, None)),
        }
    }

    /// The same where nothing can be done without a key.
    pub fn me(&self) -> Result<(Hub, KeyFile), Trouble> {
        let (hub, keys) = self.caller()?;
        Ok((hub, keys.ok_or_else(Trouble::no_key)?))
    }

    /// The same; whoever has no key at all is registered first, and the key kept in the context.
    pub async fn me_or_register(&self) -> Result<(Hub, KeyFile), Trouble> {
        let (hub, keys) = self.caller()?;
        let context = self.context_at(Some(hub.base()))?;
        let keys = match (keys, self.origin()?) {
            (None, _) => newcomer::requester(&hub, &context).await?,
            (Some(keys), Origin::Context(_)) if newcomer::is_unknown(&hub, &keys).await? => {
                context.set_me_aside(&keys)?;
                match context.me()? {
                    // Another command was faster.
                    Some(keys) => keys,
                    None => newcomer::requester(&Hub::new(hub.base())?, &context).await?,
                }
            }
            (Some(keys), _) => keys,
        };
        Ok((hub.with_key(keys.key.reveal()), keys))
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
            Ok(runtime) => runtime
                .block_on(work)
                .unwrap_or_else(|trouble| trouble.of_key(self.key_source.get()).tell(self.json)),
        }
    }
}

/// What stands in a variable, unless it is empty.
fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hub_is_what_was_said_or_where_the_key_belongs() {
        let mut access = Access {
            hub: None,
            key_file: None,
            context: None,
            acting: None,
            json: false,
            context_hub: OnceLock::new(),
            key_source: OnceLock::new(),
        };
        let mut keys = KeyFile::of("ca_1");
        assert_eq!(access.hub_url(Some(&keys)), OWN_HUB);
        access.context_hub = OnceLock::from("http://context".to_owned());
        assert_eq!(access.hub_url(Some(&keys)), "http://context");
        keys.hub = Some("http://there".to_owned());
        assert_eq!(access.hub_url(Some(&keys)), "http://there");
        access.hub = Some("http://here".to_owned());
        assert_eq!(access.hub_url(Some(&keys)), "http://here");
    }
}
