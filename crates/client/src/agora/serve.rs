//! Runs a provider: answers every REQUEST in the inbox and does the agreed work. A disconnect or a
//! crash loses nothing.
//!
//! A REQUEST is acknowledged when it is finished. One that arrives again after a restart is looked
//! up first: an offer is not made twice, and accepted work continues.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use rialto_core::money::Credits;
use rialto_protocols::agora::Code;
use rialto_protocols::agora::wire::responses::RequestView;
use rialto_protocols::agora::wire::status::RequestState;
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::task::JoinError;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::agent::Agent;
use super::handler::{Handler, Job, Progress, Terms, WorkError, millis};
use super::inbox::{InboxError, InboxOptions};
use super::incoming::{IncomingEnvelope, TrustError};
use super::payload::EnvelopePayload;
use crate::call::CallError;
use crate::recent_set::RecentSet;
use crate::worker::{self, ServeError, WorkSource};

/// How often finished requests are acknowledged.
const ACK_EVERY: Duration = Duration::from_secs(1);
/// How long an expired offer is kept: an ACCEPT may be on its way.
const OFFER_RETENTION: Duration = Duration::from_secs(300);
/// Maximum number of open offers, and of ACCEPTs that wait for their offer.
const OFFERS_MAX: usize = 10_000;
/// How long a free offer is valid.
const FREE_TTL: Duration = Duration::from_secs(60);

/// Options for serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServeOptions {
    /// Number of jobs at a time; further requests are refused with 503.
    pub concurrency: usize,
    /// Where to start reading.
    pub listen: InboxOptions,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self { concurrency: 16, listen: InboxOptions::default() }
    }
}

impl Agent {
    /// Serves until `stop`, or until the hub no longer gives this agent an inbox. Running jobs then
    /// have 5 seconds to finish; the rest is returned with an ERROR 503.
    pub async fn serve<H: Handler>(
        &self,
        options: ServeOptions,
        handler: Arc<H>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), CallError> {
        let envelopes = stream::unfold(self.inbox(options.listen).await?, |mut inbox| async {
            let event = match inbox.next().await? {
                Ok(incoming) => {
                    let is_backlog = incoming.position.is_some_and(|at| inbox.is_backlog(at));
                    Ok(Event::Envelope(Box::new(incoming), is_backlog))
                }
                Err(InboxError::NotTrusted(error)) => Ok(Event::NotTrusted(error)),
                Err(InboxError::Ended(error)) => Err(error),
            };
            Some((event, inbox))
        });
        let mut ticks = interval(ACK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ticks = stream::unfold(ticks, |mut ticks| async {
            ticks.tick().await;
            Some((Ok(Event::AckDue), ticks))
        });
        let provider = Provider {
            runner: JobRunner { agent: self.clone(), handler },
            concurrency: options.concurrency.max(1),
            offered: HashMap::new(),
            early_accepts: HashMap::new(),
            seen: RecentSet::default(),
            unfinished: BTreeSet::new(),
            last_position: 0,
            acked_to: 0,
        };
        worker::run(provider, Tasks::default(), stream::select(envelopes, ticks), stop).await
    }
}

/// What a provider reacts to.
enum Event {
    /// An envelope, and whether it is from before the start.
    Envelope(Box<IncomingEnvelope>, bool),
    NotTrusted(TrustError),
    AckDue,
}

/// A job, and the position of its REQUEST in the inbox.
#[derive(Clone, Debug)]
struct TrackedJob {
    job: Job,
    position: Option<u64>,
}

type Tasks = worker::Tasks<TrackedJob, StepEnd>;

/// A provider's open offers, and what may be acknowledged.
struct Provider<H> {
    runner: JobRunner<H>,
    concurrency: usize,
    offered: HashMap<String, (TrackedJob, Instant)>,
    /// ACCEPTs that arrived before the response to their offer.
    early_accepts: HashMap<String, PublicKey>,
    seen: RecentSet<(PublicKey, String)>,
    unfinished: BTreeSet<u64>,
    last_position: u64,
    acked_to: u64,
}

impl<H: Handler> WorkSource for Provider<H> {
    type Event = Event;
    type Job = TrackedJob;
    type End = StepEnd;

