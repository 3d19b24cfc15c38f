//! Reporting: what the events of a worker's task mean for the job (2.5, R98).

use std::time::Duration;

use rialto_core::command::{
    AskQuestion, Command, HandoverStage, OriginalReport, ReportOriginal, ReportProgress,
};
use rialto_core::job::progress::{ProgressUpdate, ResultPart};
use rialto_core::job::{Cause, State};
use rialto_core::refusal::Refusal;

use super::{COMMIT_PAUSE, Follower, Step};
use crate::a2a::ID;
use crate::a2a::original::{self, ArtifactExtras};
use crate::a2a::remote::handover_state::Outgoing;
use crate::a2a::remote::reported::{Missing, text_of};
use crate::a2a::wire::message::Message;
use crate::a2a::wire::task::{
    Artifact, ArtifactUpdate, StatusUpdate, StreamEvent, Task, TaskState, TaskStatus,
};

/// The most artifacts of a task (R29).
const ARTIFACTS_MAX: usize = 256;
/// The longest id of a worker's task or context, in bytes.
const ID_BYTES_MAX: usize = 1_024;
/// The longest text of a question or reason, in characters.
const TEXT_MAX: usize = 8_192;
/// How long a task may show a question after its answer arrived before it asks the same again.
const OLD_QUESTION: Duration = Duration::from_secs(3);
/// The id of an artifact that has none.
const UNNAMED: &str = "result";

/// The task and the context that an event is about.
pub fn ids_of(event: &StreamEvent) -> Option<(String, String)> {
    match event {
        StreamEvent::Task(task) => Some((task.id.clone(), task.context_id.clone())),
        StreamEvent::Status(update) => Some((update.task_id.clone(), update.context_id.clone())),
        StreamEvent::Artifact(update) => Some((update.task_id.clone(), update.context_id.clone())),
        StreamEvent::Message(_) => None,
    }
}

/// The state that an event shows.
fn state_of(event: &StreamEvent) -> Option<TaskState> {
    match event {
        StreamEvent::Task(task) => Some(task.status.state),
        StreamEvent::Status(update) => Some(update.status.state),
        StreamEvent::Artifact(_) => Some(TaskState::Working),
        StreamEvent::Message(_) => None,
    }
}

impl Follower {
    /// Reports an event of a stream that began with a message of the hub.
    pub(super) async fn take_event(&mut self, event: StreamEvent) -> Step {
        if let Some((task, context)) = ids_of(&event) {
            match &self.state.task {
                None => self.adopt(task, context, state_of(&event)).await?,
                // Events of other tasks are ignored (R103).
                Some(known) if *known != task => return Ok(()),
                Some(_) => {}
            }
        }
        match event {
            StreamEvent::Task(task) => self.take_task(*task).await,
            StreamEvent::Message(message) => self.take_message(*message).await,
            StreamEvent::Status(update) => {
                let StatusUpdate { status, metadata, .. } = *update;
                let known = status.message.as_ref();
                let is_new = known.is_none_or(|message| !self.reported.has_message(message));
                self.take_status(status, metadata, is_new, None).await
            }
            StreamEvent::Artifact(update) => self.take_artifact(*update).await,
        }
    }

    /// Records the ids of the worker's task, before anything of it is reported.
    async fn adopt(&mut self, task: String, context: String, state: Option<TaskState>) -> Step {
        if task.is_empty() || task.len() > ID_BYTES_MAX || context.len() > ID_BYTES_MAX {
            return self.fail(Cause::Execution, "the agent's task has no usable id").await;
        }
        self.state.task = Some(task);
        self.state.context = Some(context).filter(|id| !id.is_empty());
        self.state.end(Outgoing::Request);
        let works = state.is_some_and(|state| state != TaskState::Submitted);
        self.record(if works { HandoverStage::Working } else { HandoverStage::Received }).await
    }

    /// Reports what of a snapshot was not reported.
    pub(super) async fn take_task(&mut self, task: Task) -> Step {
        self.is_over = task.status.state.is_terminal();
        if self.state.task.is_none() {
            self.adopt(task.id.clone(), task.context_id.clone(), Some(task.status.state)).await?;
        }
        let missing: Vec<Message> =
            self.reported.missing_messages(&task).into_iter().cloned().collect();
        for message in missing {
            self.report_status(TaskState::Working, message, None).await?;
        }
        if task.artifacts.len() > ARTIFACTS_MAX {
            let text = format!("the agent's task has more than {ARTIFACTS_MAX} artifacts");
            return self.fail(Cause::Execution, &text).await;
        }
        // A result that comes whole is reported as one, unless its requester gets its artifacts
        // as they are.
        let state = task.status.state;
        let is_one =
            state.is_terminal() && !self.reported.has_artifacts() && self.job.request.origin != ID;
        if !is_one {
            for artifact in &task.artifacts {
                self.take_whole_artifact(artifact).await?;
            }
        }
        let is_new = self.reported.is_new_status(&task);
        let Task { artifacts, status, metadata, .. } = task;
        // That of the task is shown at its end.
        let metadata = metadata.filter(|_| state.is_terminal());
        self.take_status(status, metadata, is_new, Some(artifacts)).await
    }

