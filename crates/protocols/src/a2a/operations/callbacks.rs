//! What servers of agents push about their tasks.

use axum::extract::State;
use axum::response::Response;
use rialto_core::command::{Command, HandoverStage, JobRef, RecordHandover};
use rialto_core::refusal::Refusal;
use rialto_engine::Failure;

use crate::a2a::A2aContext;
use crate::a2a::errors::{self, http_response, json_response};
use crate::a2a::remote::callback::CallbackToken;
use crate::a2a::wire::error::{A2aError, Reason};
use crate::adapter::request::{BodyBytes, PathParam};

/// `POST /a2a/callbacks/{token}`: there is news of a task. What it says is asked at its server, so
/// the body is not read (R104).
pub async fn push(
    State(context): State<A2aContext>,
    PathParam(text): PathParam,
    _: BodyBytes,
) -> Response {
    match try_push(&context, &text).await {
        Ok(()) => json_response(200, "{}".to_owned()),
        Err(error) => http_response(&error),
    }
}

async fn try_push(context: &A2aContext, text: &str) -> Result<(), A2aError> {
    let missing = || A2aError::new(Reason::NotFound, "no job has this callback URL");
    let engine = &context.engine;
    let token = CallbackToken::read(engine.hub_secret(), text).ok_or_else(missing)?;
    let found = engine.find_job(&JobRef::Uuid(token.job)).await;
    let job = found.map_err(|failure| errors::from_engine(&failure))?.ok_or_else(missing)?;
    if job.epoch != token.epoch || !job.state.is_assigned() {
        // Late news of a job that is over changes nothing.
        return Ok(());
    }
    if let Some(wake) = context.state.followers.get(job.id) {
        wake.push();
        return Ok(());
    }
    let Some(by) = job.worker().filter(|_| !engine.is_writer()) else { return Ok(()) };
    // The follower is at another node and sees that the job has changed.
    let order = RecordHandover {
        job: JobRef::Id(job.id),
        by,
        epoch: token.epoch,
        state: None,
        stage: HandoverStage::Received,
        conversation: None,
    };
    match engine.run(Command::RecordHandover(Box::new(order))).await {
        Ok(_)
        | Err(Failure::Refused(
            Refusal::NotFound | Refusal::WrongState { .. } | Refusal::OtherAssignment { .. },
        )) => Ok(()),
        Err(failure) => Err(errors::from_engine(&failure)),
    }
}
