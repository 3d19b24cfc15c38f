//! What a party of any protocol can do in a crossing: be hired, and hire.

use std::pin::Pin;

use rialto_core::grain::Grain;
use serde_json::Value;

use crate::kit::TestHub;

/// Something under way.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// One protocol, and how its agents come to a hub.
pub trait Protocol: Sync {
    /// Its id, as in `rialto_protocols::ALL`.
    fn id(&self) -> &'static str;

    /// How finely it counts money (B9).
    fn grain(&self) -> Grain;

    /// What its workers ask in these tests: as fine an amount as the protocol can say.
    fn price(&self) -> &'static str;

    /// Its own words for what can become of a job: its column of the tables in section 6. Some
    /// protocols say it otherwise once the requester was told that somebody has it.
    fn words(&self, end: End, begun: bool) -> &'static str;

    /// Whether its agents can hire each other.
    fn hires_its_own(&self) -> bool {
        true
    }

    /// What its workers can say besides doing the work.
    fn sayings(&self) -> &'static [Saying];

    /// Somebody who works. The seat is a number nobody else on this hub has.
    fn worker<'a>(&'a self, hub: &'a TestHub, seat: u8, terms: Terms)
    -> Doing<'a, Box<dyn Worker>>;

    /// Somebody who hires, with an empty purse.
    fn requester<'a>(&'a self, hub: &'a TestHub, seat: u8) -> Doing<'a, Box<dyn Requester>>;

    /// A worker as this protocol's own list shows it (B1).
    fn find<'a>(&'a self, hub: &'a TestHub, worker: &'a dyn Worker) -> Doing<'a, Found>;
}

/// On what terms somebody works.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// What it asks, as decimal text.
    pub price: &'static str,
    /// It is asked before it is given anything, where the protocol knows that.
    pub asked_first: bool,
    /// Its input must be an object with a number `n`, where the protocol can say so.
    pub strict: bool,
}

impl Terms {
    pub fn at(price: &'static str) -> Self {
        Self { price, asked_first: false, strict: false }
    }
}

/// What a worker can say to a job instead of doing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Saying {
    /// It cannot do this.
    Refuses,
    /// It will not do this.
    Declines,
    /// It tried, and it went wrong.
    Fails,
    /// Nobody is there.
    Offline,
    /// It names what its input must look like.
    Strict,
}

/// What is said of somebody who is not there where one waits for it.
pub const WAITS: &str = "waits";

/// What can become of a job, in the core's words.
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
    /// These end a job before there is one.
    Offline,
    BudgetTooLow,
    TooFewCredits,
    Unfit,
}

/// Somebody as another protocol lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name there.
    pub alias: String,
    /// What it does, as one would ask for it there.
    pub skill: String,
    /// What it costs there, as decimal text.
    pub price: String,
    /// The whole entry, as it is listed.
    pub entry: String,
}

/// What is to be done, and the most that is paid.
#[derive(Clone, Debug)]
pub struct Order {
    /// A JSON object, exactly as it is to arrive.
    pub input: String,
    /// Decimal text.
    pub budget: String,
    /// A JSON value for a member `aside`, which no protocol has a word for.
    pub aside: Option<String>,
}

impl Order {
    /// The member `aside`, to stand behind another one.
    pub fn more(&self) -> String {
        self.aside.as_ref().map(|aside| format!(r#","aside":{aside}"#)).unwrap_or_default()
    }
}

/// What a message says, each under the name that a note of it has (B11).
pub type Members = Vec<(String, Value)>;

/// Somebody who works.
pub trait Worker {
    fn home(&self) -> &'static dyn Protocol;
    /// Its id in its own protocol.
    fn native(&self) -> &str;
    /// How it calls itself.
    fn name(&self) -> &str;
    /// Its account.
    fn owner(&self) -> String;
    /// What it does, by the common name of it.
    fn skill(&self) -> &'static str;
    /// What it answers when it succeeds: a JSON object.
    fn output(&self) -> &'static str;

    /// Everything that waits for it now.
    fn waiting<'a>(&'a self, hub: &'a TestHub) -> Doing<'a, Vec<Given>>;

    /// Does the work; gives the bytes it sent.
    fn deliver<'a>(&'a self, hub: &'a TestHub, given: &'a Given) -> Doing<'a, Sent>;

    /// Does the work and says that it cost so much; `None` where a worker has no say in that.
    fn deliver_for<'a>(
        &'a self,
        _: &'a TestHub,
        _: &'a Given,
        _cost: &'a str,
    ) -> Doing<'a, Option<Sent>> {
        Box::pin(async { None })
    }

    /// Says something else about the work, in these words of its own.
    fn say<'a>(
        &'a self,
        hub: &'a TestHub,
        given: &'a Given,
        saying: Saying,
        text: &'a str,
    ) -> Doing<'a, Sent>;

    /// Somebody who hires for the same owner; `None` where an owner is one agent.
    fn colleague<'a>(&'a self, _: &'a TestHub) -> Doing<'a, Option<Box<dyn Requester>>> {
        Box::pin(async { None })
    }

    /// Goes away. Who is there only as long as it says so need not do anything.
    fn leave(&self) {}

    /// Leaves for good where the protocol lets it, and comes back under its old id, with another name
    /// where a name is not the id.
    fn register_again<'a>(&'a self, hub: &'a TestHub, name: &'a str) -> Doing<'a, ()>;

    /// Is called somewhere else from now on, where the protocol has endpoints.
    fn moves_to<'a>(&'a self, _: &'a TestHub, _: &'a str) -> Doing<'a, ()> {
        Box::pin(async { panic!("nobody calls it") })
    }

    /// The same agent as one that hires.
    fn as_requester(&self) -> Box<dyn Requester + '_>;

    /// A job of its own, told from beginning to end (B18).
    fn trace<'a>(&'a self, hub: &'a TestHub, id: &'a str) -> Doing<'a, String>;
}