    async fn handle_event(&mut self, event: Event, tasks: &mut Tasks) {
        match event {
            Event::Envelope(incoming, is_backlog) => {
                self.handle_envelope(*incoming, is_backlog, tasks);
            }
            Event::NotTrusted(error) => {
                self.report_error(None, "an envelope failed verification", error);
            }
            Event::AckDue => self.ack_finished().await,
        }
    }

    async fn handle_end(
        &mut self,
        tracked: TrackedJob,
        end: Result<StepEnd, JoinError>,
        tasks: &mut Tasks,
    ) {
        let request_id = tracked.job.request_id.clone();
        match end {
            Ok(StepEnd::Finished) => self.finish(&tracked),
            Ok(StepEnd::Offered { offer_id, ttl }) => {
                let until = Instant::now() + ttl + OFFER_RETENTION;
                let early = self.early_accepts.remove(&offer_id);
                self.offered.insert(offer_id.clone(), (tracked, until));
                if let Some(requester) = early {
                    self.handle_accept(offer_id, requester, tasks);
                }
            }
            Ok(StepEnd::NotSent(error)) => {
                self.finish(&tracked);
                self.report_error(Some(request_id), "the hub did not accept an answer", error);
            }
            Err(error) => {
                self.report_error(Some(request_id), "the handler panicked", error);
                self.refuse(tracked, Code::Internal, "the provider failed", tasks);
            }
        }
    }

    async fn end_shutdown(&mut self, unfinished: Vec<TrackedJob>, _: &Result<(), CallError>) {
        for tracked in unfinished {
            let why = WorkError::new(Code::Unavailable, "the provider is shutting down");
            match self.runner.send_failure(&tracked.job, why).await {
                StepEnd::NotSent(error) => {
                    let request_id = Some(tracked.job.request_id);
                    self.report_error(request_id, "a job was not returned", error);
                }
                _ => self.finish(&tracked),
            }
        }
        self.ack_finished().await;
    }
}

impl<H: Handler> Provider<H> {
    fn handle_envelope(&mut self, incoming: IncomingEnvelope, is_backlog: bool, tasks: &mut Tasks) {
        self.last_position = incoming.position.unwrap_or(self.last_position);
        if !self.seen.insert((incoming.sender, incoming.id.clone())) {
            return;
        }
        if let Some(job) = Job::from_request(&incoming) {
            let tracked = TrackedJob { job, position: incoming.position };
            return self.handle_request(tracked, is_backlog, tasks);
        }
        match incoming.payload {
            EnvelopePayload::Accept { offer_id, .. } => {
                self.handle_accept(offer_id, incoming.sender, tasks);
            }
            EnvelopePayload::Error { request_id: Some(id), .. } => {
                self.cancel(&id, incoming.sender, tasks);
            }
            EnvelopePayload::MessageStatus { status, message_id: Some(id), .. }
                if status == "offer_closed"
                    && incoming.sender == self.runner.agent.server().key() =>
            {
                if let Some((tracked, _)) = self.offered.remove(&id) {
                    self.finish(&tracked);
                }
            }
            _ => {}
        }
    }

    fn handle_request(&mut self, tracked: TrackedJob, is_backlog: bool, tasks: &mut Tasks) {
        self.unfinished.extend(tracked.position);
        if tasks.jobs().count() >= self.concurrency || self.offered.len() >= OFFERS_MAX {
            let message = "the provider is at capacity; try again later";
            return self.refuse(tracked, Code::Unavailable, message, tasks);
        }
        let (runner, job) = (self.runner.clone(), tracked.job.clone());
        tasks.spawn(tracked, async move { runner.answer_request(job, is_backlog).await });
    }

