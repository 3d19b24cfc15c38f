//! Checks a request in the order of the book (R83), answers it, and runs the work.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::openclaw::codes::Rejected;
use rialto_protocols::openclaw::message::{Answer, Message, Rejection, Request, Response};
use rialto_protocols::openclaw::{Code, Failure};
use tokio::time::timeout;
use uuid::Uuid;

use super::store::{Answered, Book, Name};
use super::collaboration::{Collaboration, Over};
use crate::agent::Refused;
use crate::agent::direct::worker_pool::{Bench, Seat, lock};
use crate::agent::direct::journal::{Entry, Journal};
use crate::agent::direct::shared_result::Ongoing;
use crate::openclaw::presence::Record;
use crate::{clock, ids};

/// The retry delay of a rejection for lack of capacity, in seconds.
const BACK_AFTER_S: u32 = 5;

/// Handles the collaborations of a node.
pub(super) struct Desk {
    node_id: Uuid,
    bench: Arc<Bench>,
    book: Mutex<Book>,
    journal: Journal,
}

/// The response, and whether it belongs to an earlier request with another body (R65).
pub(super) type Answering = Result<(Response, bool), Failure>;

impl Desk {
    /// Creates a service that continues what an earlier run of this program accepted: requesters
    /// that got an acceptance wait for a result, and need not ask again.
    pub(super) fn open(
        node_id: Uuid,
        bench: Arc<Bench>,
        (journal, before): (Journal, Vec<Entry>),
    ) -> Arc<Self> {
        let desk = Arc::new(Self { node_id, bench, book: Mutex::default(), journal });
        for entry in &before {
            let Some(found) = Collaboration::found(entry, node_id).map(Arc::new) else { continue };
            lock(&desk.book).accepted(&found, found.accepted_at);
            match found.result.now() {
                Some(_) => lock(&desk.book).over(&found, None, clock::now()),
                None => desk.resume(found),
            }
        }
        desk
    }

    fn resume(self: &Arc<Self>, collaboration: Arc<Collaboration>) {
        let desk = Arc::clone(self);
        let place = self.bench.place();
        self.bench.run(async move {
            let seat = match &place {
                Some(place) => place.seat().await,
                None => None,
            };
            desk.finish(&collaboration, seat).await;
        });
    }

    /// Answers a request at once, since no other party has to be asked.
    pub(super) fn take(self: &Arc<Self>, request: Message<Request>) -> Answering {
        let now = clock::now();
        let said = &request.said;
        // Checked before the store is locked, so that no other request waits for a long check.
        let (name, fits) = (Name::of(said), self.fits(said));
        let mut book = lock(&self.book);
        if let Some((answered, same)) = book.known(name, now) {
            if !same && said.idempotency_key.is_none() {
                let message = "request_id was used for another request: use a new one";
                return Err(Failure::new(Code::IdempotencyConflict, message));
            }
            return Ok((self.again(said, answered), !same));
        }
        let seat = match fits.and_then(|()| self.seat(said, now)) {
            Ok(seat) => seat,
            Err(why) => {
                let response = self.rejects(said, why.clone());
                if !why.retryable {
                    book.rejected(name, why, response.write().len(), now);
                }
                return Ok((response, false));
            }
        };
        let collaboration = Arc::new(Collaboration {
            id: ids::id().map_err(|_| Failure::fault("the random number generator failed"))?,
            name,
            responder: self.node_id,
            request,
            accepted_at: now,
            result: Ongoing::new(),
        });
        // An acceptance is a promise, so it is written to the journal before it is sent.
        if self.journal.write(&collaboration.entry(None)).is_err() {
            let why = Rejection::new(Rejected::ResourceExhausted, "The journal cannot be written");
            let why = Rejection { retry_after_seconds: Some(BACK_AFTER_S), ..why };
            return Ok((self.rejects(&collaboration.request.said, why), false));
        }
        book.accepted(&collaboration, now);
        drop(book);
        let (desk, begun) = (Arc::clone(self), Arc::clone(&collaboration));
        self.bench.run(async move { desk.finish(&begun, Some(seat)).await });
        let said = &collaboration.request.said;
        // A result that already exists is fetched like any other.
        Ok((Response { result: None, ..collaboration.response(said) }, false))
    }

    /// Checks capability and input.
    fn fits(&self, said: &Request) -> Result<(), Rejection> {
        let elsewhere = said.responder_agent_id.is_some_and(|id| id != self.node_id);
        let unavailable = |message: &str| Rejection::new(Rejected::CapabilityNotAvailable, message);
        if elsewhere {
            return Err(unavailable("Responder is not this node"));
        }
        match self.bench.shop().fits(&said.capability_id, &said.input_data) {
            Ok(_) => Ok(()),
            Err(Refused::Unfit(wrong)) => {
                Err(Rejection::invalid_input(wrong.iter().map(String::as_str)))
            }
            Err(_) => Err(unavailable("Capability is not advertised by this node")),
        }
    }

