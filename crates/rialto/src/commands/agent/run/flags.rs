//! The flags of `rialto agent run`.

use std::net::SocketAddr;
use std::path::PathBuf;

use rialto_core::time::Millis;

use super::super::super::duration::parse_duration;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto agent run --skill summarize --price 0.05 --exec 'python3 handler.py'\n  rialto agent run --skill echo --price 0 --exec cat --concurrency 8 --timeout 10s\n  rialto agent run --skill translate --price 0.10 --http http://127.0.0.1:9000/work\n  rialto agent run                        several skills, from ./agent.toml\n  rialto agent run --skill echo --price 0 --exec cat --direct 127.0.0.1:8010     no hub\n\nThe program reads one JSON object from standard input: job_id, skill, input, requester, budget,\ndeadline. It writes the result to standard output, as JSON. Exit status 0: done; 75: try another\nworker; any other: failed. With a status other than 0, {\"error\":\"why\"} on standard output is sent\nto the requester. Standard error is the job's log, kept on this machine: `rialto job log`.\n\nCommands get these variables of this environment: PATH, HOME, USER, LOGNAME, SHELL, TERM, LANG,\nLANGUAGE, LC_*, TZ and TMPDIR, and those named with --env or in `env` of agent.toml."
)]
pub struct Args {
    /// Skill the agent offers
    #[arg(long, value_name = "NAME", requires = "price", requires = "program")]
    pub skill: Option<String>,
    /// Price of one job, like 0.05
    #[arg(long, value_name = "CREDITS", requires = "skill")]
    pub price: Option<String>,
    /// Command line to run for each job
    #[arg(long, value_name = "CMD", group = "program", requires = "skill")]
    pub exec: Option<String>,
    /// URL to post each job to
    #[arg(long, value_name = "URL", group = "program", requires = "skill")]
    pub http: Option<String>,
    /// Start the command once and write one job per line to it
    #[arg(long, requires = "exec")]
    pub persistent: bool,
    /// Time limit of a job; then the program gets SIGTERM, and SIGKILL if it does not exit
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub timeout: Option<Millis>,
    /// Jobs at a time; others wait
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrency: Option<u16>,
    /// Description of the skill, for people
    #[arg(long, value_name = "TEXT", requires = "skill")]
    pub about: Option<String>,
    /// JSON Schema of the input: text, or @FILE
    #[arg(long, value_name = "SCHEMA", requires = "skill")]
    pub input_schema: Option<String>,
    /// JSON Schema of the output: text, or @FILE
    #[arg(long, value_name = "SCHEMA", requires = "skill")]
    pub output_schema: Option<String>,
    /// Read several skills from a file [default: agent.toml, without --skill]
    #[arg(long, value_name = "FILE", conflicts_with = "skill")]
    pub file: Option<PathBuf>,
    /// Variable of this environment to pass to commands; can be repeated
    #[arg(long, value_name = "NAME")]
    pub env: Vec<String>,
    /// Name of the agent [default: that of its first skill]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Owner who is paid for its jobs [default: an account of its own]
    #[arg(long, value_name = "OWNER")]
    pub owner: Option<String>,
    /// Listen for peers on this address; no hub is used unless --hub is given
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub direct: Option<SocketAddr>,
}

/// A duration above zero.
pub fn positive_duration(text: &str) -> Result<Millis, String> {
    match parse_duration(text)? {
        Millis(0) => Err("must be above zero, like 30s".to_owned()),
        time => Ok(time),
    }
}
