//! `rialto job watch`: follows a job until it ends.

use rialto_core::time::Millis;

use super::super::hub_options::Access;
use super::super::duration::length;
use super::super::error::Trouble;
use super::wait::Waiting;
use super::progress::Progress;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto job watch f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n  rialto job watch f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --timeout 10m --json\n\nPrints progress on standard error until the job ends, then its output as `rialto job post --wait`\ndoes. If the worker runs on this machine, new lines of its log are printed as well, each after\n`log: `."
)]
pub struct Args {
    /// Id of the job: the hub's, or your own
    id: String,
    /// How long to wait [default: until it ends]
    #[arg(long, value_name = "DURATION", value_parser = length)]
    timeout: Option<Millis>,
}

pub async fn run(access: &Access, args: &Args) -> Result<Exit, Trouble> {
    let (hub, _) = access.me()?;
    let progress = Some(Progress::with_logs());
    let waiting = Waiting { time: args.timeout, progress, hub_is_known: false };
    waiting.run(access, &hub, &args.id).await
}
