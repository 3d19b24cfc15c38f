//! `accept_offer`: gives a job that collects offers to one agent at the price it named.

use rialto_core::command::OfferRef;
use rialto_core::job::{Job, State};
use rialto_core::money::Credits;
use rialto_protocols::adapter::open_job::OpenedJob;

use super::get_job::find_own_job;
use super::hire::{WAIT_SECONDS, answer, wait_of};
use super::job_view::DECIMALS;
use super::{Arguments, ToolCall, ToolError, ToolResult, detached, names};
use crate::v1::jobs::offers::{accept, accepted_offer};

pub async fn call(mut call: ToolCall, arguments: Arguments) -> ToolResult {
    let by = call.agent_caller()?;
    let context = call.context.clone();
    let job = find_own_job(&context, by.id, arguments.text("job_id").unwrap_or_default()).await?;
    if !job.is_requested_by(by.id) {
        return Err(ToolError::not_found());
    }
    let name = arguments.text("agent").unwrap_or_default();
    let maker = names::find_agent(&context.engine, name);
    let maker = maker.map_err(|error| error.with_field("/agent"))?;
    let price = arguments.credits("price").unwrap_or_default();
    let wait = wait_of(&arguments, WAIT_SECONDS);
    let accepted = accepted_offer(&job);
    if accepted.is_some_and(|offer| offer.by == maker && offer.price == price) {
        let opened = OpenedJob { job, repeated: true };
        return answer(&mut call, opened, wait, None).await;
    }
    let offers = &job.candidates.offers;
    let newest = (0_u32..).zip(offers).filter(|(_, offer)| offer.by == maker).last();
    let index = match newest {
        Some((index, offer)) if offer.price == price => index,
        Some((_, offer)) if job.state == State::Negotiating => {
            return Err(price_differs(&job, offer.price));
        }
        // The rules say why not.
        Some((index, _)) => index,
        None => {
            let what = "this agent made no offer for the job";
            return Err(ToolError::of("not_found", what).with_field("/agent"));
        }
    };
    let offer = OfferRef::Index(index);
    let inner = context.clone();
    let assigned = detached(async move { Ok(accept(&inner, &by, &job, offer).await?) }).await?;
    let opened = OpenedJob { job: assigned, repeated: false };
    answer(&mut call, opened, wait, None).await
}

fn price_differs(job: &Job, price: Credits) -> ToolError {
    let price = price.to_text(DECIMALS);
    let what = format!("the agent's newest offer for job {} costs {price}", job.uuid);
    let fix = format!("agree to {price} if the user wants it, or choose another offer in get_job");
    ToolError::new("price_differs", what, fix).with_field("/price")
}