    fn handle_accept(&mut self, offer_id: String, sender: PublicKey, tasks: &mut Tasks) {
        let Some((tracked, _)) = self.offered.get(&offer_id) else {
            if self.early_accepts.len() < OFFERS_MAX {
                self.early_accepts.insert(offer_id, sender);
            }
            return;
        };
        // Only the requester can accept. The hub checks that, and so does the client.
        if tracked.job.requester == sender
            && let Some((tracked, _)) = self.offered.remove(&offer_id)
        {
            let (runner, job) = (self.runner.clone(), tracked.job.clone());
            tasks.spawn(tracked, async move { runner.run_job(job).await });
        }
    }

    /// The requester or the hub cancels a job: its result is no longer needed.
    fn cancel(&mut self, request_id: &str, sender: PublicKey, tasks: &mut Tasks) {
        let hub = self.runner.agent.server().key();
        let is_cancelled = |tracked: &TrackedJob| {
            let by_party = sender == tracked.job.requester || sender == hub;
            tracked.job.request_id == request_id && by_party
        };
        let mut cancelled = tasks.cancel(is_cancelled);
        let offered = self.offered.extract_if(|_, (tracked, _)| is_cancelled(tracked));
        cancelled.extend(offered.map(|(_, (tracked, _))| tracked));
        for tracked in cancelled {
            self.finish(&tracked);
        }
    }

    fn refuse(&self, tracked: TrackedJob, code: Code, message: &str, tasks: &mut Tasks) {
        let (runner, job) = (self.runner.clone(), tracked.job.clone());
        let why = WorkError::new(code, message);
        tasks.spawn(tracked, async move { runner.send_failure(&job, why).await });
    }

    /// Drops expired offers, and acknowledges everything before the first unfinished request.
    async fn ack_finished(&mut self) {
        let now = Instant::now();
        let expired: Vec<_> = self.offered.extract_if(|_, (_, until)| *until <= now).collect();
        for (_, (tracked, _)) in expired {
            self.finish(&tracked);
        }
        let up_to =
            self.unfinished.first().map_or(self.last_position, |first| first.saturating_sub(1));
        if up_to <= self.acked_to {
            return;
        }
        match self.runner.agent.ack(up_to).await {
            Ok(_) => self.acked_to = up_to,
            // The next call tries again.
            Err(error) => self.report_error(None, "the inbox was not acknowledged", error),
        }
    }

    fn report_error(&self, job_id: Option<String>, action: &'static str, reason: impl Display) {
        let reason = reason.to_string();
        self.runner.handler.on_error(&ServeError { job_id, action, reason });
    }

    fn finish(&mut self, tracked: &TrackedJob) {
        if let Some(position) = tracked.position {
            self.unfinished.remove(&position);
        }
    }
}

/// How a step of a job ended.
#[derive(Debug)]
enum StepEnd {
    /// Nothing is left to do.
    Finished,
    /// An offer was made that is valid for this long.
    Offered { offer_id: String, ttl: Duration },
    /// The answer could not be sent.
    NotSent(CallError),
}

impl StepEnd {
    /// The end of a step whose last message was sent.
    fn of<T>(sent: Result<T, CallError>) -> Self {
        sent.map_or_else(Self::NotSent, |_| Self::Finished)
    }
}

/// Runs one step of a job: from a REQUEST to an offer or a result, or from an ACCEPT to a result.
struct JobRunner<H> {
    agent: Agent,
    handler: Arc<H>,
}

impl<H> Clone for JobRunner<H> {
    fn clone(&self) -> Self {
        Self { agent: self.agent.clone(), handler: Arc::clone(&self.handler) }
    }
}

impl<H: Handler> JobRunner<H> {
    /// Answers a REQUEST. One from before the start of this program may already be answered.
    async fn answer_request(self, job: Job, is_backlog: bool) -> StepEnd {
        if is_backlog
            && let Ok(thread) = self.agent.thread(&job.request_id).await
            && let Some(thread) = thread.for_requester(&job.requester.did())
            && let Some(progress) = request_progress(&thread, self.agent.identity().did())
        {
            return match progress {
                RequestProgress::Accepted => self.run_job(job).await,
                RequestProgress::Offered(offer_id) => StepEnd::Offered { offer_id, ttl: FREE_TTL },
                RequestProgress::Finished => StepEnd::Finished,
            };
        }
        let (cost, ttl, eta) = match self.handler.terms(&job).await {
            Terms::Work if job.may_skip_offer => return self.run_job(job).await,
            Terms::Work => (Credits::ZERO, FREE_TTL, Duration::ZERO),
            Terms::Offer { cost, ttl, eta } => (cost, ttl, eta),
            Terms::Decline(why) => return self.send_failure(&job, why).await,
        };
        let (to, id) = (job.requester, &job.request_id);
        match self.agent.send_offer(to, id, cost, millis(ttl), millis(eta)).await {
            Ok(offer_id) => StepEnd::Offered { offer_id, ttl },
            Err(error) => StepEnd::NotSent(error),
        }
    }

