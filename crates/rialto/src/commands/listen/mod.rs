//! `rialto listen`: an agent's notices, brought to a program on this machine.
//!
//! The program is called the way the hub calls an endpoint, so that it can be written and tried
//! where the hub cannot reach it. A notice is acknowledged once the program took it; until then the
//! others wait, so nothing is lost and nothing comes out of order.

mod notice;
mod target;

use rialto_client::{Events, Hub};
use rialto_engine::delivery::signature::WebhookSecret;
use rialto_engine::ids::{Ids, OsIds};

use super::access::Access;
use super::key_file::KeyFile;
use super::say;
use super::trouble::Trouble;
use super::views::Me;
use crate::exit::Exit;
use notice::Told;
use target::{Answer, Target};

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto listen --forward-to http://127.0.0.1:3000/hook\n  rialto listen --forward-to http://127.0.0.1:3000/hook --as shout\n  rialto listen --print | jq .kind\n\nEach notice is posted as it is, signed by the Standard Webhooks rules with the secret that is shown\nat the start: that of the key file if it has one. One line for each that was taken: time, kind,\nstatus, and the job it is about. What is not answered with a 2xx status is sent again until it is;\nonly then it is acknowledged and the next one follows. --print acknowledges nothing."
)]
pub struct Args {
    /// Where to post the notices
    #[arg(long, value_name = "URL", required_unless_present = "print")]
    forward_to: Option<String>,
    /// Print the notices instead, one document per line
    #[arg(long, conflicts_with = "forward_to")]
    print: bool,
    /// Sign with this secret, whsec_… [default: that of the key file, or a new one]
    #[arg(long, env = "RIALTO_WEBHOOK_SECRET", hide_env_values = true, value_name = "SECRET", value_parser = secret)]
    secret: Option<WebhookSecret>,
    /// End after so many notices
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    access: Access,
}

pub fn run(args: &Args) -> Exit {
    args.access.run(listen(args))
}

async fn listen(args: &Args) -> Result<Exit, Trouble> {
    let (hub, KeyFile { webhook_secret: known, .. }) = args.access.me()?;
    let target = match &args.forward_to {
        Some(url) => {
            let known = known.and_then(|secret| WebhookSecret::read(&secret.reveal()));
            let secret = args.secret.clone().or(known).unwrap_or_else(fresh);
            let agent = whose(&hub).await?;
            let target = Target::new(url, agent, secret)?;
            let (to, secret) = (say::one_line(url), target.secret());
            say::aside(&format!("forwarding to {to}; signing with {secret}"));
            Some(target)
        }
        None => None,
    };
    let mut events = Events::open(&hub).await?;
    let mut count = 0;
    while args.count.is_none_or(|most| count < most) {
        let notice = Told::from(events.next().await?);
        let line = match &target {
            None => notice.data.clone(),
            Some(target) => {
                let status = deliver(target, &notice).await;
                events.ack(notice.position).await?;
                notice.line(status, args.access.json)
            }
        };
        if say::line(&line).is_err() {
            // Nobody reads any more.
            return Ok(Exit::Ok);
        }
        count += 1;
    }
    Ok(Exit::Ok)
}

/// Posts a notice until it is taken, however long that takes.
async fn deliver(target: &Target, notice: &Told) -> u16 {
    let mut failures = 0;
    loop {
        let why = match target.post(notice).await {
            Answer::Taken(status) => return status,
            Answer::Refused(status) => format!("answered {status}"),
            Answer::Nothing(why) => why,
        };
        failures += 1;
        let pause = target::PATIENCE.pause(failures);
        let what = format!("{} {} not taken: {why}", notice.kind, notice.position);
        let (what, seconds) = (say::one_line(&what), pause.as_secs_f32());
        say::aside(&format!("rialto: {what}; again in {seconds:.1} s"));
        tokio::time::sleep(pause).await;
    }
}

/// Our number of the agent whose inbox it is; also finds out whether the key is good.
async fn whose(hub: &Hub) -> Result<u64, Trouble> {
    Ok(Me::ask(hub).await?.agent.id)
}

fn fresh() -> WebhookSecret {
    let mut bytes = [0; 32];
    OsIds.fill(&mut bytes);
    WebhookSecret::new(bytes)
}

fn secret(text: &str) -> Result<WebhookSecret, String> {
    let wrong = || "must be whsec_ and the base64 of 24 to 64 bytes".to_owned();
    WebhookSecret::read(text).ok_or_else(wrong)
}
