//! The key of the bridge: the one it is given, or a limited key that the context keeps for it.
//!
//! A limited key is made once, by `rialto connect --apply` or by the first `rialto mcp` of a context.
//! `rialto dev` forgets all agents when it ends; then the bridge registers again.

use rialto_client::{CallError, Hub, KeyFile};
use rialto_core::money::Credits;
use tokio::sync::Mutex;

use crate::commands::context::Context;
use crate::commands::hub_options::{KeyOrigin, is_agent_unknown};
use crate::commands::v1::{Amount, NewKey, format_amount};
use crate::commands::{CliError, CliResult, Exit, HubOptions, V1, output};

/// The name of the key that all bridges of a context share.
pub const SHARED: &str = "mcp";

/// What a limited key may spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLimits {
    pub per_job: Credits,
    pub per_day: Credits,
    pub transfers: bool,
}

impl Default for KeyLimits {
    fn default() -> Self {
        let (per_job, per_day) =
            (Credits::from_micros(1_000_000), Credits::from_micros(10_000_000));
        Self { per_job, per_day, transfers: false }
    }
}

impl KeyLimits {
    /// The limits in words.
    pub fn describe(&self) -> String {
        let transfers = if self.transfers { "transfers allowed" } else { "no transfers" };
        let (job, day) = (format_amount(self.per_job), format_amount(self.per_day));
        format!("at most {job} per job and {day} per day, {transfers}")
    }
}

/// Makes a limited key of the caller's agent and keeps it in the context; registers the caller first
/// if it is not.
pub async fn make_limited_key(
    options: &HubOptions,
    context: &Context,
    name: &str,
    limits: &KeyLimits,
) -> CliResult<KeyFile> {
    // First of all: do not request a key that cannot be kept.
    context.ensure_dir()?;
    let (api, own) = options.client_or_register().await?;
    let made = api
        .make_key(&NewKey {
            label: &format!("rialto {name}"),
            per_job: Amount(limits.per_job),
            per_day: Amount(limits.per_day),
            transfers: limits.transfers,
        })
        .await?
        .parse()?;
    let agent_id = own.agent_id.clone();
    let key = KeyFile { agent_id, hub: own.hub, ..KeyFile::from_key(&made.key) };
    let replaced = context.save_limited_key(name, &key, &made.id.to_string())?;
    if let Some(replaced) = replaced {
        // The hub may not know it: then there is nothing to revoke.
        match api.revoke_key(&replaced).await {
            Ok(()) | Err(CallError::Refused { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(key)
}

/// Why there is no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// The hub that would give one does not answer.
    Unreachable,
    /// What is wrong, and what to do.
    None { what: String, fix: String },
}

impl From<CliError> for KeyError {
    fn from(error: CliError) -> Self {
        match error.exit {
            Exit::Unreachable | Exit::TimedOut => Self::Unreachable,
            _ => {
                let fix = error.next.unwrap_or_else(|| "run rialto doctor".to_owned());
                Self::None { what: error.message, fix }
            }
        }
    }
}

/// The key of the bridge, once it is needed.
pub struct BridgeKey {
    options: HubOptions,
    held: Mutex<Option<KeyFile>>,
}

impl BridgeKey {
    pub fn new(options: HubOptions) -> Self {
        Self { options, held: Mutex::new(None) }
    }

    /// The key. The first call may register the caller and make a limited key.
    pub async fn get(&self) -> Result<KeyFile, KeyError> {
        let mut held = self.held.lock().await;
        if let Some(key) = &*held {
            return Ok(key.clone());
        }
        let key = match self.options.key_origin()? {
            KeyOrigin::File(_) | KeyOrigin::Variable => {
                self.options.load_key()?.ok_or_else(CliError::no_key)?
            }
            KeyOrigin::Context(context) => match context.load_limited_key(SHARED)? {
                Some(key) => key,
                None => self.make(&context).await?,
            },
        };
        *held = Some(key.clone());
        Ok(key)
    }

    /// Another key in place of one that the hub refused: the context has a new one by now, or the hub
    /// was reset and the caller is registered again. A key that was revoked is not replaced.
    pub async fn replace(&self, refused: &KeyFile) -> Result<Option<KeyFile>, KeyError> {
        let mut held = self.held.lock().await;
        if let Some(key) = held.as_ref().filter(|key| key.key != refused.key) {
            return Ok(Some(key.clone()));
        }
        let KeyOrigin::Context(context) = self.options.key_origin()? else { return Ok(None) };
        let kept = context.load_limited_key(SHARED)?;
        let key = match kept.filter(|key| key.key != refused.key) {
            Some(key) => key,
            None => {
                let hub = Hub::new(context.hub()).map_err(CliError::from)?;
                let api = V1(hub.with_key(refused.key.reveal()));
                if !is_agent_unknown(&api, refused).await? {
                    return Ok(None);
                }
                self.make(&context).await?
            }
        };
        *held = Some(key.clone());
        Ok(Some(key))
    }

    async fn make(&self, context: &Context) -> CliResult<KeyFile> {
        let limits = KeyLimits::default();
        let key = make_limited_key(&self.options, context, SHARED, &limits).await?;
        output::print_stderr(&format!(
            "made a key for rialto mcp: {}; it is kept in context {}",
            limits.describe(),
            context.name()
        ));
        Ok(key)
    }
}