    /// Reports what of an artifact was not reported.
    async fn take_whole_artifact(&mut self, artifact: &Artifact) -> Step {
        if is_nothing(artifact) {
            return Ok(());
        }
        let artifact = named(artifact.clone());
        let extras = ArtifactExtras::default();
        match self.reported.missing(&artifact) {
            Missing::Nothing => Ok(()),
            Missing::Whole => self.report_artifact(artifact, false, &extras).await,
            Missing::Rest(parts) => {
                // A requester of this protocol gets them at once. For others each is a piece, as it
                // was when it came, so that texts continue each other.
                if self.job.request.origin != ID {
                    for part in parts {
                        let piece = Artifact { parts: vec![part], ..artifact.clone() };
                        self.report_artifact(piece, true, &extras).await?;
                    }
                    return Ok(());
                }
                let rest = Artifact { parts, ..artifact };
                self.report_artifact(rest, true, &extras).await
            }
        }
    }

    async fn take_artifact(&mut self, update: ArtifactUpdate) -> Step {
        if is_nothing(&update.artifact) {
            return Ok(());
        }
        let extras = ArtifactExtras::of(&update);
        let artifact = named(update.artifact);
        let append = update.append && self.reported.has_artifact(&artifact.artifact_id);
        self.report_artifact(artifact, append, &extras).await
    }

    async fn report_artifact(
        &mut self,
        artifact: Artifact,
        append: bool,
        extras: &ArtifactExtras,
    ) -> Step {
        let content = artifact.write(crate::a2a::wire::Version::V1);
        let part = Some(ResultPart { content, append });
        let update = ProgressUpdate { part, ..ProgressUpdate::default() };
        self.report_progress(update, extras.write()).await?;
        self.reported.add_artifact(&artifact, append);
        Ok(())
    }

    /// Reports a status message.
    pub(super) async fn report_status(
        &mut self,
        state: TaskState,
        message: Message,
        metadata: Option<String>,
    ) -> Step {
        let text = Some(text_of(&message)).filter(|text| !text.is_empty());
        let update = ProgressUpdate { text, ..ProgressUpdate::default() };
        let original = status_text(state, Some(message.clone()), metadata);
        self.report_progress(update, original).await?;
        self.reported.add_message(&message);
        Ok(())
    }

    /// Reports what a status says without a message, which only requesters of this protocol read.
    async fn report_metadata(&mut self, state: TaskState, metadata: String) -> Step {
        if self.job.request.origin != ID {
            return Ok(());
        }
        let original = status_text(state, None, Some(metadata));
        self.report_progress(ProgressUpdate::default(), original).await
    }

    /// Reports a text of the hub about the work.
    pub(super) async fn report_text(&mut self, text: &str) -> Step {
        let text = Some(text.to_owned());
        let update = ProgressUpdate { text, ..ProgressUpdate::default() };
        let order = self.progress(update);
        self.run_report(Command::ReportProgress(Box::new(order))).await
    }

    fn progress(&self, update: ProgressUpdate) -> ReportProgress {
        ReportProgress { job: self.job_ref(), by: self.agent, epoch: Some(self.epoch), update }
    }

    async fn report_progress(&mut self, update: ProgressUpdate, original: String) -> Step {
        if self.drops_reports {
            return Ok(());
        }
        let report = OriginalReport::Progress(self.progress(update));
        self.run_report(original_report(report, original)).await
    }

    /// Runs a report. One that the requester has no room for is dropped; the result has it all.
    async fn run_report(&mut self, command: Command) -> Step {
        loop {
            match self.run_command(command.clone()).await? {
                Ok(()) => return Ok(()),
                Err(Refusal::InboxFull) => {
                    self.drops_reports = true;
                    return Ok(());
                }
                Err(Refusal::MemoryFull { .. }) => {
                    tokio::time::sleep(COMMIT_PAUSE).await;
                    self.look_at_job()?;
                }
                Err(refusal) => {
                    let text = format!("the agent reports too much: {refusal}");
                    return self.fail(Cause::Execution, &text).await;
                }
            }
        }
    }