    /// Checks capacity (R71), deadline and price; returns a permit if all pass.
    fn seat(&self, said: &Request, now: Timestamp) -> Result<Seat, Rejection> {
        let most = u64::try_from(self.bench.shop().at_once()).unwrap_or(u64::MAX);
        let full = || Rejection::at_capacity(most, most, BACK_AFTER_S);
        let seat = self.bench.seat().ok_or_else(full)?;
        in_time(said, now)?;
        self.pays(said)?;
        Ok(seat)
    }

    /// Checks the price (R88).
    fn pays(&self, said: &Request) -> Result<(), Rejection> {
        let skill = self.bench.shop().skill(&said.capability_id);
        let price = skill.map_or(Credits::ZERO, |skill| skill.price);
        match said.budget.unwrap_or(Credits::ZERO) < price {
            true => {
                let text = format!("This costs {0}: set budget to {0} or more", price.text(2));
                Err(Rejection::new(Rejected::PolicyViolation, text))
            }
            false => Ok(()),
        }
    }

    fn again(&self, said: &Request, answered: Answered) -> Response {
        match answered {
            Answered::Accepted(collaboration) => collaboration.response(said),
            Answered::Rejected(why) => self.rejects(said, why),
        }
    }

    fn rejects(&self, said: &Request, why: Rejection) -> Response {
        Response {
            request_id: said.request_id,
            responder_agent_id: self.node_id,
            answer: Answer::Rejected(why),
            correlation_id: said.correlation_id,
            timestamp: clock::now(),
            result: None,
        }
    }

    /// Runs until the work is done, cancelled, or past its deadline.
    async fn finish(&self, collaboration: &Collaboration, seat: Option<Seat>) {
        let job = collaboration.job();
        let id = job.id.clone();
        let left = job.deadline.map(|deadline| deadline.since(clock::now()));
        let work = self.bench.shop().work(job);
        let work = async {
            match left {
                Some(left) => timeout(span(left), work).await.ok(),
                None => Some(work.await),
            }
        };
        let ended = tokio::select! {
            outcome = work => Some(collaboration.ending(outcome)),
            _ = collaboration.result.wait() => None,
        };
        drop(seat);
        // Written to the journal before it is visible, so that it cannot change afterwards.
        let done = ended.and_then(|(over, done)| {
            let _ = self.journal.write(&collaboration.entry(Some(&over)));
            collaboration.result.end(over).map(|_| done)
        });
        // It was cancelled in the meantime.
        if done.is_none() {
            let _ = self.journal.write(&collaboration.entry(collaboration.result.now().as_ref()));
        }
        self.bench.put_away(&id);
        lock(&self.book).over(collaboration, done, clock::now());
    }

    /// Waits until a collaboration has ended or the caller's wait is over, and returns it.
    pub(super) async fn look(
        &self,
        id: Uuid,
        wait: Duration,
    ) -> Result<Arc<Collaboration>, Failure> {
        let found = lock(&self.book).find(id, clock::now());
        let collaboration = found.ok_or_else(|| Failure::not_found("collaboration"))?;
        let _ = timeout(wait, collaboration.result.wait()).await;
        Ok(collaboration)
    }

    /// Cancels a collaboration.
    pub(super) fn cancel(&self, id: Uuid, reason: Option<String>) -> Result<Over, Failure> {
        let found = lock(&self.book).find(id, clock::now());
        let collaboration = found.ok_or_else(|| Failure::not_found("collaboration"))?;
        let over = || Failure::new(Code::Conflict, "the collaboration already has a result");
        let over = collaboration.cancel(reason).ok_or_else(over)?;
        // If this write fails, a restart runs the work again; the caller still gets the
        // cancellation.
        let _ = self.journal.write(&collaboration.entry(Some(&over)));
        Ok(over)
    }

    /// Reads the node's work history.
    pub(super) fn with_record<T>(&self, read: impl FnOnce(&Record) -> T) -> T {
        read(lock(&self.book).record())
    }
}

/// Checks the deadline (R67). The duration is not known, so only a past deadline is too soon.
fn in_time(said: &Request, now: Timestamp) -> Result<(), Rejection> {
    match said.deadline {
        Some(deadline) if deadline <= now => {
            Err(Rejection::new(Rejected::DeadlineTooSoon, "Deadline is in the past"))
        }
        _ => Ok(()),
    }
}

/// Converts to a duration; zero if it is negative.
fn span(Millis(left): Millis) -> Duration {
    Duration::from_millis(u64::try_from(left).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_is_past_leaves_no_time() {
        assert_eq!(span(Millis(5)), Duration::from_millis(5));
        assert_eq!(span(Millis(-5)), Duration::ZERO);
    }
}
