//! Command lines of tasks that run tests: what is asked for reaches the tests as environment.

use std::process::{Command, ExitCode};

use super::USAGE_ERROR;

/// An option with a value, and the environment variable that it becomes.
#[derive(Clone, Copy, Debug)]
pub struct ValueOption {
    pub name: &'static str,
    pub variable: &'static str,
    pub is_number: bool,
}

/// What a command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub env: Vec<(&'static str, String)>,
    flags: Vec<&'static str>,
}

impl Options {
    /// Reads options with a value, and flags without one.
    pub fn parse(
        words: &[String],
        values: &[ValueOption],
        flags: &[&'static str],
    ) -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if let Some(flag) = flags.iter().find(|flag| *flag == word) {
                options.flags.push(flag);
                continue;
            }
            let option = values.iter().find(|option| option.name == word);
            let option = option.ok_or_else(|| format!("unknown option `{word}`"))?;
            let value = words.next().ok_or_else(|| format!("`{word}` takes a value"))?;
            if option.is_number && value.parse::<u64>().is_err() {
                return Err(format!("`{word}` takes a number, not `{value}`"));
            }
            options.env.push((option.variable, value.clone()));
        }
        Ok(options)
    }

    pub fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }
}

/// Runs a task with its options. Shows how it is used if that is asked for, or if the command line
/// is wrong.
pub fn run_task(
    words: &[String],
    usage: &str,
    parse: impl FnOnce(&[String]) -> Result<Options, String>,
    run: impl FnOnce(Options) -> Command,
) -> ExitCode {
    if words.iter().any(|word| ["--help", "-h"].contains(&word.as_str())) {
        println!("{usage}");
        return ExitCode::SUCCESS;
    }
    let mut command = match parse(words) {
        Ok(options) => run(options),
        Err(wrong) => {
            eprintln!("xtask: {wrong}\n\n{usage}");
            return ExitCode::from(USAGE_ERROR);
        }
    };
    run_command(&mut command)
}

/// Runs a command to its end, and shows its output.
pub fn run_command(command: &mut Command) -> ExitCode {
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: cannot run {command:?}: {error}");
            ExitCode::FAILURE
        }
    }
}
