//! `rialto init`: creates the files of a new agent.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use rialto_client::agent::slug;
use serde_json::json;

use super::{CliError, CliResult, Exit, output};

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
    /// Create a working agent, with a test that hires it
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
        /// A program for `rialto agent run`, which needs no package; sh and rust are always that
        #[arg(long)]
        plain: bool,
    },
}

pub fn run(args: &Args) -> Exit {
    let Verb::Agent { lang, dir, name, plain } = &args.verb;
    let template = Template { lang: *lang, has_package: lang.has_package() && !plain };
    let done = create_agent(template, dir, name, args.json);
    done.unwrap_or_else(|cli_error| cli_error.report(args.json))
}

/// A name that is not empty.
fn agent_name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("must not be empty: write it like my-agent".to_owned());
    }
    Ok(text.to_owned())
}

/// The name of the agent that a folder's test runs: different in each folder, since a name belongs
/// to one folder.
fn test_name(name: &str) -> CliResult<String> {
    let number = getrandom::u32().map_err(|error| CliError::no_randomness(error, "try again"))?;
    Ok(format!("{}-test-{number:08x}", slug(name)))
}

fn create_agent(template: Template, dir: &Path, name: &str, as_json: bool) -> CliResult {
    let files = template.files(name, &test_name(name)?);
    // All or nothing: part of the files beside existing ones would be useless.
    if let Some(existing) = files.iter().map(|(name, _)| dir.join(name)).find(|path| path.exists())
    {
        let message = format!("{} already exists", existing.display());
        return Err(CliError::conflict(message, "choose another directory with --dir"));
    }
    for (name, text) in &files {
        write(&dir.join(name), text)?;
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let enter =
        (dir != Path::new(".")).then(|| format!("cd {}", quoted(&dir.display().to_string())));
    let next: Vec<String> =
        enter.into_iter().chain(template.next_steps().into_iter().map(str::to_owned)).collect();
    Ok(output::print(as_json, json!({"files": names, "next": next}), || {
        format!("created {}\n\nnext:\n  {}", names.join(", "), next.join("\n  "))
    }))
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./~+:@%".contains(c);
    // A word that starts with a dash would be read as a flag, and with a tilde as a home directory.
    let word = if word.starts_with(['-', '~']) { format!("./{word}") } else { word.to_owned() };
    if !word.is_empty() && word.chars().all(plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn write(path: &Path, text: &str) -> CliResult<()> {
    let above = path.parent().map_or(Ok(()), fs::create_dir_all);
    let made = above.and_then(|()| OpenOptions::new().write(true).create_new(true).open(path));
    made.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        CliError::failed(message, "choose another directory with --dir")
    })
}

/// A language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Lang {
    Python,
    Ts,
    Sh,
    Rust,
}

/// The template of the file with the agent's skills.
const AGENT: &str = include_str!("init/agent.toml.txt");
/// The command that hires the new agent.
pub const POST_JOB_EXAMPLE: &str =
    r#"rialto job post --skill shout --input '{"text":"hello"}' --budget 0.10 --wait"#;

/// What is created.
#[derive(Clone, Copy)]
struct Template {
    lang: Lang,
    /// Whether the program is an agent by itself, with the package of its language.
    has_package: bool,
}

impl Lang {
    /// Whether there is a package with which a program is an agent by itself.
    fn has_package(self) -> bool {
        matches!(self, Self::Python)
    }
}

impl Template {
    /// The files. The agent is called `name`, and the one its test runs `test`.
    fn files(self, name: &str, test: &str) -> Vec<(&'static str, String)> {
        // A JSON string is also one of TOML and of Python.
        let quoted = serde_json::Value::from(name).to_string();
        let own: &[(&'static str, &str)] = match self.lang {
            Lang::Python if self.has_package => &[
                ("agent.py", include_str!("init/python/agent.py")),
                ("test_agent.py", include_str!("init/python/test_agent.py")),
                ("requirements.txt", include_str!("init/python/requirements.txt")),
            ],
            Lang::Python => &[
                ("handler.py", include_str!("init/plain/python/handler.py")),
                ("test_agent.py", include_str!("init/plain/python/test_agent.py")),
            ],
            Lang::Ts => &[
                ("handler.ts", include_str!("init/ts/handler.ts")),
                ("agent.test.ts", include_str!("init/ts/agent.test.ts")),
                ("package.json", include_str!("init/ts/package.json")),
                ("tsconfig.json", include_str!("init/ts/tsconfig.json")),
                (".gitignore", "node_modules/\ndist/\n"),
            ],
            Lang::Sh => &[
                ("handler.sh", include_str!("init/sh/handler.sh")),
                ("test.sh", include_str!("init/sh/test.sh")),
            ],
            Lang::Rust => &[
                ("src/main.rs", include_str!("init/rust/main.rs")),
                ("tests/agent.rs", include_str!("init/rust/agent.rs")),
                ("Cargo.toml", include_str!("init/rust/Cargo.toml.txt")),
                (".gitignore", "/target\n"),
            ],
        };
        let file = (!self.has_package).then(|| {
            ("agent.toml", AGENT.replace("{exec}", self.program()).replace("{name}", &quoted))
        });
        let own = own.iter().map(|(file, text)| {
            (
                *file,
                text.replace("shout-test", test)
                    .replace("Agent({name}", &format!("Agent({quoted}")),
            )
        });
        file.into_iter().chain(own).collect()
    }

    /// The command that runs the agent, or its handler.
    fn program(self) -> &'static str {
        match self.lang {
            Lang::Python if self.has_package => "python3 agent.py",
            Lang::Python => "python3 handler.py",
            Lang::Ts => "node dist/handler.js",
            Lang::Sh => "sh handler.sh",
            Lang::Rust => "target/debug/shout-agent",
        }
    }

    /// The next commands to type.
    fn next_steps(self) -> Vec<&'static str> {
        let build: &[&str] = match self.lang {
            Lang::Python if self.has_package => &["pip install -r requirements.txt"],
            Lang::Python | Lang::Sh => &[],
            Lang::Ts => &["npm install", "npm run build"],
            Lang::Rust => &["cargo build"],
        };
        let run = if self.has_package { self.program() } else { "rialto agent run" };
        [build, &[run, POST_JOB_EXAMPLE], &[self.test()]].concat()
    }

    fn test(self) -> &'static str {
        match self.lang {
            Lang::Python => "python3 test_agent.py",
            Lang::Ts => "npm test",
            Lang::Sh => "sh test.sh",
            Lang::Rust => "cargo test",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_entered_whatever_it_is_called() {
        for (name, expected) in [
            ("./my-agent", "./my-agent"),
            ("my agent", "'my agent'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("-x", "./-x"),
            ("~me", "./~me"),
        ] {
            assert_eq!(quoted(name), expected);
        }
    }
}
