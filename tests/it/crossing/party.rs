//! What a party of any protocol can do in a crossing: be hired, and hire.

use std::pin::Pin;

use rialto_core::price_step::PriceStep;
use serde_json::Value;

use crate::kit::TestHub;

/// A pending action.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// One protocol, and how its agents use a hub.
pub trait Protocol: Sync {
    /// Its id, as in `rialto_protocols::ALL`.
    fn id(&self) -> &'static str;

    /// Its price step (B9).
    fn price_step(&self) -> PriceStep;

    /// The price of its workers in these tests: as fine an amount as the protocol can express.
    fn price(&self) -> &'static str;

    /// Its own terms for the ends of a job: its column of the tables in section 6. Some protocols
    /// differ once the requester was told that a worker has it.
    fn words(&self, end: End, begun: bool) -> &'static str;

    /// Whether its agents can hire each other.
    fn hires_its_own(&self) -> bool {
        true
    }

    /// The responses its workers can give besides a result.
    fn sayings(&self) -> &'static [Saying];

    /// Registers a worker. The seat is a number that is unique on this hub.
    fn worker<'a>(&'a self, hub: &'a TestHub, seat: u8, terms: Terms)
    -> Doing<'a, Box<dyn Worker>>;

    /// Registers a requester, without credits.
    fn requester<'a>(&'a self, hub: &'a TestHub, seat: u8) -> Doing<'a, Box<dyn Requester>>;

    /// A worker as this protocol's own list shows it (B1).
    fn find<'a>(&'a self, hub: &'a TestHub, worker: &'a dyn Worker) -> Doing<'a, Found>;
}

/// The terms of a worker.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Its price, as decimal text.
    pub price: &'static str,
    /// It confirms each job first, where the protocol has that.
    pub asked_first: bool,
    /// Its input must be an object with a number `n`, where the protocol has schemas.
    pub strict: bool,
}

impl Terms {
    pub fn at(price: &'static str) -> Self {
        Self { price, asked_first: false, strict: false }
    }
}

/// A worker's response to a job other than a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Saying {
    /// It cannot do the job.
    Refuses,
    /// It will not do the job.
    Declines,
    /// It tried and failed.
    Fails,
    /// It is not online.
    Offline,
    /// It declares an input schema.
    Strict,
}

/// The answer about an offline worker whose requester waits.
pub const WAITS: &str = "waits";

/// The ends of a job, in the core's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    Done,
    /// The worker cannot do it.
    Refused,
    /// The worker will not do it.
    Declined,
    Failed,
    TimedOut,
    Cancelled,
    /// These end a request before there is a job.
    Offline,
    BudgetTooLow,
    TooFewCredits,
    Unfit,
}

/// A worker as another protocol lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its alias there.
    pub alias: String,
    /// Its skill, as it is requested there.
    pub skill: String,
    /// Its price there, as decimal text.
    pub price: String,
    /// The whole listed entry.
    pub entry: String,
}

/// A job to request, and the most that is paid.
#[derive(Clone, Debug)]
pub struct Order {
    /// A JSON object, exactly as it must arrive.
    pub input: String,
    /// Decimal text.
    pub budget: String,
    /// A JSON value for a member `aside`, which is unknown to all protocols.
    pub aside: Option<String>,
}

impl Order {
    /// The member `aside`, to be put after another one.
    pub fn more(&self) -> String {
        self.aside.as_ref().map(|aside| format!(r#","aside":{aside}"#)).unwrap_or_default()
    }
}

/// The members of a message, each under the name in its note (B11).
pub type Members = Vec<(String, Value)>;

/// An agent that works.
pub trait Worker {
    fn home(&self) -> &'static dyn Protocol;
    /// Its id in its own protocol.
    fn native(&self) -> &str;
    /// Its display name.
    fn name(&self) -> &str;
    /// Its account.
    fn owner(&self) -> String;
    /// Its skill, by the common name.
    fn skill(&self) -> &'static str;
    /// Its successful result: a JSON object.
    fn output(&self) -> &'static str;

    /// Every job that waits for it now.
    fn waiting<'a>(&'a self, hub: &'a TestHub) -> Doing<'a, Vec<Given>>;

    /// Does the work; returns the bytes it sent.
    fn deliver<'a>(&'a self, hub: &'a TestHub, given: &'a Given) -> Doing<'a, Sent>;

    /// Does the work and reports this cost; `None` where a worker cannot report one.
    fn deliver_for<'a>(
        &'a self,
        _: &'a TestHub,
        _: &'a Given,
        _cost: &'a str,
    ) -> Doing<'a, Option<Sent>> {
        Box::pin(async { None })
    }

    /// Gives another response, with this text.
    fn say<'a>(
        &'a self,
        hub: &'a TestHub,
        given: &'a Given,
        saying: Saying,
        text: &'a str,
    ) -> Doing<'a, Sent>;

    /// A requester of the same owner; `None` where an owner has one agent.
    fn colleague<'a>(&'a self, _: &'a TestHub) -> Doing<'a, Option<Box<dyn Requester>>> {
        Box::pin(async { None })
    }

    /// Goes offline. An agent whose presence expires by itself need not do anything.
    fn leave(&self) {}

    /// Unregisters where the protocol allows it, and registers again under its old id, with another
    /// name where a name is not the id.
    fn register_again<'a>(&'a self, hub: &'a TestHub, name: &'a str) -> Doing<'a, ()>;

    /// Changes its endpoint, where the protocol has endpoints.
    fn moves_to<'a>(&'a self, _: &'a TestHub, _: &'a str) -> Doing<'a, ()> {
        Box::pin(async { panic!("this protocol has no endpoints") })
    }

    /// The same agent as a requester.
    fn as_requester(&self) -> Box<dyn Requester + '_>;

    /// The trace of one of its jobs (B18).
    fn trace<'a>(&'a self, hub: &'a TestHub, id: &'a str) -> Doing<'a, String>;
}

