//! `rialto job watch`.

use rialto_core::time::Millis;

use super::super::access::Access;
use super::super::length::length;
use super::super::trouble::Trouble;
use super::end::Waiting;
use super::progress::Progress;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto job watch f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n  rialto job watch f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --timeout 10m --json\n\nTells on standard error what happens to the job until it ends, then prints its output as\n`rialto job post --wait` does. If its worker runs on this machine, new lines of its log are told\nas well, each with `log: ` in front."
)]
pub struct Args {
    /// The hub's id of the job, or your own
    id: String,
    /// How long to wait [default: until it ends]
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    timeout: Option<Millis>,
}

pub async fn run(access: &Access, args: &Args) -> Result<Exit, Trouble> {
    let (hub, _) = access.me()?;
    let progress = Some(Progress::with_logs());
    let waiting = Waiting { time: args.timeout, progress, hub_is_known: false };
    waiting.run(access, &hub, &args.id).await
}
