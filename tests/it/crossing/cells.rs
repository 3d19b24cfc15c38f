//! The matrix itself: one hub, every ordered pair of protocols, all at the same time.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

use super::parties::{ALL, OTHER_WORKERS};
use super::party::{
    Found, Given, Order, Protocol, Refused, Requester, Saying, Terms, Ticket, Worker,
};
use crate::kit::{TestHub, eventually, together};

/// Settings under which nobody waits for what another test would not.
pub const FLAGS: &[(&str, &str)] = &[("registry.sync_wait", "1ms")];

/// What every requester has to spend.
pub const PURSE: &str = "100";

/// One cell of the matrix: somebody who hires, and somebody of that protocol to be hired.
#[derive(Clone, Copy)]
pub struct Cell {
    pub from: &'static dyn Protocol,
    pub to: &'static dyn Protocol,
    /// Two numbers nobody else on the hub has.
    seats: [u8; 2],
}

impl Cell {
    /// Every ordered pair that can do business, the same twice included.
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

    /// The same pair in other seats.
    pub fn seated(self, number: u8) -> Self {
        Self { seats: [2 * number, 2 * number + 1], ..self }
    }

    pub fn name(&self) -> String {
        format!("{}-{}", self.from.id(), self.to.id())
    }

    pub fn crosses(&self) -> bool {
        self.from.id() != self.to.id()
    }

    /// The two of them, the requester with money.
    pub async fn meet(&self, hub: &TestHub, terms: Terms) -> Meeting {
        self.meet_with(hub, terms, PURSE).await
    }

    /// The two of them, the requester with so much money.
    pub async fn meet_with(&self, hub: &TestHub, terms: Terms, purse: &str) -> Meeting {
        let worker = self.to.worker(hub, self.seats[0], terms).await;
        let requester = self.from.requester(hub, self.seats[1]).await;
        hub.grant(&requester.owner(), purse).await;
        Meeting { worker, requester }
    }
}

/// A requester and a worker.
pub struct Meeting {
    pub worker: Box<dyn Worker>,
    pub requester: Box<dyn Requester>,
}

impl Meeting {
    /// The one thing that waits for the worker.
    pub async fn received(&self, hub: &TestHub) -> Given {
        received(hub, self.worker.as_ref()).await
    }
}

/// A hire to which the worker says something at once. Some requesters are kept waiting until it has
/// spoken; who is refused before that is told so.
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

/// The one thing that waits for a worker, once it is there.
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

/// Something that is about one cell.
pub trait Placed {
    fn cell(&self) -> Cell;
}

impl Placed for Cell {
    fn cell(&self) -> Cell {
        *self
    }
}

/// Walks all of these on one hub at the same time, and tells of every one that went wrong.
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
    assert!(wrong.is_empty(), "{} cells went wrong\n{}", wrong.len(), wrong.join("\n"));
    well
}

/// The words of a panic.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}
