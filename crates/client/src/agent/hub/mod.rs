//! The worker at a hub: go online, poll for work, report results, unregister.
//!
//! A [`HubWorker`] polls the hub for work and does it with [`Handlers`]. Each job is written to
//! disk before it starts, and its outcome before it is reported. So the program can be killed at
//! any time and continues after a restart. The hub accepts one outcome per assignment.

mod calls;
mod dialogue;
mod event;
mod source;

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::handlers::{Availability, Handlers};
use super::record::JobRecords;
use crate::call::{CallError, Hub};
use crate::notice_stream::NoticeStream;
use crate::worker::{self, Tasks, retry_until_answered};
use calls::{KnownAssignments, WorkResponse, until_answered};
use source::{HubEvent, HubSource};

pub use calls::{AgentRegistration, RegistrationResponse, register_agent};
pub(super) use calls::{check_instance, retry_delay};
pub(super) use dialogue::HubDialogue;
#[cfg(test)]
pub(super) use dialogue::test_dialogue;
pub use event::{AgentEvent, EventCallback};

/// How long a poll for work waits, in seconds.
const WAIT: u32 = 25;
/// The delay before the next poll after an immediate response without changes. A hub that supports
/// the wait never sends one.
const IDLE_PAUSE: Duration = Duration::from_secs(1);
/// How long a change of availability must last before it is reported; most jobs take less.
const DEBOUNCE: Duration = Duration::from_secs(1);
/// The notice that a requester wants offers for a job.
const OFFERS_WANTED: &str = "offers_wanted";
/// A message to the agent. This program cannot read it, but the agent's operator can.
const MESSAGE: &str = "message";

/// The worker of one agent at a hub.
pub struct HubWorker {
    hub: Hub,
    handlers: Handlers,
    records: JobRecords,
    on_event: EventCallback,
    /// The event emitted once the hub lists the agent.
    start_event: Option<AgentEvent>,
    instance: Option<String>,
    idle_pause: Duration,
}

impl HubWorker {
    /// A worker with its key, its handlers and its job records.
    pub fn new(hub: Hub, handlers: Handlers, records: JobRecords, on_event: EventCallback) -> Self {
        let (start_event, instance, idle_pause) = (None, None, IDLE_PAUSE);
        Self { hub, handlers, records, on_event, start_event, instance, idle_pause }
    }

    /// Sets the event to emit once the hub lists the agent.
    pub fn start_event(mut self, event: AgentEvent) -> Self {
        self.start_event = Some(event);
        self
    }

