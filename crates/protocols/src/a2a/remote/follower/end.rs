//! The end of a job: the worker's result or refusal, or what the hub finds itself.

use std::pin::Pin;

use rialto_core::alias::Digest;
use rialto_core::command::{Command, OriginalReport, ReportResult};
use rialto_core::job::Cause;
use rialto_core::money::Credits;
use rialto_engine::delivery::JOB_RESPONSE_BYTES_MAX;

use super::report::{original_report, shortened, status_text};
use super::{COMMIT_PAUSE, FollowEnd, Follower, Step};
use crate::a2a::remote::client::{CallError, Meaning, RemoteError};
use crate::a2a::remote::handover_state::Outgoing;
use crate::a2a::remote::reported::text_of;
use crate::a2a::task_log::{self, TaskLog};
use crate::a2a::wire::content;
use crate::a2a::wire::message::Message;
use crate::a2a::wire::task::{Artifact, Task, TaskState};
use crate::a2a::{ID, extensions, original};
use crate::adapter::delivery_result::is_refusal_status;
use crate::kit::ijson::{self, JsonValue};

/// How often a result that no stream showed is asked for before what was shown is the result.
const RESULT_TRIES: u32 = 4;

/// A step that takes a step of the same kind.
type BoxedStep<'a> = Pin<Box<dyn Future<Output = Step> + Send + 'a>>;

impl Follower {
    /// The task was completed.
    pub(super) async fn complete(
        &mut self,
        message: Option<Message>,
        metadata: Option<String>,
        artifacts: Option<Vec<Artifact>>,
    ) -> Step {
        let needs_snapshot =
            artifacts.is_none() && (self.drops_reports || !self.reported.has_artifacts());
        if needs_snapshot && let Some(task) = self.completed_task(message.is_some()).await? {
            return self.take_last_task(task).await;
        }
        let is_logged = self.reported.has_artifacts() && !self.drops_reports;
        let artifacts = match is_logged {
            true => self.logged_artifacts().await?,
            false => artifacts.unwrap_or_default(),
        };
        let output = content::output_of_artifacts(&artifacts, message.as_ref());
        let is_same_protocol = self.job.request.origin == ID;
        let fits = output.len() <= JOB_RESPONSE_BYTES_MAX;
        if !fits && !is_same_protocol {
            let text = format!("the result has more than {JOB_RESPONSE_BYTES_MAX} bytes");
            return self.fail(Cause::Execution, &text).await;
        }
        let original = status_text(TaskState::Completed, message, metadata);
        // A requester of this protocol has the artifacts in the log.
        let result = self.result(true, None, None, fits.then_some(output));
        self.end(OriginalReport::Result(result), Some(original)).await
    }

    /// The task that an event has shown to be completed, as its server has it; `None` if the event
    /// has all there is.
    async fn completed_task(&mut self, has_message: bool) -> Step<Option<Task>> {
        for tries in 1.. {
            let may_come = match self.call_get_task().await {
                Ok(Some(task)) if task.status.state == TaskState::Completed => {
                    return Ok(Some(task));
                }
                // Its stream and its task differ.
                Ok(_) => self.drops_reports && tries < RESULT_TRIES,
                Err(error) => {
                    let is_enough = has_message && !self.drops_reports && tries >= RESULT_TRIES;
                    may_pass(&error) && !is_enough
                }
            };
            if !may_come {
                break;
            }
            self.rest().await?;
            self.renew_lease().await?;
        }
        if self.drops_reports {
            let text = "the agent's server does not have the result any more";
            self.fail(Cause::Execution, text).await?;
        }
        Ok(None)
    }

