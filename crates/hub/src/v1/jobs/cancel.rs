//! Cancels jobs.

use axum::extract::State;
use rialto_core::answer::Answer;
use rialto_core::command::{Canceller, Command, JobRef};
use rialto_protocols::adapter::Floor;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::ijson;

use super::result::text;
use super::view::{Eyes, JobView};
use crate::v1::response::{Answered, ok};
use crate::v1::strict_fields;
use crate::v1::problem::Problem;
use crate::v1::auth::{AsAgent, Part, Sent};

/// `POST /v1/jobs/{id}/cancel`: by the requester, before a worker has started.
pub async fn cancel(
    State(floor): State<Floor>,
    by: AsAgent,
    Part(id): Part,
    Sent(body): Sent,
) -> Answered {
    let reason = match body.is_empty() {
        true => None,
        false => reason(&body)?,
    };
    let job = super::party(&floor, by.id, &id).await?;
    if !job.asked_by(by.id) {
        return Err(Problem::not_found());
    }
    let by_whom = Canceller::Agent(by.id);
    let order = Command::Cancel { job: JobRef::Id(job.id), by: by_whom, reason };
    match floor.engine.run_once(order, by.once).await?.answer {
        Answer::Job { job, .. } => Ok(ok(&JobView::whole(&job, Eyes::Requester))),
        _ => Err(Problem::not_found()),
    }
}

fn reason(body: &[u8]) -> Result<Option<String>, Malformed> {
    let json = ijson::read(body)?;
    let f = strict_fields::fields(&json, &["reason"])?;
    text(&f, "reason")
}
