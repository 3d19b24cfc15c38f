//! Does what the setup says, and then connects by what was written.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::check::{self, Connected};
use super::clients::{Door, HIDDEN_KEY, KeyInput, Setup};
use super::config_file::Change;
use super::{Args, document, shell};
use crate::commands::context::Context;
use crate::commands::mcp::key::make_limited_key;
use crate::commands::output::escape_lines;
use crate::commands::{CliError, CliResult, KeyFile, output};

/// What is said of the key of `rialto mcp`.
const SHARED_KEY: &str = "; all clients that start rialto mcp in this context share it";

/// What is done, in the order of [`Setup`].
enum Step {
    /// A command of the client, by its full path.
    Run {
        program: PathBuf,
        words: Vec<String>,
    },
    Write(Change),
    /// The rest is up to a program.
    Paste(String),
}

/// Applies a setup. Nothing is changed before everything that can be checked was checked.
pub async fn apply(args: &Args, hub: &str, context: &Context, setup: Setup) -> CliResult {
    let program = match &setup.run {
        Some(words) if has_own_command(&setup) => Some(find_program(&words[0])?),
        _ => None,
    };
    if program.is_none()
        && let Some(file) = &setup.file
    {
        file.plan()?;
    }
    let key = connection_key(args, context).await?;
    // Now with the key in its place.
    let setup = args.setup(hub, context, Some(&key))?;
    let step = match (program, &setup.run, &setup.file) {
        (Some(program), Some(words), _) => Step::Run { program, words: words.clone() },
        (_, _, Some(file)) => Step::Write(file.plan()?),
        _ => Step::Paste(setup.python.clone().unwrap_or_default()),
    };
    let shown = |text: &str| hide(text, &key, args.show_key);
    let say = |text: &str| {
        if !args.options.json {
            output::print_data(shown(text));
        }
    };
    let undo = match &step {
        Step::Run { program, words } => {
            say(&format!("{}\n", shell::line(words)));
            run_client(program, words, setup.undo.as_deref(), &shown)?;
            setup.undo.clone()
        }
        Step::Write(change) if change.is_done() => {
            say(&format!("{} has the entry already\n", change.path().display()));
            None
        }
        Step::Write(change) => {
            say(&format!("{}\n\n{}\n", change.path().display(), change.diff()));
            Some(change.write()?)
        }
        Step::Paste(text) => {
            say(text);
            None
        }
    };
    let undo = undo.map(|words| shell::line(&words));
    let connected = check::connect(&setup, &key).await.map_err(|error| {
        let undo = undo.as_ref().map(|undo| format!("; `{undo}` takes the change back"));
        let next = error.next.unwrap_or_else(|| "`rialto doctor` looks for the reason".to_owned());
        let message = shown(&format!("the connection does not work: {}", error.message));
        CliError::failed(message, format!("{next}{}", undo.unwrap_or_default()))
    })?;
    let place = context.limited_key_path(&args.key_name()).unwrap_or_default();
    let document = summary(args, &setup, &connected, &key, undo.as_deref());
    Ok(output::print(args.options.json, document, || {
        let shown = if args.show_key { key.key.reveal() } else { HIDDEN_KEY };
        let mut lines = vec![connected.describe()];
        let shared = if args.is_http() { "" } else { SHARED_KEY };
        lines.push(format!(
            "The key of this connection ({shown}) is kept in {}{shared}.",
            place.display()
        ));
        lines.push(format!("It may spend {}.", connected.limits));
        match setup.key_input {
            Some(KeyInput::Variable) => lines.push(format!(
                "The client reads it from RIALTO_KEY: export RIALTO_KEY=$(head -n 1 {}), where only the client is started, because rialto reads it, too",
                shell::line(&[place.display().to_string()])
            )),
            Some(KeyInput::Prompt) => {
                lines.push("The client asks for it: enter the first line of that file.".to_owned());
            }
            None => {}
        }
        if !args.client.is_library() {
            lines.push(
                "Restart the client, and ask for example: find an agent that counts words"
                    .to_owned(),
            );
        }
        lines.extend(undo.as_ref().map(|undo| format!("To undo: {undo}")));
        lines.join("\n")
    }))
}

/// Whether the client is set up by its own command. A file that the client shares with a project is
/// written instead, because the command would write another one.
fn has_own_command(setup: &Setup) -> bool {
    setup.undo.is_some()
}

fn find_program(name: &str) -> CliResult<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| {
        let is_file = path.is_file();
        #[cfg(unix)]
        let is_file = is_file && is_executable(path);
        is_file
    });
    found.ok_or_else(|| {
        let next = "install it, or run what --print shows on the machine that has it";
        CliError::failed(format!("there is no program {name} on the PATH"), next)
    })
}

#[cfg(unix)]
fn is_executable(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

/// The key of the connection: the kept one, unless other limits are named or its hub has forgotten it.
async fn connection_key(args: &Args, context: &Context) -> CliResult<KeyFile> {
    let name = args.key_name();
    let kept = context.load_limited_key(&name)?.filter(|_| !args.has_own_limits());
    if let Some(key) = kept
        && check::is_valid(&key).await?
    {
        return Ok(key);
    }
    make_limited_key(&args.options, context, &name, &args.limits()).await
}

/// Runs the client's own command. `shown` is what people may see of what it says.
fn run_client(
    program: &PathBuf,
    words: &[String],
    undo: Option<&[String]>,
    shown: &impl Fn(&str) -> String,
) -> CliResult<()> {
    let done = Command::new(program)
        .args(&words[1..])
        .output()
        .map_err(|error| CliError::plain(format!("cannot run {}: {error}", program.display())))?;
    if done.status.success() {
        return Ok(());
    }
    let said =
        String::from_utf8_lossy(if done.stderr.is_empty() { &done.stdout } else { &done.stderr });
    // The first line that names an error; a stack trace may follow it.
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let named = lines.clone().find(|line| line.to_ascii_lowercase().starts_with("error"));
    let said = named.or_else(|| lines.next_back()).unwrap_or("it gave no reason");
    let next = match undo {
        Some(undo) => {
            format!("if it is connected already, `{}` removes that first", shell::line(undo))
        }
        None => "run what --print shows yourself".to_owned(),
    };
    Err(CliError::failed(format!("{} failed: {}", words[0], shown(said)), next))
}

/// Keeps the key out of what is shown.
fn hide(text: &str, key: &KeyFile, show_key: bool) -> String {
    let text = if show_key { text.to_owned() } else { text.replace(key.key.reveal(), HIDDEN_KEY) };
    escape_lines(&text)
}

fn summary(
    args: &Args,
    setup: &Setup,
    connected: &Connected,
    key: &KeyFile,
    undo: Option<&str>,
) -> Value {
    let url = match &setup.door {
        Door::Http { url, .. } => Some(url.as_str()),
        Door::Stdio { .. } => None,
    };
    let members = [
        ("client", Some(json!(args.client.name()))),
        ("url", url.map(Value::from)),
        ("tools", Some(json!(connected.tools))),
        ("available", Some(json!(connected.available))),
        ("key", args.show_key.then(|| json!(key.key.reveal()))),
        ("undo", undo.map(Value::from)),
    ];
    document(members.into_iter().filter_map(|(name, value)| Some((name, value?))))
}