    /// Sets the instance id of this program. While it polls, the hub gives no work to another
    /// program of the same agent.
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.instance = Some(name.into());
        self
    }

    /// Sets the delay before the next poll after an immediate response without changes; one second
    /// by default. After any other response the next poll follows at once.
    pub fn idle_pause(mut self, pause: Duration) -> Self {
        self.idle_pause = pause;
        self
    }

    /// Works until `stop`, or until the hub no longer knows the agent. Then finishes what can be
    /// finished soon, returns the rest, and unregisters, all within five seconds.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), CallError> {
        let known = KnownAssignments::default();
        let source = HubSource::new(&self, known.clone());
        let online = stream::once(async { self.go_online().await.map(|()| HubEvent::Online) });
        let poller = WorkPoller { worker: &self, known, is_immediate: false };
        let work = stream::unfold(poller, |mut poller| async {
            Some((poller.next().await.map(HubEvent::Work), poller))
        });
        // These run beside the polls, and bring no work.
        let duties = stream::once(async {
            tokio::join!(self.answer_offer_requests(), self.report_availability());
        });
        let duties = duties.filter_map(|()| std::future::ready(None));
        let events = online.chain(stream::select(work, duties));
        worker::run(source, Tasks::default(), events, stop).await
    }

    /// Reports the agent as online; retries until the hub accepts it.
    async fn go_online(&self) -> Result<(), CallError> {
        let call = || calls::set_status(&self.hub, "online");
        until_answered("cannot go online", &self.on_event, call).await
    }

    /// Reports whether the agent takes work, until the hub refuses permanently.
    async fn report_availability(&self) {
        let mut watched = self.handlers.watch_availability();
        let mut reported = Availability::Online;
        loop {
            let current = *watched.borrow_and_update();
            if current == reported {
                // The handlers hold the sender, so the channel cannot be closed.
                let _ = watched.changed().await;
                // Work for handlers that cannot work would only be declined.
                if reported != Availability::Offline && *watched.borrow() != Availability::Offline {
                    sleep(DEBOUNCE).await;
                }
                continue;
            }
            // The availability may change again while the hub cannot be reached.
            let call = || {
                let current = *watched.borrow();
                async move {
                    let status = match current {
                        _ if current == reported => return Ok(current),
                        Availability::Online => "online",
                        Availability::Busy => "busy",
                        Availability::Offline => "offline",
                    };
                    calls::set_status(&self.hub, status).await.map(|()| current)
                }
            };
            match until_answered("cannot report availability", &self.on_event, call).await {
                Ok(current) => reported = current,
                Err(_) => return,
            }
        }
    }

    /// Reads the inbox and sends offers until the hub no longer knows the agent.
    async fn answer_offer_requests(&self) {
        let open = || NoticeStream::open(&self.hub);
        while let Ok(mut inbox) = retry_until_answered(retry_delay, |_| {}, open).await {
            match self.read_inbox(&mut inbox).await {
                // An agent that was suspended continues after its last acknowledgement.
                Err(error) if retry_delay(&error, 1).is_some() => {}
                _ => return,
            }
        }
    }

    /// Reads the inbox until an error.
    async fn read_inbox(&self, inbox: &mut NoticeStream) -> Result<Infallible, CallError> {
        // Messages stay in the inbox for the operator, so nothing after the first message is
        // acknowledged.
        let mut has_message = false;
        loop {
            let notice = inbox.next().await?;
            if notice.kind == OFFERS_WANTED {
                self.answer_offer_request(&notice.data).await;
            }
            has_message |= notice.kind == MESSAGE;
            if !has_message {
                inbox.ack(notice.position).await?;
            }
        }
    }

    /// Sends an offer, and ignores requests that this agent cannot do. Retries until the hub
    /// accepts the offer, because one is requested only once.
    async fn answer_offer_request(&self, notice: &str) {
        #[derive(Deserialize)]
        struct OffersWanted {
            job: String,
        }
        let Ok(OffersWanted { job }) = serde_json::from_str(notice) else { return };
        let call = || calls::send_offer(&self.hub, &self.handlers, &job);
        if let Ok(Some(price)) = until_answered("cannot send an offer", &self.on_event, call).await
        {
            (self.on_event)(AgentEvent::OfferSent { job, price });
        }
    }
}

/// Polls for work.
struct WorkPoller<'a> {
    worker: &'a HubWorker,
    known: KnownAssignments,
    /// Whether the hub answered the last poll without waiting.
    is_immediate: bool,
}

impl WorkPoller<'_> {
    /// Polls until the hub answers.
    async fn next(&mut self) -> Result<WorkResponse, CallError> {
        let HubWorker { hub, instance, on_event, idle_pause, .. } = self.worker;
        // An immediate response without changes would repeat.
        if !self.known.take_changed() && self.is_immediate {
            sleep(*idle_pause).await;
        }
        let (polled_at, mut attempts) = (Instant::now(), 0_u32);
        let response = until_answered("cannot poll for work", on_event, || {
            attempts += 1;
            calls::fetch_work(hub, instance.as_deref(), &self.known, WAIT)
        });
        let response = response.await?;
        if attempts > 1 {
            on_event(AgentEvent::Recovered);
        }
        self.is_immediate = polled_at.elapsed() < IDLE_PAUSE;
        Ok(response)
    }
}
