//! Watching a task that has begun: by its stream, by what its server pushes, or by asking (R97).

use std::time::Duration;

use super::{Follower, OpenStream, PAUSE_MAX, PAUSE_MIN, Step};
use crate::a2a::remote::client::{Call, CallError, Meaning, RemoteError, read_task};
use crate::a2a::wire::Version;
use crate::a2a::wire::rpc::Method;
use crate::a2a::wire::task::{StreamEvent, Task};
use rialto_core::job::Cause;
use tokio::time::Instant;

/// How often a follower looks after its lease.
pub const TICK: Duration = Duration::from_secs(20);
/// How often a task is asked for that its server pushes news of, or that waits for an answer.
const SLOW_POLL: Duration = Duration::from_secs(60);
/// Events of a stream that come together are looked at together.
const BURST: Duration = Duration::from_millis(50);
/// The most events that are looked at together, and for how long they are waited for.
const BURST_EVENTS: usize = 256;
const BURST_MAX: Duration = Duration::from_secs(1);
/// The first pause before a task is looked at again whose stream was cut, or whose follower ended.
pub const RESUME_PAUSE: Duration = Duration::from_millis(100);

impl Follower {
    /// Waits for news of the task, and reports it.
    pub(super) async fn watch(&mut self) -> Step {
        self.renew_lease().await?;
        if self.wake.take_push() {
            return self.poll().await;
        }
        if self.stream.is_some() {
            return self.watch_stream().await;
        }
        let question = self.job.open_question();
        if question.is_some_and(|(_, question)| !question.signs_in) {
            return self.wait_and_poll(SLOW_POLL).await;
        }
        if self.remote.streaming && self.can_subscribe {
            return self.subscribe().await;
        }
        let pause = if self.state.push { SLOW_POLL } else { self.pause };
        self.wait_and_poll(pause).await
    }

    /// Waits for the next event of the stream, or for a change of the job.
    async fn watch_stream(&mut self) -> Step {
        let Some(open) = &mut self.stream else { return Ok(()) };
        let next = tokio::select! {
            next = open.stream.next() => next,
            () = self.wake.notify.notified() => return Ok(()),
            () = tokio::time::sleep(TICK) => {
                if open.stream.is_alive(TICK) {
                    self.note_contact();
                }
                return Ok(());
            }
        };
        match next {
            Ok(Some(event)) => {
                self.note_contact();
                if self.stream.as_ref().is_some_and(|open| open.is_whole) {
                    return self.take_event(event).await;
                }
                self.catch_up(event).await
            }
            Ok(None) => {
                self.end_stream();
                Ok(())
            }
            Err(error) => {
                self.end_stream();
                match error {
                    CallError::TooLarge(_) => self.handle_watch_error(error).await,
                    CallError::Refused(refused) => {
                        self.note_refused_stream(&refused);
                        Ok(())
                    }
                    // The task goes on; it is followed by another stream, or asked for.
                    _ => Ok(()),
                }
            }
        }
    }

    /// The stream has ended. One that showed nothing new is opened again later and later.
    fn end_stream(&mut self) {
        if self.stream.take().is_some_and(|open| open.has_news) {
            self.resume_pause = RESUME_PAUSE;
        }
    }

    /// A task that has ended, or a server without subscriptions.
    fn note_refused_stream(&mut self, refused: &RemoteError) {
        if !matches!(refused.meaning(), Meaning::Busy { .. } | Meaning::Away) {
            self.can_subscribe = false;
        }
    }

    /// A stream that was opened again: its events may be known already, so they only show that the
    /// task has changed. The task itself says how.
    async fn catch_up(&mut self, event: StreamEvent) -> Step {
        let is_news = |event: &StreamEvent| !matches!(event, StreamEvent::Task(_));
        let mut has_news = is_news(&event);
        let mut ends = false;
        let until = Instant::now() + BURST_MAX;
        for _ in 0..BURST_EVENTS {
            let Some(open) = &mut self.stream else { break };
            let quiet = until.min(Instant::now() + BURST);
            tokio::select! {
                next = open.stream.next() => match next {
                    Ok(Some(later)) => has_news |= is_news(&later),
                    Ok(None) | Err(_) => {
                        ends = true;
                        break;
                    }
                },
                () = self.wake.notify.notified() => {
                    self.look_at_job()?;
                    break;
                }
                () = tokio::time::sleep_until(quiet) => break,
            }
        }
        if let Some(open) = &mut self.stream {
            open.has_news |= has_news;
        }
        if ends {
            self.end_stream();
        }
        match event {
            // Nothing came after it, so it is as good as an answer to a request.
            StreamEvent::Task(task) if ends && task.status.state.is_terminal() => {
                self.take_task(*task).await
            }
            _ => self.poll().await,
        }
    }