    /// What a status means. `artifacts` are those of a snapshot.
    async fn take_status(
        &mut self,
        status: TaskStatus,
        metadata: Option<String>,
        is_new: bool,
        artifacts: Option<Vec<Artifact>>,
    ) -> Step {
        let TaskStatus { state, message, .. } = status;
        self.is_over = state.is_terminal();
        match state {
            TaskState::Submitted | TaskState::Working => {
                if state == TaskState::Working && self.goes_on() {
                    self.record(HandoverStage::Working).await?;
                }
                self.has_gone_on |= self.has_all_answers();
                match (message.filter(|_| is_new), metadata) {
                    (Some(message), metadata) => self.report_status(state, message, metadata).await,
                    (None, Some(metadata)) => self.report_metadata(state, metadata).await,
                    (None, None) => Ok(()),
                }
            }
            TaskState::InputRequired | TaskState::AuthRequired => {
                let signs_in = state == TaskState::AuthRequired;
                if !signs_in && self.signs_in() {
                    // It goes on without the sign-in.
                    self.record(HandoverStage::Working).await?;
                    self.has_gone_on = true;
                }
                // A snapshot may still show a question that was answered meanwhile, and without a
                // message it cannot be told from a new one.
                let is_unclear = artifacts.is_some() && message.is_none() && self.has_asked();
                let is_new = is_new && !is_unclear || self.asks_again();
                self.ask(message, metadata, is_new, signs_in).await
            }
            TaskState::Completed => self.complete(message, metadata, artifacts).await,
            TaskState::Failed => {
                let text = message.as_ref().map(text_of).filter(|text| !text.is_empty());
                let text = text.unwrap_or_else(|| "the agent failed".to_owned());
                let original = status_text(state, message, metadata);
                let result = self.result(false, Some(Cause::Execution), Some(text), None);
                self.end(OriginalReport::Result(result), Some(original)).await
            }
            TaskState::Rejected | TaskState::Canceled => {
                let text = message.as_ref().map(text_of).filter(|text| !text.is_empty());
                let text = text.unwrap_or_else(|| match state {
                    TaskState::Rejected => "the agent rejected the task".to_owned(),
                    _ => "the agent canceled the task".to_owned(),
                });
                let original = status_text(state, message, metadata);
                self.end_declined(text, Some(original)).await
            }
        }
    }

    /// Whether the worker has asked before.
    fn has_asked(&self) -> bool {
        self.job.current_questions().next().is_some()
    }

    /// Whether the worker has got every answer.
    fn has_all_answers(&self) -> bool {
        self.job.open_question().is_none() && self.state.next(&self.job).is_none()
    }

    /// Whether a question that looks like the last one is another one: the worker has gone on since
    /// then, or had time to.
    fn asks_again(&self) -> bool {
        let has_gone_on = self.has_gone_on || self.answered.elapsed() > OLD_QUESTION;
        has_gone_on && self.has_asked() && self.has_all_answers()
    }

    /// Whether a worker that works changes the state of the job.
    fn goes_on(&self) -> bool {
        self.job.state == State::Assigned || self.signs_in()
    }

    /// Whether the worker waits until its requester has signed in.
    fn signs_in(&self) -> bool {
        self.job.open_question().is_some_and(|(_, question)| question.signs_in)
    }

    /// The worker asks its requester, or waits until it has signed in.
    async fn ask(
        &mut self,
        message: Option<Message>,
        metadata: Option<String>,
        is_new: bool,
        signs_in: bool,
    ) -> Step {
        // An open question waits; one that was asked before is still on its way to the worker.
        if self.job.open_question().is_some() || !is_new {
            return Ok(());
        }
        self.has_gone_on = false;
        let text = message.as_ref().map(text_of).filter(|text| !text.is_empty());
        let text = text.unwrap_or_else(|| match signs_in {
            true => "the agent asks to sign in".to_owned(),
            false => "the agent asks for more input".to_owned(),
        });
        let state = if signs_in { TaskState::AuthRequired } else { TaskState::InputRequired };
        let original = status_text(state, message.clone(), metadata);
        let order = AskQuestion {
            job: self.job_ref(),
            by: self.agent,
            epoch: Some(self.epoch),
            text: shortened(&text),
            schema: None,
        };
        let report = match signs_in {
            true => OriginalReport::SignIn(order),
            false => OriginalReport::Question(order),
        };
        if let Some(message) = &message {
            self.reported.add_message(message);
        }
        self.run_report(original_report(report, original)).await
    }
}

pub(super) fn original_report(report: OriginalReport, original: String) -> Command {
    Command::ReportOriginal(Box::new(ReportOriginal { report, original }))
}

/// A status as it is kept.
pub(super) fn status_text(
    state: TaskState,
    message: Option<Message>,
    metadata: Option<String>,
) -> String {
    original::write_status(&StatusUpdate {
        task_id: "-".to_owned(),
        context_id: String::new(),
        status: TaskStatus { state, message, timestamp: None },
        metadata,
    })
}

pub(super) fn shortened(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}

/// Whether an artifact has neither an id nor a part.
fn is_nothing(artifact: &Artifact) -> bool {
    artifact.artifact_id.is_empty() && artifact.parts.is_empty()
}

/// An artifact with an id.
fn named(artifact: Artifact) -> Artifact {
    if artifact.artifact_id.is_empty() {
        Artifact { artifact_id: UNNAMED.to_owned(), ..artifact }
    } else {
        artifact
    }
}