/// Work as its worker sees it.
#[derive(Clone, Debug)]
pub struct Given {
    /// What the worker calls it.
    pub id: String,
    /// Other names it goes by, where the protocol has more than one.
    pub also: Vec<String>,
    /// The input, exactly as it arrived.
    pub input: String,
    /// What it will be paid, as decimal text, where the protocol says so.
    pub price: Option<String>,
    /// What arrived.
    pub bytes: String,
}

/// What somebody sent, and whether the hub took it.
#[derive(Clone, Debug)]
pub struct Sent {
    pub bytes: String,
    pub members: Members,
    pub taken: bool,
    /// What the hub answered.
    pub answer: String,
}

/// Somebody who hires.
pub trait Requester {
    /// Its id in its own protocol.
    fn native(&self) -> &str;
    /// Its account.
    fn owner(&self) -> String;

    /// Asks somebody for work, and agrees to the price if that is needed.
    fn hire<'a>(
        &'a self,
        hub: &'a TestHub,
        of: &'a Found,
        order: &'a Order,
    ) -> Doing<'a, Result<Ticket, Refused>>;

    /// Sends the very same request again (B13).
    fn repeat<'a>(&'a self, hub: &'a TestHub, ticket: &'a Ticket) -> Doing<'a, Repeated>;

    /// Waits for the end of it.
    fn ended<'a>(&'a self, hub: &'a TestHub, ticket: &'a Ticket) -> Doing<'a, Ended>;

    /// Asks and calls it off before anybody has begun; `None` where the protocol has no word for it.
    fn call_off<'a>(
        &'a self,
        hub: &'a TestHub,
        of: &'a Found,
        order: &'a Order,
    ) -> Doing<'a, Option<Ended>>;

    /// A job of its own, told from beginning to end (B18).
    fn trace<'a>(&'a self, hub: &'a TestHub, id: &'a str) -> Doing<'a, String>;

    /// Tries to speak as somebody else, and to register under its name.
    fn pose<'a>(&'a self, hub: &'a TestHub, whom: &'a Found) -> Doing<'a, Posed>;
}

/// What was answered to somebody who said it was another.
#[derive(Clone, Debug)]
pub struct Posed {
    /// To what it said in that name.
    pub spoke: Refused,
    /// To its registration; `None` where one registers by having the key.
    pub took: Option<Refused>,
}

/// A job that was opened.
#[derive(Clone)]
pub struct Ticket {
    /// What the requester calls it.
    pub id: String,
    /// The hub's own name for it, from the header `Rialto-Job` (B18).
    pub uuid: String,
    /// The request, to be sent again: where to, and what.
    pub path: String,
    pub body: Vec<u8>,
    pub members: Members,
    /// What was sent and answered until both agreed, to be read.
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
    /// In the protocol's own words.
    pub words: String,
    pub bytes: String,
}

/// What a repeated request was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated {
    pub id: String,
    /// `None` where the answer opened nothing.
    pub uuid: Option<String>,
}

/// How a job ended, as its requester sees it.
#[derive(Clone, Debug)]
pub struct Ended {
    /// In the protocol's own words.
    pub words: String,
    /// The worker's own text, wherever the protocol shows it.
    pub detail: String,
    /// The requester's name of the job, as the end names it.
    pub id: String,
    /// The output, exactly as it arrived.
    pub output: Option<String>,
    pub bytes: String,
}
