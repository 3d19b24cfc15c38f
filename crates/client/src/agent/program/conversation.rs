//! The conversation of an agent with a program about one job, from its first line to its outcome.

use tokio::sync::{mpsc, oneshot};

use super::lines::{self, ProgramReport};
use super::pending::JobReply;
use super::running::RunningProgram;
use crate::agent::dialogue::DialogueError;
use crate::agent::job::{Job, Outcome};

/// What a program says about a job: reports, and at the end a reply.
#[derive(Debug)]
pub(super) struct Replies {
    pub(super) reports: mpsc::Receiver<ProgramReport>,
    pub(super) reply: oneshot::Receiver<JobReply>,
}

/// A conversation. If it is dropped before its end, a program that listens is told.
pub(super) struct Conversation<'a> {
    program: &'a RunningProgram,
    job: &'a Job,
    /// The program also reads what it did not ask for.
    reads_all: bool,
    is_asking: bool,
    is_over: bool,
}

impl<'a> Conversation<'a> {
    pub(super) fn new(program: &'a RunningProgram, job: &'a Job, reads_all: bool) -> Self {
        Self { program, job, reads_all, is_asking: false, is_over: false }
    }

    /// Passes everything on until the reply; `None` if the program has exited without one.
    pub(super) async fn run(mut self, mut replies: Replies) -> Option<JobReply> {
        let reply = self.talk(&mut replies).await;
        self.is_over = true;
        reply
    }

    async fn talk(&mut self, replies: &mut Replies) -> Option<JobReply> {
        let Replies { reports, reply } = replies;
        loop {
            // Reports come before the reply that follows them.
            tokio::select! {
                biased;
                Some(report) = reports.recv() => {
                    if let Some(reply) = self.pass_on(report, reply).await {
                        return reply;
                    }
                }
                reply = &mut *reply => return reply.ok(),
                message = self.job.dialogue.next_message(), if self.reads_all => {
                    self.program.say(lines::message_line(&self.job.id, &message));
                }
            }
        }
    }

    /// Passes a report on. Returns the reply if the job ends by it, or while it waits.
    async fn pass_on(
        &mut self,
        report: ProgramReport,
        reply: &mut oneshot::Receiver<JobReply>,
    ) -> Option<Option<JobReply>> {
        let dialogue = &self.job.dialogue;
        let told = match report {
            ProgramReport::Progress { fraction, text } => {
                // The work is more important than the news of it.
                let _ = dialogue.report_progress(fraction, text.as_deref()).await;
                return None;
            }
            ProgramReport::Part { content, append } => {
                dialogue.send_part(&content, append).await.map_err(|error| ("a part", error))
            }
            ProgramReport::SignIn(text) => {
                dialogue.ask_to_sign_in(&text).await.map_err(|error| ("a sign-in", error))
            }
            ProgramReport::Ask(question) => {
                self.is_asking = true;
                let answer = tokio::select! {
                    biased;
                    answer = dialogue.ask(question) => answer,
                    // The program has finished without the answer.
                    reply = &mut *reply => return Some(reply.ok()),
                };
                match answer {
                    Ok(answer) => {
                        self.is_asking = false;
                        self.program.say(lines::answer_line(&self.job.id, &answer));
                        Ok(())
                    }
                    // The program may go on without an answer.
                    Err(error @ (DialogueError::Call(_) | DialogueError::NoHub)) => {
                        self.is_asking = false;
                        let why = error.to_string();
                        self.program.say(lines::no_answer_line(&self.job.id, &why));
                        Ok(())
                    }
                    Err(error) => Err(("a question", error)),
                }
            }
        };
        match told.err()? {
            // The agent is about to learn what became of the job; until then the program may finish.
            (_, DialogueError::Over) => Some(reply.await.ok()),
            (what, error) => {
                let outcome = Outcome::Failed(format!("the hub did not accept {what}: {error}"));
                Some(Some(JobReply::Outcome(outcome)))
            }
        }
    }
}

impl Drop for Conversation<'_> {
    fn drop(&mut self) {
        if !self.is_over && (self.reads_all || self.is_asking) {
            self.program.say(lines::cancelled_line(&self.job.id));
        }
    }
}
