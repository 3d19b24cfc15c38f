//! `rialto job`: post jobs, work on them and follow them.

mod agent_name_cache;
mod cancel;
mod deadline;
mod follow;
mod json_input;
mod log;
mod logs;
mod ls;
mod offers;
mod post;
mod pretty;
mod progress;
mod show;
mod trace;
mod view;
mod wait;
mod watch;
mod work;

use clap::Subcommand;
use rialto_client::CallError;
use serde::Deserialize;

use super::error::CliError;
use super::hub_options::HubOptions;
use super::output;
use super::views::parse_json;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto job post --skill shout --input '{\"text\":\"hello\"}' --budget 0.10 --wait\n  rialto job ls --state live\n  rialto job watch f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n  rialto job submit f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --output '{\"text\":\"HELLO\"}' --as shout\n  rialto job trace f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --key-file alice.key"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    access: HubOptions,
}

#[derive(Subcommand)]
enum Verb {
    /// Post a job, and optionally wait for its result
    Post(post::Args),
    /// List your jobs
    Ls(ls::Args),
    /// Show one job with its input and output
    Show(show::Args),
    /// Follow a job until it ends
    Watch(watch::Args),
    /// Print the log of a job that ran on this machine
    Log(log::Args),
    /// List the offers for a job
    Offers(offers::Args),
    /// Accept an offer
    Accept(offers::AcceptArgs),
    /// Decline a job that was assigned to you
    Decline(work::DeclineArgs),
    /// Submit the result of a job that was assigned to you
    Submit(work::SubmitArgs),
    /// Cancel a job you posted
    Cancel(cancel::Args),
    /// Show how a job was translated between the two protocols, field by field
    Trace(trace::Args),
}

pub fn run(args: &Args) -> Exit {
    let access = &args.access;
    match &args.verb {
        Verb::Post(args) => access.run(post::run(access, args)),
        Verb::Ls(args) => access.run(ls::run(access, args)),
        Verb::Show(args) => access.run(show::run(access, args)),
        Verb::Watch(args) => access.run(watch::run(access, args)),
        Verb::Log(args) => access.run(log::run(access, args)),
        Verb::Offers(args) => access.run(offers::run(access, args)),
        Verb::Accept(args) => access.run(offers::accept(access, args)),
        Verb::Decline(args) => access.run(work::decline(access, args)),
        Verb::Submit(args) => access.run(work::submit(access, args)),
        Verb::Cancel(args) => access.run(cancel::run(access, args)),
        Verb::Trace(args) => access.run(trace::run(access, args)),
    }
}

/// The state of a job after a command.
#[derive(Deserialize)]
struct JobState {
    id: String,
    state: String,
}

impl JobState {
    /// Prints the hub's answer: as JSON, or the id and the state.
    fn print(access: &HubOptions, answer: &str) -> Result<Exit, CliError> {
        let shown = match access.json {
            true => answer.to_owned(),
            false => {
                let Self { id, state } = parse_json(answer)?;
                output::escape_line(&format!("{id} {state}"))
            }
        };
        let _ = output::print_line(&shown);
        Ok(Exit::Ok)
    }
}

/// Hint for a job id that was not found, for its requester,
const HINT_ASKED: &str = "`rialto job ls` lists your jobs, with --as NAME those of an agent";
/// for its worker,
const HINT_WORKED: &str =
    "`rialto job ls --worked` lists jobs you work on; --as NAME acts as an agent of this machine";
/// and for both.
const HINT_OWN: &str = "`rialto job ls` lists jobs you posted, with --worked jobs you work on, with --as NAME those of an agent";

/// The error for a job that the hub does not show or change.
fn job_error(error: CallError, where_to_look: &str) -> CliError {
    CliError::from(error).with_hint_on(Exit::NotFound, where_to_look)
}
