//! Options of all client commands: which hub to call, and with which key.
//!
//! Flags come first, then the environment, then the named or current context, and last the default
//! local hub. A context's key is sent only to that context's hub. A new requester is registered
//! automatically, under the user's login name.

use std::future::Future;
use std::path::PathBuf;
use std::sync::OnceLock;

use rialto_client::registry::{self, Registration};
use rialto_client::relay::Server;
use rialto_client::{CallError, Hub};

use super::context::{Context, DEFAULT_HUB, home};
use super::error::{BAD_KEY, KeySource};
use super::v1::{encode_part, unreadable};
use super::{
    CliError, CliResult, Exit, KeyFile, V1, agent_names, escape_line, key_file, output,
    print_error, runtime,
};

/// Hint for a hub that does not know the caller's key.
const NEW_HUB: &str = "the hub may have been reset (`rialto dev` starts empty each time); the next `rialto job post` registers you again";

/// The variable for a key that is not in a file.
const KEY_VARIABLE: &str = "RIALTO_KEY";

#[derive(clap::Args)]
pub struct HubOptions {
    /// Base URL of the hub [default: from the key file or the context, or http://127.0.0.1:7425]
    #[arg(long, global = true, env = "RIALTO_HUB", hide_env_values = true, value_name = "URL")]
    pub hub: Option<String>,
    /// File with the key, as written by `agent register --key-out`; otherwise env RIALTO_KEY
    #[arg(long, global = true, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Context to use instead of the current one; see `rialto context`
    // The id differs from the flag name: some commands have another flag of that name.
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
    /// The hub of the context, once it is looked up.
    #[arg(skip)]
    context_hub: OnceLock<String>,
    /// Where the key that was loaded last comes from, for commands that replace it.
    #[arg(skip)]
    key_source: OnceLock<KeySource>,
}

/// Where the caller's key comes from, and where a new one is saved.
pub enum KeyOrigin {
    File(PathBuf),
    /// The environment, which this command cannot change.
    Variable,
    Context(Context),
}

impl KeyOrigin {
    /// Saves a key in place of the old one and returns where; `None` for a key from the
    /// environment.
    pub fn save_key(&self, keys: &KeyFile) -> CliResult<Option<String>> {
        match self {
            Self::Variable => Ok(None),
            Self::Context(context) => {
                context.save_key(keys)?;
                Ok(Some(format!("context {}", context.name())))
            }
            Self::File(path) => {
                let shown = path.display().to_string();
                keys.write(path).map_err(|error| {
                    let next = "make the file and its directory writable";
                    CliError::failed(format!("cannot write {shown}: {error}"), next)
                })?;
                Ok(Some(shown))
            }
        }
    }
}

/// Whether a key in the environment overrides the context's key.
pub fn has_key_variable() -> bool {
    env_var(KEY_VARIABLE).is_some()
}

impl HubOptions {
    /// The options of a command without flags.
    pub fn from_environment() -> Self {
        Self {
            hub: env_var("RIALTO_HUB"),
            key_file: None,
            context: env_var("RIALTO_CONTEXT"),
            acting: None,
            json: false,
            context_hub: OnceLock::new(),
            key_source: OnceLock::new(),
        }
    }

    /// The same for a command whose standard output is not for people.
    pub fn without_json(self) -> Self {
        Self { json: false, ..self }
    }

    /// The key to use, if there is one: from the named file or agent, or else from the first
    /// variable that is set, or else from the context.
    pub fn load_key_from(&self, variables: &[&str]) -> CliResult<Option<KeyFile>> {
        if let Some(name) = &self.acting {
            return self.load_agent_key(name).map(Some);
        }
        let variable = || variables.iter().find_map(|name| Some((name, env_var(name)?)));
        let given = if let Some(path) = &self.key_file {
            self.set_key_source(|| KeySource::new(format!("the key in {}", path.display())));
            Some(key_file::load(path)?)
        } else if let Some((name, value)) = variable() {
            self.set_key_source(|| KeySource::new(format!("the key in {name}")));
            Some(key_file::from_variable(name, &value)?)
        } else {
            None
        };
        match given {
            Some(keys) if keys.hub.is_none() && self.hub.is_none() => {
                Ok(Some(KeyFile { hub: Some(self.context()?.hub().to_owned()), ..keys }))
            }
            Some(keys) => Ok(Some(keys)),
            None => {
                let context = self.context()?;
                self.set_key_source(|| KeySource {
                    key: format!("your key in context {}", context.name()),
                    next: Some(format!("{NEW_HUB}; or {BAD_KEY}")),
                });
                context.load_key()
            }
        }
    }

