//! `rialto listen`: forwards an agent's notices to a program on this machine.
//!
//! The program is called the way the hub calls an endpoint, so that it can be developed and tested
//! where the hub cannot reach it. A notice is acknowledged once the program has accepted it. Until
//! then the next ones wait, so nothing is lost or reordered.

mod notice;
mod target;

use rialto_client::{Hub, NoticeStream};
use rialto_engine::delivery::signature::WebhookSecret;

use super::error::CliError;
use super::hub_options::HubOptions;
use super::key_file::KeyFile;
use super::output;
use super::views::CallerView;
use crate::exit::Exit;
use notice::ForwardedNotice;
use target::{DeliveryResult, Target};

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto listen --forward-to http://127.0.0.1:3000/hook\n  rialto listen --forward-to http://127.0.0.1:3000/hook --as shout\n  rialto listen --print | jq .kind\n\nEach notice is posted as the hub posts it to an endpoint: with the same path, bytes and headers,\nsigned by the Standard Webhooks rules with the agent's secret or that of --secret. Prints one line\nper notice: time, kind, status and job. A notice that endpoints do not get is not sent. A notice is\nretried until it is answered with a 2xx status, then acknowledged, then the next one follows.\n--print acknowledges nothing."
)]
pub struct Args {
    /// URL to post the notices to
    #[arg(long, value_name = "URL", required_unless_present = "print")]
    forward_to: Option<String>,
    /// Print the notices instead, one JSON document per line
    #[arg(long, conflicts_with = "forward_to")]
    print: bool,
    /// Sign with this secret, whsec_… [default: the agent's own]
    #[arg(long, env = "RIALTO_WEBHOOK_SECRET", hide_env_values = true, value_name = "SECRET", value_parser = secret)]
    secret: Option<WebhookSecret>,
    /// Stop after this many notices
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    access: HubOptions,
}

pub fn run(args: &Args) -> Exit {
    args.access.run(listen(args))
}

async fn listen(args: &Args) -> Result<Exit, CliError> {
    let (hub, KeyFile { webhook_secret: known, .. }) = args.access.client_with_key()?;
    let target = match &args.forward_to {
        Some(url) => {
            let target = Target::new(url, args.secret.clone())?;
            // Also checks that the key is valid.
            CallerView::fetch(&hub).await?;
            let secret = match (&args.secret, known) {
                (Some(secret), _) => secret.to_text(),
                (None, Some(known)) => known.reveal(),
                (None, None) => {
                    "the agent's own secret; `rialto webhook rotate` creates and shows a new one"
                        .to_owned()
                }
            };
            output::print_stderr(&format!(
                "forwarding to {}; signing with {secret}",
                output::escape_line(url)
            ));
            Some(target)
        }
        None => None,
    };
    let mut events = NoticeStream::open(&hub).await?;
    let mut count = 0;
    while args.count.is_none_or(|most| count < most) {
        let notice = ForwardedNotice::from(events.next().await?);
        let line = match &target {
            None => notice.data.clone(),
            Some(target) => {
                let status = deliver(&hub, target, &notice).await?;
                events.ack(notice.position).await?;
                notice.line(status, args.access.json)
            }
        };
        if output::print_line(&line).is_err() {
            // The reader has closed the pipe.
            return Ok(Exit::Ok);
        }
        count += 1;
    }
    Ok(Exit::Ok)
}

/// Posts a notice until it is accepted, however long that takes. Returns the status, or `None` for
/// a notice that endpoints do not get.
async fn deliver(
    hub: &Hub,
    target: &Target,
    notice: &ForwardedNotice,
) -> Result<Option<u16>, CliError> {
    let mut failures = 0;
    loop {
        let why = match target.post(hub, notice.position).await {
            Ok(None) => return Ok(None),
            Ok(Some(DeliveryResult::Accepted(status))) => return Ok(Some(status)),
            Ok(Some(DeliveryResult::Rejected(status))) => format!("answered {status}"),
            Ok(Some(DeliveryResult::NoAnswer(why))) => why,
            // The hub may come back; the notice stays unacknowledged until then.
            Err(error) if error.min_retry_delay().is_some() => error.to_string(),
            Err(error) => return Err(error.into()),
        };
        failures += 1;
        let pause = target::RETRY.delay(failures);
        let what = format!("{} {} not accepted: {why}", notice.kind, notice.position);
        let (what, seconds) = (output::escape_line(&what), pause.as_secs_f32());
        output::print_stderr(&format!("rialto: {what}; retrying in {seconds:.1} s"));
        tokio::time::sleep(pause).await;
    }
}

fn secret(text: &str) -> Result<WebhookSecret, String> {
    let wrong = || "must be whsec_ and the base64 of 24 to 64 bytes".to_owned();
    WebhookSecret::parse(text).ok_or_else(wrong)
}
