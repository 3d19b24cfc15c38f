//! `rialto job`: post jobs, work on them and follow them.

mod cancel;
mod deadline;
mod wait;
mod follow;
mod json_input;
mod log;
mod logs;
mod ls;
mod agent_name_cache;
mod offers;
mod post;
mod pretty;
mod progress;
mod show;
mod trace;
mod view;
mod watch;
mod work;

use clap::Subcommand;
use rialto_client::CallError;
use serde::Deserialize;

use super::hub_options::Access;
use super::output;
use super::error::Trouble;
use super::views::read;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto job post --skill shout --input '{\"text\":\"hello\"}' --budget 0.10 --wait\n  rialto job ls --state live\n  rialto job watch f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n  rialto job submit f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --output '{\"text\":\"HELLO\"}' --as shout\n  rialto job trace f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --key-file alice.key"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    access: Access,
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
struct Standing {
    id: String,
    state: String,
}

impl Standing {
    /// Prints the hub's answer: as JSON, or the id and the state.
    fn tell(access: &Access, answer: &str) -> Result<Exit, Trouble> {
        let shown = match access.json {
            true => answer.to_owned(),
            false => {
                let Self { id, state } = read(answer)?;
                output::one_line(&format!("{id} {state}"))
            }
        };
        let _ = output::line(&shown);
        Ok(Exit::Ok)
    }
}

/// Hint for a job id that was not found, for its requester,
const ASKED: &str = "`rialto job ls` lists your jobs, with --as NAME those of an agent";
/// for its worker,
const WORKED: &str =
    "`rialto job ls --worked` lists jobs you work on; --as NAME acts as an agent of this machine";
/// and for both.
const YOURS: &str = "`rialto job ls` lists jobs you posted, with --worked jobs you work on, with --as NAME those of an agent";

/// The error for a job that the hub does not show or change.
fn refused(error: CallError, where_to_look: &str) -> Trouble {
    Trouble::from(error).on(Exit::NotFound, where_to_look)
}
