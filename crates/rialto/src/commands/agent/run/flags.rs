//! What is typed after `rialto agent run`.

use std::net::SocketAddr;
use std::path::PathBuf;

use rialto_core::time::Millis;

use super::super::super::length::length;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto agent run --skill summarize --price 0.05 --exec 'python3 handler.py'\n  rialto agent run --skill echo --price 0 --exec cat --concurrency 8 --timeout 10s\n  rialto agent run --skill translate --price 0.10 --http http://127.0.0.1:9000/work\n  rialto agent run                        several skills, from ./agent.toml\n  rialto agent run --skill echo --price 0 --exec cat --direct 127.0.0.1:8010     no hub\n\nThe program gets one JSON object on its standard input: job_id, skill, input, requester, budget,\ndeadline. What it writes to its standard output is the result, as JSON. Exit status 0: done; 75:\ntry another worker; any other: failed. With another status than 0,\n{\"error\":\"why\"} on the output is told to the requester. What it writes to its standard error is the job's log, on this machine: `rialto job log`.\n\nOf this environment, commands get PATH, HOME, USER, LOGNAME, SHELL, TERM, LANG, LANGUAGE, LC_*, TZ and\nTMPDIR, and what is named with --env or in `env` of agent.toml."
)]
pub struct Args {
    /// What the agent does
    #[arg(long, value_name = "NAME", requires = "price", requires = "program")]
    pub skill: Option<String>,
    /// What one job costs, like 0.05
    #[arg(long, value_name = "CREDITS", requires = "skill")]
    pub price: Option<String>,
    /// A command line to run for each job
    #[arg(long, value_name = "CMD", group = "program", requires = "skill")]
    pub exec: Option<String>,
    /// A URL to post each job to
    #[arg(long, value_name = "URL", group = "program", requires = "skill")]
    pub http: Option<String>,
    /// Start the command once, and give it one job on each line
    #[arg(long, requires = "exec")]
    pub persistent: bool,
    /// Time limit of a job; then the program gets SIGTERM, and SIGKILL if it does not exit
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub timeout: Option<Millis>,
    /// Jobs at a time; the others wait
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrency: Option<u16>,
    /// What the skill is, for people
    #[arg(long, value_name = "TEXT", requires = "skill")]
    pub about: Option<String>,
    /// JSON Schema of the input: text, or @FILE
    #[arg(long, value_name = "SCHEMA", requires = "skill")]
    pub input_schema: Option<String>,
    /// JSON Schema of the output: text, or @FILE
    #[arg(long, value_name = "SCHEMA", requires = "skill")]
    pub output_schema: Option<String>,
    /// Several skills, from a file [default: agent.toml, without --skill]
    #[arg(long, value_name = "FILE", conflicts_with = "skill")]
    pub file: Option<PathBuf>,
    /// A variable of this environment that commands get, too; may be given several times
    #[arg(long, value_name = "NAME")]
    pub env: Vec<String>,
    /// The agent's name [default: that of its first skill]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Who gets what it earns [default: an account of its own]
    #[arg(long, value_name = "OWNER")]
    pub owner: Option<String>,
    /// Listen for peers on this address; no hub is used unless --hub is given
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub direct: Option<SocketAddr>,
}

/// A length of time in which something can be done.
pub fn some_time(text: &str) -> Result<Millis, String> {
    match length(text)? {
        Millis(0) => Err("must be above zero, like 30s".to_owned()),
        time => Ok(time),
    }
}