    /// Opens a stream of a task that has begun.
    async fn subscribe(&mut self) -> Step {
        let pause = self.resume_pause;
        if self.wait(pause).await? {
            return Ok(());
        }
        self.resume_pause = (2 * pause).clamp(PAUSE_MIN, PAUSE_MAX);
        let Some(slot) = self.context.egress.try_reserve_slot(&self.client.interface.url) else {
            return self.poll().await;
        };
        let task = self.state.task.clone().unwrap_or_default();
        let call = Call::of_task(Method::SubscribeToTask, &task);
        match self.client.stream(&call, slot).await {
            Ok(stream) => {
                self.stream = Some(OpenStream::resumed(stream));
                // What happened before the stream began.
                self.poll().await
            }
            Err(CallError::Refused(refused)) => {
                self.note_refused_stream(&refused);
                self.poll().await
            }
            Err(CallError::Malformed(_)) => {
                self.can_subscribe = false;
                self.poll().await
            }
            Err(error) => self.handle_watch_error(error).await,
        }
    }

    /// Waits, and then asks for the task. The pause doubles.
    async fn wait_and_poll(&mut self, pause: Duration) -> Step {
        if self.wait(pause).await? {
            return Ok(());
        }
        let next = (2 * pause).clamp(PAUSE_MIN, PAUSE_MAX);
        self.poll().await?;
        self.pause = next;
        Ok(())
    }

    /// Waits so long, or until the job changes. Whether it was woken.
    async fn wait(&mut self, pause: Duration) -> Step<bool> {
        let until = Instant::now() + pause;
        loop {
            let tick = until.min(Instant::now() + TICK);
            tokio::select! {
                () = self.wake.notify.notified() => return Ok(true),
                () = tokio::time::sleep_until(tick) => {}
            }
            if tick >= until {
                return Ok(false);
            }
            self.look_at_job()?;
            self.renew_lease().await?;
        }
    }

    /// Asks for the task and reports what is new.
    pub(super) async fn poll(&mut self) -> Step {
        match self.get_task().await? {
            Some(task) => self.take_task(task).await,
            None => Ok(()),
        }
    }

    /// The task as its server has it; `None` if the server gave none, after a pause.
    pub(super) async fn get_task(&mut self) -> Step<Option<Task>> {
        match self.call_get_task().await {
            Ok(task) => Ok(task),
            Err(error) => {
                self.handle_watch_error(error).await?;
                Ok(None)
            }
        }
    }

    /// The task as its server has it, or why it could not be had.
    pub(super) async fn call_get_task(&mut self) -> Result<Option<Task>, CallError> {
        let Some(id) = self.state.task.clone() else { return Ok(None) };
        let call = Call::of_task(Method::GetTask, &id);
        let version: Version = self.client.interface.version;
        let text = self.client.call(&call).await?;
        let task = read_task(&text, version)?;
        self.note_contact();
        Ok(task.filter(|task| task.id == id))
    }

    /// A task that has begun is waited for within the lease, unless its server has lost it.
    async fn handle_watch_error(&mut self, error: CallError) -> Step {
        if error.is_contact() {
            self.heard = Instant::now();
        }
        let text = error.to_string();
        match error {
            CallError::Unreachable(_) | CallError::NoAnswer(_) => self.rest().await,
            CallError::TooLarge(_) => self.fail(Cause::Execution, &text).await,
            CallError::Malformed(_) => self.fail(Cause::Execution, &text).await,
            CallError::Refused(refused) => match refused.meaning() {
                Meaning::TaskNotFound => {
                    self.state.task = None;
                    let text = "the agent does not know the task any more";
                    self.fail(Cause::Execution, text).await
                }
                Meaning::Away => {
                    self.refresh_card().await;
                    self.rest().await
                }
                Meaning::NoSuchOperation => self.fail(Cause::Execution, &text).await,
                _ => self.rest().await,
            },
        }
    }
}
