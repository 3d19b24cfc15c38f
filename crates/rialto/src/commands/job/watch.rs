//! `rialto job watch`: follows a job until it ends.

use rialto_core::time::Millis;

use super::super::duration::parse_duration;
use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::progress::Progress;
use super::wait::JobWait;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto job watch f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n  rialto job watch f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --timeout 10m --json\n\nPrints progress on standard error until the job ends, then its output as `rialto job post --wait`\ndoes. If the worker runs on this machine, new lines of its log are printed as well, each after\n`log: `."
)]
pub struct Args {
    /// Id of the job: the hub's, or your own
    id: String,
    /// How long to wait [default: until it ends]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Millis>,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let (hub, _) = access.client_with_key()?;
    let progress = Some(Progress::with_logs());
    let waiting = JobWait { time: args.timeout, progress, hub_is_known: false };
    waiting.run(access, &hub, &args.id).await
}
