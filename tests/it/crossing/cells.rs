//! The matrix: one hub, every ordered pair of protocols, all at the same time.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use rialto_core::job::Job;

use super::parties::{ALL, OTHER_WORKERS};
use super::party::{
    Found, Given, Order, Protocol, Refused, Requester, Saying, Terms, Ticket, Worker,
};
use crate::kit::{TestHub, eventually, together};

/// Settings under which no request waits for a result.
pub const FLAGS: &[(&str, &str)] = &[("registry.sync_wait", "1ms")];

/// Balance of every requester.
pub const STARTING_CREDITS: &str = "100";

/// One cell of the matrix: a requester's protocol and a worker's protocol.
#[derive(Clone, Copy)]
pub struct Cell {
    pub from: &'static dyn Protocol,
    pub to: &'static dyn Protocol,
    /// Two numbers that are unique on the hub.
    seats: [u8; 2],
}

impl Cell {
    /// Every ordered pair that can exchange work, including a protocol with itself.
    pub fn all() -> Vec<Self> {
        Self::square()
            .into_iter()
            .filter(|cell| cell.crosses() || cell.from.hires_its_own())
            .collect()
    }

    /// Every ordered pair.
    pub fn square() -> Vec<Self> {
        let pairs = ALL.iter().flat_map(|from| ALL.iter().map(move |to| (*from, *to)));
        let cell = |(from, to)| Self { from, to, seats: [0, 1] };
        pairs.zip(1..).map(|(pair, number)| cell(pair).seated(number)).collect()
    }

    /// Every protocol with every worker that is reached in another way than usual.
    pub fn others() -> Vec<Self> {
        let pairs = ALL.iter().flat_map(|from| OTHER_WORKERS.iter().map(move |to| (*from, *to)));
        let cell = |(from, to)| Self { from, to, seats: [0, 1] };
        let cells = pairs.zip(101..).map(|(pair, number)| cell(pair).seated(number));
        cells.filter(|cell| cell.crosses() || cell.from.hires_its_own()).collect()
    }

    /// The same pair with other numbers.
    pub fn seated(self, number: u8) -> Self {
        Self { seats: [2 * number, 2 * number + 1], ..self }
    }

    pub fn name(&self) -> String {
        format!("{}-{}", self.from.id(), self.to.id())
    }

    pub fn crosses(&self) -> bool {
        self.from.id() != self.to.id()
    }

    /// Registers the two agents; the requester gets money.
    pub async fn meet(&self, hub: &TestHub, terms: Terms) -> Meeting {
        self.meet_with(hub, terms, STARTING_CREDITS).await
    }

    /// Registers the two agents; the requester gets this much money.
    pub async fn meet_with(&self, hub: &TestHub, terms: Terms, balances: &str) -> Meeting {
        let worker = self.to.worker(hub, self.seats[0], terms).await;
        let requester = self.from.requester(hub, self.seats[1]).await;
        hub.grant(&requester.owner(), balances).await;
        Meeting { worker, requester }
    }
}

/// A requester and a worker.
pub struct Meeting {
    pub worker: Box<dyn Worker>,
    pub requester: Box<dyn Requester>,
}

impl Meeting {
    /// The one job that waits for the worker.
    pub async fn received(&self, hub: &TestHub) -> Given {
        received(hub, self.worker.as_ref()).await
    }
}

/// A hire to which the worker responds at once. Some requesters wait until it has responded; an
/// earlier refusal is returned.
pub async fn hire_and_say(
    hub: &TestHub,
    meeting: &Meeting,
    (of, order): (&Found, &Order),
    (saying, text): (Saying, &str),
) -> Result<Ticket, Refused> {
    let Meeting { worker, requester } = meeting;
    let mut hire = requester.hire(hub, of, order);
    let (hired, given) = tokio::select! {
        hired = &mut hire => (Some(hired?), None),
        given = meeting.received(hub) => (None, Some(given)),
    };
    let given = match given {
        Some(given) => given,
        None => meeting.received(hub).await,
    };
    let sent = worker.say(hub, &given, saying, text).await;
    assert!(sent.taken, "{}", sent.answer);
    match hired {
        Some(ticket) => Ok(ticket),
        None => hire.await,
    }
}

/// The one job that waits for a worker, once it is there.
pub async fn received(hub: &TestHub, worker: &dyn Worker) -> Given {
    let mut waiting = Vec::new();
    eventually(async || {
        waiting = worker.waiting(hub).await;
        !waiting.is_empty()
    })
    .await;
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    waiting.remove(0)
}

/// Waits until the hub has recorded that the worker has its job, which it does beside the answer.
pub async fn recorded_as_received(hub: &TestHub, ticket: &Ticket) {
    let is_received = |job: &Job| {
        let turn = job.assignment.and_then(|turn| turn.received_at);
        // An invited worker has no assignment yet.
        turn.or(job.candidates.read_at).is_some()
    };
    eventually(async || {
        hub.engine.with_world(|world| {
            let mut jobs = world.live_jobs();
            let job = jobs.find(|job| job.uuid.to_string() == ticket.uuid);
            job.is_some_and(|job| is_received(job))
        })
    })
    .await;
}

/// A value that belongs to one cell.
pub trait Placed {
    fn cell(&self) -> Cell;
}

impl Placed for Cell {
    fn cell(&self) -> Cell {
        *self
    }
}

impl Placed for (Cell, u8) {
    fn cell(&self) -> Cell {
        self.0
    }
}

/// Runs all of these on one hub at the same time, and reports every failure.
pub async fn walk<P: Placed, T>(
    hub: &TestHub,
    all: Vec<P>,
    step: impl AsyncFn(&TestHub, P) -> T,
) -> Vec<T> {
    let step = &step;
    let walks = all.into_iter().map(|one| async move {
        let name = one.cell().name();
        let walked = AssertUnwindSafe(step(hub, one)).catch_unwind().await;
        walked.map_err(|panic| format!("{name}: {}", said(panic.as_ref())))
    });
    let (mut well, mut wrong) = (Vec::new(), Vec::new());
    for walked in together(walks).await {
        match walked {
            Ok(came) => well.push(came),
            Err(words) => wrong.push(words),
        }
    }
    assert!(wrong.is_empty(), "{} cells failed\n{}", wrong.len(), wrong.join("\n"));
    well
}

/// The message of a panic.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}