/// A job as its worker sees it.
#[derive(Clone, Debug)]
pub struct Given {
    /// The worker's id of it.
    pub id: String,
    /// Its other ids, where the protocol has more than one.
    pub also: Vec<String>,
    /// The input, exactly as it arrived.
    pub input: String,
    /// The amount that will be paid, as decimal text, where the protocol shows it.
    pub price: Option<String>,
    /// The received bytes.
    pub bytes: String,
}

/// A sent message, and whether the hub accepted it.
#[derive(Clone, Debug)]
pub struct Sent {
    pub bytes: String,
    pub members: Members,
    pub taken: bool,
    /// The hub's answer.
    pub answer: String,
}

/// An agent that hires.
pub trait Requester {
    /// Its id in its own protocol.
    fn native(&self) -> &str;
    /// Its account.
    fn owner(&self) -> String;

    /// Requests a job, and agrees to the price if that is needed.
    fn hire<'a>(
        &'a self,
        hub: &'a TestHub,
        of: &'a Found,
        order: &'a Order,
    ) -> Doing<'a, Result<Ticket, Refused>>;

    /// Sends the same request again (B13).
    fn repeat<'a>(&'a self, hub: &'a TestHub, ticket: &'a Ticket) -> Doing<'a, Repeated>;

    /// Waits for the end of the job.
    fn ended<'a>(&'a self, hub: &'a TestHub, ticket: &'a Ticket) -> Doing<'a, Ended>;

    /// Requests a job and cancels it before work starts; `None` where the protocol cannot cancel.
    fn call_off<'a>(
        &'a self,
        hub: &'a TestHub,
        of: &'a Found,
        order: &'a Order,
    ) -> Doing<'a, Option<Ended>>;

    /// The trace of one of its jobs (B18).
    fn trace<'a>(&'a self, hub: &'a TestHub, id: &'a str) -> Doing<'a, String>;

    /// Tries to act as another agent, and to register under its name.
    fn pose<'a>(&'a self, hub: &'a TestHub, whom: &'a Found) -> Doing<'a, Posed>;
}

/// The answers to an impostor.
#[derive(Clone, Debug)]
pub struct Posed {
    /// To its message in that name.
    pub spoke: Refused,
    /// To its registration; `None` where a key is the registration.
    pub took: Option<Refused>,
}

/// A job that was opened.
#[derive(Clone)]
pub struct Ticket {
    /// The requester's id of it.
    pub id: String,
    /// The hub's own id, from the header `Rialto-Job` (B18).
    pub uuid: String,
    /// The request, to be repeated: path and body.
    pub path: String,
    pub body: Vec<u8>,
    pub members: Members,
    /// What was sent and answered until both agreed, in readable form.
    pub bytes: String,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "job {}: {}", self.uuid, self.bytes)
    }
}

/// A request that opened no job.
#[derive(Clone, Debug)]
pub struct Refused {
    /// In the protocol's own terms.
    pub words: String,
    pub bytes: String,
}

/// The answer to a repeated request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated {
    pub id: String,
    /// `None` where the answer opened no job.
    pub uuid: Option<String>,
}

/// How a job ended, as its requester sees it.
#[derive(Clone, Debug)]
pub struct Ended {
    /// In the protocol's own terms.
    pub words: String,
    /// The worker's own text, where the protocol shows it.
    pub detail: String,
    /// The requester's id of the job, as the final message names it.
    pub id: String,
    /// The output, exactly as it arrived.
    pub output: Option<String>,
    pub bytes: String,
}
