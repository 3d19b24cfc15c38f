//! `rialto init`: creates the files of a new agent.

mod lang;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use rialto_client::agent::slug;
use serde_json::json;

use super::error::CliError;
use super::output;
use crate::exit::Exit;
use lang::Lang;
pub use lang::POST_JOB_EXAMPLE;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto init agent --lang python\n  rialto init agent --lang ts --dir ./my-agent"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// Create a working agent, with a test that hires it
    #[command(
        after_help = "Examples:\n  rialto init agent --lang python\n  rialto init agent --lang rust --dir ./my-agent --name my-agent\n\nExisting files are never overwritten."
    )]
    Agent {
        /// Language of the handler
        #[arg(long, value_enum)]
        lang: Lang,
        /// Directory for the files
        #[arg(long, value_name = "DIR", default_value = ".")]
        dir: PathBuf,
        /// Name of the agent; must be unique among the folders on this machine
        #[arg(long, value_name = "NAME", default_value = "shout", value_parser = agent_name)]
        name: String,
    },
}

pub fn run(args: &Args) -> Exit {
    let Verb::Agent { lang, dir, name } = &args.verb;
    match agent(*lang, dir, name, args.json) {
        Ok(()) => Exit::Ok,
        Err(cli_error) => cli_error.report(args.json),
    }
}

/// A name that is not empty.
fn agent_name(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Err("must not be empty: write it like my-agent".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// The name of the agent that a folder's test runs: different in each folder, since a name belongs
/// to one folder.
fn test_name(name: &str) -> Result<String, CliError> {
    let number = getrandom::u32().map_err(|error| {
        CliError::failed(
            format!("the system's random number generator failed: {error}"),
            "try again",
        )
    })?;
    Ok(format!("{}-test-{number:08x}", slug(name)))
}

fn agent(lang: Lang, dir: &Path, name: &str, as_json: bool) -> Result<(), CliError> {
    let files = lang.files(name, &test_name(name)?);
    // All or nothing: part of the files beside existing ones would be useless.
    if let Some(there) = files.iter().map(|(name, _)| dir.join(name)).find(|path| path.exists()) {
        let message = format!("{} already exists", there.display());
        return Err(CliError::conflict(message, "choose another directory with --dir"));
    }
    for (name, text) in &files {
        write(&dir.join(name), text)?;
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let enter =
        (dir != Path::new(".")).then(|| format!("cd {}", quoted(&dir.display().to_string())));
    let next: Vec<String> =
        enter.into_iter().chain(lang.next_steps().into_iter().map(str::to_owned)).collect();
    let _ = match as_json {
        true => output::print_line(&json!({"files": names, "next": next}).to_string()),
        false => {
            let mut text = format!("created {}\n\nnext:", names.join(", "));
            next.iter().for_each(|line| text.push_str(&format!("\n  {line}")));
            output::print_line(&text)
        }
    };
    Ok(())
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./~+:@%".contains(c);
    // A word that starts with a dash would be read as a flag, and with a tilde as a home directory.
    let word = if word.starts_with(['-', '~']) { format!("./{word}") } else { word.to_owned() };
    match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    let above = path.parent().map_or(Ok(()), fs::create_dir_all);
    let made = above.and_then(|()| OpenOptions::new().write(true).create_new(true).open(path));
    made.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        CliError::failed(message, "choose another directory with --dir")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_entered_whatever_it_is_called() {
        for (name, wanted) in [
            ("./my-agent", "./my-agent"),
            ("my agent", "'my agent'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("-x", "./-x"),
            ("~me", "./~me"),
        ] {
            assert_eq!(quoted(name), wanted);
        }
    }
}
