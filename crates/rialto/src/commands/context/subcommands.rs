//! `rialto context`: manages the hubs to use, and which is the default.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};

use super::{Context, DEFAULT, Home, home, unknown_context};
use crate::commands::hub_options::has_key_variable;
use crate::commands::{
    CliError, CliResult, Column, Exit, HubOptions, KeyFile, Table, escape_line, key_file, output,
};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// Add a context, or change one; the first becomes the current one
    Add {
        /// Name of the context: 1 to 64 of a-z, 0-9, - and _
        name: String,
        /// Base URL of the hub
        #[arg(long, value_name = "URL")]
        hub: String,
        /// Key file whose key becomes yours in this context
        #[arg(long, value_name = "FILE")]
        key_file: Option<PathBuf>,
    },
    /// Make a context the current one
    Use {
        /// Name of the context
        name: String,
    },
    /// List the contexts
    Ls,
    /// Show a context
    Show {
        /// Name of the context [default: the one in use]
        name: Option<String>,
    },
    /// Remove a context and the keys in it
    Rm {
        /// Name of the context
        name: String,
        /// Remove it even if it is the current one
        #[arg(long)]
        force: bool,
    },
}

pub fn run(args: &Args) -> Exit {
    let json = args.json;
    let done = match &args.verb {
        Verb::Add { name, hub, key_file } => add(json, name, hub, key_file.as_deref()),
        Verb::Use { name } => use_context(json, name),
        Verb::Ls => list(json),
        Verb::Show { name } => show(json, name.as_deref()),
        Verb::Rm { name, force } => remove(json, name, *force),
    };
    done.unwrap_or_else(|cli_error| cli_error.report(json))
}

/// A context without its secrets.
fn to_json(context: &Context, is_current: bool) -> CliResult<Value> {
    let me = context.load_key()?;
    Ok(json!({
        "name": context.name(), "hub": context.hub(), "current": is_current,
        "kept": context.is_saved(), "has_key": me.is_some(),
        "agent_id": me.and_then(|me| me.agent_id), "agents": context.agents()?,
    }))
}

fn add(json: bool, name: &str, hub: &str, key_file: Option<&Path>) -> CliResult {
    let home = Home::require()?;
    let context = Context::new(&home, name, hub)?;
    let keys = key_file.map(key_file::load).transpose()?;
    check_hub(&home, &context, keys.as_ref())?;
    context.write(&home.directory_of(context.name()))?;
    home.set_current_if_none(context.name())?;
    if let Some(keys) = &keys {
        context.save_key(keys)?;
    }
    let is_current = home.current()?.as_deref() == Some(context.name());
    let document = if json { to_json(&context, is_current)? } else { Value::Null };
    Ok(output::print(json, document, || {
        let current = if is_current { ", the current one" } else { "" };
        format!("context {} is for {}{current}", context.name(), context.hub())
    }))
}

/// Checks that the new key and the context's saved keys belong to this hub.
fn check_hub(home: &Home, context: &Context, keys: Option<&KeyFile>) -> CliResult<()> {
    if let Some(hub) = keys.and_then(|keys| keys.hub.as_deref())
        && !home::is_same_hub(hub, context.hub())
    {
        let message = format!("that key is for {hub}, not for {}", context.hub());
        return Err(CliError::usage(message, format!("use --hub {hub}, or another key file")));
    }
    let Some(before) = Context::load(home, context.name())? else { return Ok(()) };
    let moves = !home::is_same_hub(before.hub(), context.hub());
    let has_keys =
        before.key_path().is_some_and(|path| path.exists()) || !before.agents()?.is_empty();
    if moves && has_keys {
        let message = format!("context {} holds keys for {}", before.name(), before.hub());
        return Err(CliError::conflict(message, "choose another name, or remove it first"));
    }
    Ok(())
}

fn use_context(json: bool, name: &str) -> CliResult {
    let context = Context::current(Some(name))?;
    Home::require()?.set_current(context.name())?;
    let document = if json { to_json(&context, true)? } else { Value::Null };
    Ok(output::print(json, document, || {
        format!("current context: {} at {}", context.name(), context.hub())
    }))
}

