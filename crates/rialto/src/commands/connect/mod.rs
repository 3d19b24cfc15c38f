//! `rialto connect`: sets up a client of MCP, or shows how.
//!
//! By itself it only prints. With `--apply` it runs the client's own command or edits the client's
//! file, gives the connection a limited key, and then connects the way the client will.

mod apply;
mod check;
mod clients;
mod config_file;
mod json_edit;
mod shell;

use rialto_core::money::Credits;
use serde_json::Value;

use super::context::Context;
use super::mcp::DoorArgs;
use super::mcp::key::{KeyLimits, SHARED};
use super::{CliError, CliResult, Exit, HubOptions, KeyFile, output};
use clients::{Client, Door, KeyInput, Setup};

#[derive(clap::Args)]
pub struct Args {
    /// The client to connect
    #[arg(value_enum)]
    client: Client,
    /// Show what would be done, and change nothing (the default)
    #[arg(long, conflicts_with = "apply")]
    print: bool,
    /// Do it: run the client's own command, or edit its file
    #[arg(long)]
    apply: bool,
    /// Let the client call the hub itself, instead of through `rialto mcp`
    #[arg(long)]
    http: bool,
    /// Show the key of the connection
    #[arg(long)]
    show_key: bool,
    /// Most credits for one job [default: 1.00]
    #[arg(long, value_name = "CREDITS", value_parser = amount)]
    per_job: Option<Credits>,
    /// Most credits for one day [default: 10.00]
    #[arg(long, value_name = "CREDITS", value_parser = amount)]
    per_day: Option<Credits>,
    /// Allow the connection to send credits
    #[arg(long)]
    transfers: bool,
    #[command(flatten)]
    door: DoorArgs,
    #[command(flatten)]
    options: HubOptions,
}

fn amount(text: &str) -> Result<Credits, String> {
    Credits::parse(text, 6).map_err(|_| "write an amount like 1.00".to_owned())
}

pub fn run(args: &Args) -> Exit {
    args.options.run(connect(args))
}

async fn connect(args: &Args) -> CliResult {
    let hub = args.options.base_url()?;
    let context = args.options.context_for(Some(&hub))?;
    let kept = context.load_limited_key(&args.key_name())?;
    let shown = if args.show_key { kept.as_ref() } else { None };
    let setup = args.setup(&hub, &context, shown)?;
    if args.apply {
        return apply::apply(args, &hub, &context, setup).await;
    }
    let key_text = args.describe_key(&context, kept.as_ref(), setup.key_input);
    Ok(output::print(args.options.json, setup.to_json(), || {
        format!("{}\n{key_text}", setup.describe())
    }))
}

impl Args {
    /// Whether the client calls the hub itself: the only way for libraries.
    fn is_http(&self) -> bool {
        self.http || self.client.is_library()
    }

    /// The name of the connection's key in the context.
    fn key_name(&self) -> String {
        if self.is_http() { format!("{SHARED}-{}", self.client.name()) } else { SHARED.to_owned() }
    }

    fn limits(&self) -> KeyLimits {
        let usual = KeyLimits::default();
        KeyLimits {
            per_job: self.per_job.unwrap_or(usual.per_job),
            per_day: self.per_day.unwrap_or(usual.per_day),
            transfers: self.transfers,
        }
    }

    /// Whether limits are named, so that a kept key with others does not fit.
    fn has_own_limits(&self) -> bool {
        self.transfers || self.per_job.is_some() || self.per_day.is_some()
    }

    /// What there is to do, with the key or its place.
    fn setup(&self, hub: &str, context: &Context, key: Option<&KeyFile>) -> CliResult<Setup> {
        let path = self.door.path()?;
        let door = if self.is_http() {
            let key = key.map(|key| key.key.reveal().to_owned());
            Door::Http { url: format!("{hub}{path}"), key }
        } else {
            Door::Stdio { program: own_path()?, arguments: self.bridge_arguments(context)? }
        };
        self.client.setup(&door).ok_or_else(|| {
            let name = self.client.name();
            let message = format!("{name} cannot send a key by HTTP");
            CliError::usage(message, format!("use `rialto connect {name}` without --http"))
        })
    }

    /// The arguments of `rialto mcp`, which runs without this command's flags and environment.
    fn bridge_arguments(&self, context: &Context) -> CliResult<Vec<String>> {
        let usual = Context::current(None)?;
        let mut arguments = vec!["mcp".to_owned()];
        if usual.name() != context.name() || usual.hub() != context.hub() {
            let named = self.options.context.as_deref() == Some(context.name());
            arguments.extend(match named {
                true => ["--context".to_owned(), context.name().to_owned()],
                false => ["--hub".to_owned(), context.hub().to_owned()],
            });
        }
        arguments.extend(self.door.arguments());
        Ok(arguments)
    }

    /// What to know about the key when nothing is changed.
    fn describe_key(
        &self,
        context: &Context,
        kept: Option<&KeyFile>,
        input: Option<KeyInput>,
    ) -> String {
        let http = if self.http && !self.client.is_library() { " --http" } else { "" };
        let made = format!("`rialto connect {}{http} --apply`", self.client.name());
        let place = context.limited_key_path(&self.key_name());
        let place = place.map(|path| path.display().to_string()).unwrap_or_default();
        match kept {
            Some(key) if self.is_http() && self.show_key => {
                format!("The key of this connection, kept in {place}: {}", key.key.reveal())
            }
            Some(_) if self.is_http() => {
                let next = "--show-key shows it";
                format!("The key of this connection is the first line of {place}; {next}.")
            }
            Some(key) if self.show_key => {
                format!("The key, which rialto mcp reads from {place}: {}", key.key.reveal())
            }
            Some(_) => format!(
                "rialto mcp uses the key in {place}, which all clients that start it share; --show-key shows it."
            ),
            None if self.is_http() => {
                let begin = match input {
                    Some(KeyInput::Variable) => "RIALTO_KEY stands for",
                    Some(KeyInput::Prompt) => "The client asks for",
                    None => "rk_… stands for",
                };
                let limits = self.limits().describe();
                format!("{begin} a key ({limits}), which {made} makes and keeps in {place}.")
            }
            None => format!(
                "The key ({}) is made by {made}, and kept in {place}; all clients that start rialto mcp share it.",
                self.limits().describe()
            ),
        }
    }
}

/// The absolute path of this program.
fn own_path() -> CliResult<String> {
    let path = std::env::current_exe().map_err(|error| {
        let message = format!("cannot find the path of this program: {error}");
        CliError::failed(message, "run it by its full path")
    })?;
    Ok(path.display().to_string())
}

/// A document for `--json`.
fn document(members: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