    fn set_key_source(&self, source: impl FnOnce() -> KeySource) {
        self.key_source.get_or_init(source);
    }

    /// The key of an agent of this machine.
    fn load_agent_key(&self, name: &str) -> CliResult<KeyFile> {
        let (context, path) = (self.context()?, self.agent_key_path(name)?);
        self.set_key_source(|| KeySource {
            key: format!("the key of {name} in {}", path.display()),
            // A stopped agent is unregistered, and its key stops working.
            next: Some(format!("agent {name} is stopped or the hub was reset; start it with `rialto agent run` in its folder: its key only works while it runs")),
        });
        Ok(KeyFile { hub: Some(context.hub().to_owned()), ..key_file::load(&path)? })
    }

    /// The key file of an agent of this machine.
    fn agent_key_path(&self, name: &str) -> CliResult<PathBuf> {
        let context = self.context()?;
        let path = context.agent_key_path(name)?.filter(|path| path.exists());
        path.map_or_else(|| Err(agent_names::unknown_agent(&context, name)), Ok)
    }

    /// Rejects `--as` for commands that do not act as an agent.
    pub fn reject_acting(&self, why: &str) -> CliResult<()> {
        self.acting.as_ref().map_or(Ok(()), |name| {
            Err(CliError::usage(format!("--as {name} cannot be used with this command"), why))
        })
    }

    /// The caller's key.
    pub fn load_key(&self) -> CliResult<Option<KeyFile>> {
        self.load_key_from(&[KEY_VARIABLE])
    }

    /// Where that key comes from.
    pub fn key_origin(&self) -> CliResult<KeyOrigin> {
        if let Some(name) = &self.acting {
            return self.agent_key_path(name).map(KeyOrigin::File);
        }
        match &self.key_file {
            Some(path) => Ok(KeyOrigin::File(path.clone())),
            None if has_key_variable() => Ok(KeyOrigin::Variable),
            None => self.context().map(KeyOrigin::Context),
        }
    }

    /// The hub's URL: the given one, or else the key's, or else the context's.
    pub fn hub_url<'a>(&'a self, keys: Option<&'a KeyFile>) -> &'a str {
        let remembered = keys.and_then(|keys| keys.hub.as_deref());
        let known = self.context_hub.get().map(String::as_str);
        self.hub.as_deref().or(remembered).or(known).unwrap_or(DEFAULT_HUB)
    }

    /// The hub's URL, with the same choice as for a call.
    pub fn base_url(&self) -> CliResult<String> {
        let keys = self.load_key()?;
        self.context()?;
        home::normalize(self.hub_url(keys.as_ref()))
    }

    /// The context of this call: the named or current one, or the one of the given hub.
    pub fn context(&self) -> CliResult<Context> {
        let context = self.context_for(self.hub.as_deref())?;
        Ok(self.remember(context))
    }

    /// The named or current context if it is for this hub, or else the hub's own context.
    pub fn context_for(&self, hub: Option<&str>) -> CliResult<Context> {
        let context = Context::current(self.context.as_deref())?;
        match hub {
            Some(hub) if !home::is_same_hub(hub, context.hub()) => Context::for_hub(hub),
            _ => Ok(context),
        }
    }

    fn remember(&self, context: Context) -> Context {
        self.context_hub.get_or_init(|| context.hub().to_owned());
        context
    }

    /// A client for the hub, with the caller's key if there is one.
    pub fn client(&self) -> CliResult<(V1, Option<KeyFile>)> {
        self.client_from(&[KEY_VARIABLE])
    }

    /// The same, with a key from one of these variables.
    pub fn client_from(&self, variables: &[&str]) -> CliResult<(V1, Option<KeyFile>)> {
        let keys = self.load_key_from(variables)?;
        let hub = Hub::new(self.hub_url(keys.as_ref()))?;
        let hub = keys.as_ref().map_or(hub.clone(), |keys| hub.with_key(keys.key.reveal()));
        Ok((V1(hub), keys))
    }

    /// The same, for commands that require a key.
    pub fn client_with_key(&self) -> CliResult<(V1, KeyFile)> {
        let (hub, keys) = self.client()?;
        Ok((hub, keys.ok_or_else(CliError::no_key)?))
    }