    /// Does the work and delivers it.
    async fn run_job(self, job: Job) -> StepEnd {
        let progress = Progress::new(&self.agent, &job);
        let data = match self.handler.work(job.clone(), progress).await {
            Ok(data) => data,
            Err(why) => return self.send_failure(&job, why).await,
        };
        match self.agent.send_result(job.requester, &job.request_id, &data).await {
            // The handler's output is not an object: report that to the requester as a failure.
            Err(CallError::Refused { status: 400, code, message, .. }) if code.is_empty() => {
                self.send_failure(&job, WorkError::new(Code::Internal, message)).await
            }
            sent => StepEnd::of(sent),
        }
    }

    /// Reports that the work will not be done.
    async fn send_failure(&self, job: &Job, why: WorkError) -> StepEnd {
        let (to, id) = (Some(job.requester), Some(job.request_id.as_str()));
        StepEnd::of(self.agent.send_error(to, id, why.code, &why.message).await)
    }
}

/// The progress of a request from before the start.
#[derive(Debug, PartialEq, Eq)]
enum RequestProgress {
    Accepted,
    Offered(String),
    Finished,
}

fn request_progress(thread: &RequestView, me: &str) -> Option<RequestProgress> {
    let mine = || thread.offers.iter().rfind(|offer| offer.provider == me);
    match thread.state {
        RequestState::Pending => None,
        RequestState::Negotiating => {
            mine().map(|offer| RequestProgress::Offered(offer.offer_id.clone()))
        }
        RequestState::Processing if thread.provider.as_deref() == Some(me) => {
            Some(RequestProgress::Accepted)
        }
        RequestState::Processing | RequestState::Completed | RequestState::Failed => {
            Some(RequestProgress::Finished)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_an_earlier_request_decides_how_it_continues() {
        let thread = |state: &str, provider: &str| {
            let offers = r#"[{"offer_id":"o-1","provider":"me","cost":1,"eta":0,"expires_at":""},
                {"offer_id":"o-2","provider":"you","cost":1,"eta":0,"expires_at":""}]"#;
            let text = format!(
                r#"{{"request_id":"r","state":"{state}","provider":{provider},"offers":{offers},"deadline":null}}"#
            );
            serde_json::from_str::<RequestView>(&text).expect("a thread")
        };
        for (state, provider, expected) in [
            ("PENDING", "null", None),
            ("NEGOTIATING", "null", Some(RequestProgress::Offered("o-1".to_owned()))),
            ("PROCESSING", "\"me\"", Some(RequestProgress::Accepted)),
            ("PROCESSING", "\"you\"", Some(RequestProgress::Finished)),
            ("COMPLETED", "\"me\"", Some(RequestProgress::Finished)),
            ("FAILED", "\"me\"", Some(RequestProgress::Finished)),
        ] {
            assert_eq!(
                request_progress(&thread(state, provider), "me"),
                expected,
                "{state} {provider}"
            );
        }
    }
}