    /// Takes such a task.
    fn take_last_task(&mut self, task: Task) -> BoxedStep<'_> {
        Box::pin(self.take_task(task))
    }

    /// The artifacts that the log of the job has of this assignment, with the texts of their chunks
    /// joined.
    async fn logged_artifacts(&self) -> Step<Vec<Artifact>> {
        let log = TaskLog::load(&self.context.engine, &self.job, 0).await;
        let log = log.map_err(|_| FollowEnd::Interrupted)?;
        Ok(task_log::worker_artifacts(&log.entries, self.epoch, content::add_chunk))
    }

    /// A message instead of a task, or beside one.
    pub(super) async fn take_message(&mut self, message: Message) -> Step {
        if self.state.task.is_some() {
            return self.report_status(TaskState::Working, message, None).await;
        }
        if let Some(refused) = refusal_in(&message) {
            return self.take_refusal(&refused, &text_of(&message)).await;
        }
        let output = content::input_of(&message.parts);
        if output.len() > JOB_RESPONSE_BYTES_MAX {
            let text = format!("the result has more than {JOB_RESPONSE_BYTES_MAX} bytes");
            return self.fail(Cause::Execution, &text).await;
        }
        let result = self.result(true, None, None, Some(output));
        let original = original::write_message(&message);
        self.end(OriginalReport::Result(result), Some(original)).await
    }

    /// Another hub refuses the job by a message (D5).
    async fn take_refusal(&mut self, refused: &str, text: &str) -> Step {
        self.state.end(Outgoing::Request);
        match refused {
            "OFFLINE" | "AT_CAPACITY" | "OUT_OF_ORDER" => {
                let order = Command::MarkUnreachable { job: self.job.id, epoch: self.epoch };
                match self.context.engine.run(order).await {
                    Ok(_) => Err(FollowEnd::Away),
                    Err(_) => Err(FollowEnd::Interrupted),
                }
            }
            "INPUT_MISFIT" => self.fail(Cause::InputMisfit, text).await,
            _ => self.decline(text).await,
        }
    }

    pub(super) fn result(
        &self,
        ok: bool,
        cause: Option<Cause>,
        text: Option<String>,
        output: Option<String>,
    ) -> ReportResult {
        let outcome = [text.as_deref().unwrap_or_default(), output.as_deref().unwrap_or_default()];
        let content = Digest::of(&[&[u8::from(ok)], outcome[0].as_bytes(), outcome[1].as_bytes()]);
        ReportResult {
            job: self.job_ref(),
            by: self.agent,
            epoch: Some(self.epoch),
            ok,
            is_final: true,
            knows_work: true,
            no_response: false,
            output,
            cost: Credits::MAX,
            took: None,
            cause,
            text: text.map(|text| shortened(&text)),
            meta: None,
            content,
        }
    }

    /// Reports the end, which also ends the follower.
    pub(super) async fn end(&mut self, report: OriginalReport, original: Option<String>) -> Step {
        let command = match original {
            Some(original) => original_report(report, original),
            None => report.into(),
        };
        loop {
            match self.run_command(command.clone()).await {
                Err(FollowEnd::Gone) if self.is_ended_here() => return Err(FollowEnd::Done),
                Err(end) => return Err(end),
                Ok(Ok(())) => return Err(FollowEnd::Done),
                Ok(Err(refusal)) => {
                    tracing::warn!(job = %self.job.uuid, %refusal, "a result was refused");
                    tokio::time::sleep(COMMIT_PAUSE).await;
                    self.look_at_job()?;
                }
            }
        }
    }

    /// Whether the assignment ended with what the worker itself said.
    fn is_ended_here(&self) -> bool {
        let is_own = self.job.result.as_ref().is_some_and(|result| result.content.is_some());
        let declined = self.job.candidates.declined.contains(&self.agent);
        is_own || declined || self.job.epoch != self.epoch
    }

    /// Ends the job by a failure that the hub has found.
    pub(super) async fn fail(&mut self, cause: Cause, text: &str) -> Step {
        let result = self.result(false, Some(cause), Some(text.to_owned()), None);
        self.end_and_cancel(result).await
    }

    /// Ends the job, whose worker may still be at it.
    async fn end_and_cancel(&mut self, result: ReportResult) -> Step {
        let end = self.end(OriginalReport::Result(result), None).await;
        if end == Err(FollowEnd::Done) {
            self.cancel().await;
        }
        end
    }

    /// Ends the job because the server refused it.
    pub(super) async fn fail_refused(&mut self, refused: &RemoteError, text: &str) -> Step {
        let no_response = refused.code.is_none() && is_refusal_status(refused.status);
        let cause = Some(Cause::Execution);
        let result = self.result(false, cause, Some(text.to_owned()), None);
        self.end_and_cancel(ReportResult { no_response, ..result }).await
    }

    /// The worker declines.
    pub(super) async fn decline(&mut self, text: &str) -> Step {
        self.end_declined(text.to_owned(), None).await
    }

    pub(super) async fn end_declined(&mut self, text: String, original: Option<String>) -> Step {
        let report = OriginalReport::Decline {
            job: self.job_ref(),
            by: self.agent,
            epoch: Some(self.epoch),
            reason: Some(shortened(&text)),
        };
        self.end(report, original).await
    }
}

/// Whether a server that answers so may answer otherwise later.
fn may_pass(error: &CallError) -> bool {
    match error {
        CallError::Unreachable(_) | CallError::NoAnswer(_) => true,
        CallError::Refused(refused) => matches!(
            refused.meaning(),
            Meaning::Busy { .. } | Meaning::Away | Meaning::OtherVersion | Meaning::Failed
        ),
        CallError::Malformed(_) | CallError::TooLarge(_) => false,
    }
}

/// Why another hub refuses, if the message says so.
fn refusal_in(message: &Message) -> Option<String> {
    let hire = message.metadata_member(extensions::HIRE)?;
    let json = ijson::read(hire.as_bytes()).ok()?;
    match json.get("refused")?.value() {
        JsonValue::String(refused) => Some(refused.clone().into_owned()),
        _ => None,
    }
}