    /// The same. A caller without a key is registered first, and the key is saved in the context.
    pub async fn client_or_register(&self) -> CliResult<(V1, KeyFile)> {
        let (api, keys) = self.client()?;
        let base = api.0.base();
        let context = self.context_for(Some(base))?;
        let keys = match (keys, self.key_origin()?) {
            (None, _) => register_requester(base, &context).await?,
            (Some(keys), KeyOrigin::Context(_)) if is_agent_unknown(&api, &keys).await? => {
                context.archive_key(&keys)?;
                match context.load_key()? {
                    // Another command registered first.
                    Some(keys) => keys,
                    None => register_requester(base, &context).await?,
                }
            }
            (Some(keys), _) => keys,
        };
        Ok((V1(api.0.with_key(keys.key.reveal())), keys))
    }

    /// A client for the relay server, with the caller's key if there is one.
    pub async fn relay_server(&self) -> CliResult<Server> {
        let keys = self.load_key()?;
        let server = Server::discover(self.hub_url(keys.as_ref())).await?;
        Ok(keys.map_or(server.clone(), |keys| server.with_key(keys.key)))
    }

    /// Runs a command and reports its error.
    pub fn run(&self, work: impl Future<Output = CliResult>) -> Exit {
        match runtime() {
            Err(error) => print_error(error),
            Ok(runtime) => runtime.block_on(work).unwrap_or_else(|cli_error| {
                cli_error.with_key_source(self.key_source.get()).report(self.json)
            }),
        }
    }
}

/// The value of a variable, unless it is empty.
fn env_var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// The maximum length of the login name part.
const NAME_MAX: usize = 32;

/// Registers the caller, saves the key, and reports it on standard error.
async fn register_requester(base: &str, context: &Context) -> CliResult<KeyFile> {
    // First of all: do not request a key that cannot be saved.
    context.ensure_dir()?;
    let name = login_name();
    let registration = Registration::new(&name, generate_owner_name(&name)?);
    let agent = registry::Server::new(base)?.register(&registration).await?;
    let key = agent.key.ok_or_else(|| unreadable("no api_key"))?;
    let new =
        KeyFile { agent_id: Some(agent.agent_id.to_string()), ..KeyFile::from_key(key.reveal()) };
    // Two first commands at once belong to one user: the key saved first is used.
    let saved = context.save_key_if_none(&new)?;
    let id = escape_line(saved.agent_id.as_deref().unwrap_or_default());
    let context = context.name();
    output::print_stderr(&format!(
        "registered as {name} ({id}) at {base}; key saved in context {context}"
    ));
    Ok(saved)
}

/// Whether the hub does not know the agent of a saved key: it was reset, as `rialto dev` is at each
/// start. A revoked key belongs to an agent that the hub knows.
pub async fn is_agent_unknown(api: &V1, keys: &KeyFile) -> CliResult<bool> {
    let (Err(CallError::Refused { status: 401, .. }), Some(id)) =
        (api.me().await, keys.agent_id.as_deref())
    else {
        return Ok(false);
    };
    match Hub::new(api.0.base())?.get(&format!("/registry/agents/{}", encode_part(id))).await {
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
pub fn generate_owner_name(name: &str) -> CliResult<String> {
    let number = getrandom::u32()
        .map_err(|error| CliError::no_randomness(error, "set the account with --owner"))?;
    Ok(format!("{name}-{number:08x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hub_is_what_was_said_or_where_the_key_belongs() {
        let mut access = HubOptions {
            hub: None,
            key_file: None,
            context: None,
            acting: None,
            json: false,
            context_hub: OnceLock::new(),
            key_source: OnceLock::new(),
        };
        let mut keys = KeyFile::from_key("ca_1");
        assert_eq!(access.hub_url(Some(&keys)), DEFAULT_HUB);
        access.context_hub = OnceLock::from("http://context".to_owned());
        assert_eq!(access.hub_url(Some(&keys)), "http://context");
        keys.hub = Some("http://there".to_owned());
        assert_eq!(access.hub_url(Some(&keys)), "http://there");
        access.hub = Some("http://here".to_owned());
        assert_eq!(access.hub_url(Some(&keys)), "http://here");
    }

    #[test]
    fn a_login_becomes_a_plain_name() {
        assert_eq!(clean_name("alice"), "alice");
        assert_eq!(clean_name("HOST\\al ice\n"), "HOSTalice");
        assert_eq!(clean_name("яна"), "me");
        assert_eq!(clean_name(&"x".repeat(99)).len(), NAME_MAX);
    }
}