fn list(json: bool) -> CliResult {
    let home = Home::find();
    let mut contexts = home.as_ref().map(Home::contexts).transpose()?.unwrap_or_default();
    let chosen = home.as_ref().map(Home::current).transpose()?.flatten();
    let current = chosen.unwrap_or_else(|| DEFAULT.to_owned());
    if !contexts.iter().any(|one| one.name() == current) {
        // A removed context is left out; the implied default is included.
        contexts.extend(Context::current(Some(&current)).ok());
    }
    if json {
        let all = contexts.iter().map(|one| to_json(one, one.name() == current));
        let all: Vec<Value> = all.collect::<Result<_, _>>()?;
        return Ok(output::print_data(Value::from(all)));
    }
    let mut table = table();
    for one in &contexts {
        let mark = if one.name() == current { "*" } else { " " };
        let key = if one.load_key()?.is_some() { "yes" } else { "none" };
        table.push_row([mark, one.name(), one.hub(), key]);
    }
    Ok(table.print())
}

fn table() -> Table {
    Table::new([
        Column::text(""),
        Column::flexible("NAME"),
        Column::flexible("HUB"),
        Column::text("KEY"),
    ])
}

fn show(json: bool, name: Option<&str>) -> CliResult {
    // Without a name, the context that other commands would use.
    let context = match name {
        Some(_) => Context::current(name)?,
        None => HubOptions::from_environment().context()?,
    };
    let chosen = Context::current(None)?;
    if json {
        let document = to_json(&context, chosen.name() == context.name())?;
        return Ok(output::print_data(document));
    }
    let key = match context.load_key()? {
        _ if has_key_variable() => "in RIALTO_KEY, used instead of the context's key".to_owned(),
        None => "none; commands that need a key say how to get one".to_owned(),
        Some(me) => format!("of {}", me.agent_id.as_deref().map_or("?".to_owned(), escape_line)),
    };
    let agents = context.agents()?;
    let agents = if agents.is_empty() { "none".to_owned() } else { agents.join(", ") };
    let home = Home::find().map_or("none".to_owned(), |home| home.path().display().to_string());
    let saved = if context.is_saved() { "" } else { " (created when something is saved in it)" };
    let (name, hub, home) = (context.name(), context.hub(), escape_line(&home));
    Ok(output::print_data(format!(
        "name    {name}{saved}\nhub     {hub}\nkey     {key}\nagents  {agents}\nhome    {home}"
    )))
}

fn remove(json: bool, name: &str, force: bool) -> CliResult {
    home::check_name(name)?;
    let home = Home::require()?;
    let context = Context::load(&home, name)?.ok_or_else(|| unknown_context(name))?;
    let is_current = home.current()?.as_deref() == Some(context.name());
    let keys = key_owners(&context)?;
    let keys_text = match keys.as_slice() {
        [] => "no keys in it".to_owned(),
        keys => format!("the keys of {}", escape_line(&keys.join(", "))),
    };
    if is_current && !force {
        let message = format!("{name} is the current context, with {keys_text}");
        let next = "choose another with `rialto context use NAME`, or use --force";
        return Err(CliError::conflict(message, next));
    }
    if is_current {
        home.clear_current()?;
    }
    let path = home.directory_of(context.name());
    std::fs::remove_dir_all(&path).map_err(|error| home::write_error(&path, &error))?;
    Ok(output::print(json, json!({"removed": name, "keys": keys}), || {
        format!("context {name} removed, with {keys_text}")
    }))
}

/// The owners of the keys that are removed with a context.
fn key_owners(context: &Context) -> CliResult<Vec<String>> {
    // An unreadable key file is removed, too.
    let me = context.key_path().filter(|path| path.exists()).map(|_| {
        let me = context.load_key().ok().flatten();
        me.and_then(|me| me.agent_id).unwrap_or_else(|| "me".to_owned())
    });
    let mut keys: Vec<String> = me.into_iter().collect();
    for name in context.agents()? {
        if context.holds_key_of(&name)? {
            keys.push(name);
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::table::assert_fits;

    #[test]
    fn contexts_fit_a_terminal() {
        let mut table = table();
        let hub = "https://a-hub-behind-a-very-long-name.europe.example:7425/with/a/path";
        table.push_row(["*", &"x".repeat(64), hub, "none"]);
        assert_fits(&table, "NAME HUB KEY");
    }
}
