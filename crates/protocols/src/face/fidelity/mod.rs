//! Fidelity: what a job looked like to each of its two sides, and what became of every field between.
//!
//! No protocol knows another one here either. Each says which of its fields is about what
//! ([`Part`]), in the file `sides.rs` of its folder, and the notes follow from two such lists. They
//! are a pure function of the job, so they are made when somebody wants to read them and never
//! stored.

mod convert;
mod find;
mod hop;
mod members;
mod note;
mod part;
mod side;
mod trace;

use std::pin::Pin;
use std::sync::Arc;

use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_core::money::Credits;
use rialto_core::notice::Notice;
use rialto_core::time::Timestamp;
use rialto_engine::Failure;

pub use convert::{Converted, convert};
pub use find::find;
pub use hop::{Hop, What, hops};
pub use members::Members;
pub use note::{Fate, Note, notes};
pub use part::Part;
pub use side::{Field, Layout, Side, fields, plain};
pub use trace::{Eyes, Trace, state, trace};

use super::Floor;

/// A job, and what its sides need to be shown as they were.
#[derive(Clone, Copy)]
pub struct Shown<'v> {
    pub floor: &'v Floor,
    pub job: &'v Job,
    /// How its worker was told to begin, and its requester of the end, if that is not too long ago.
    pub start: Option<&'v Notice>,
    pub end: Option<&'v Notice>,
}

/// A job that is looked for.
pub type Finding<'a> = Pin<Box<dyn Future<Output = Result<Option<Arc<Job>>, Failure>> + Send + 'a>>;

/// A protocol's two sides of a job.
pub trait Sides: Sync {
    /// The request as its requester wrote it; only for jobs of this protocol.
    fn asked(&self, shown: Shown<'_>) -> Side;

    /// The request as its worker, an agent of this protocol, gets it.
    fn given(&self, shown: Shown<'_>) -> Option<Side>;

    /// The result as its worker, an agent of this protocol, wrote it, as far as it said anything.
    fn made(&self, shown: Shown<'_>) -> Option<Side>;

    /// The result as its requester is told it; only for jobs of this protocol.
    fn told(&self, shown: Shown<'_>) -> Option<Side>;

    /// What its requester said that this protocol has no word for: a JSON object (B11).
    fn extras(&self, job: &Job) -> Option<String>;

    /// What its requester signed, word for word, where requesters sign.
    fn evidence(&self, _: &Job) -> Option<String> {
        None
    }

    /// The job that one of its parties calls so. Whether it is a party is for the caller to check.
    fn find<'a>(&'a self, floor: &'a Floor, by: AgentId, id: &'a str) -> Finding<'a>;

    /// Reads a request as a requester would send it; what is wrong with it otherwise.
    fn read(&self, bytes: &[u8], at: Timestamp) -> Result<(Side, Wanted), String>;

    /// The request an agent of this protocol would get, with marks where only a hub can tell.
    fn compose(&self, wanted: &Wanted, at: Timestamp) -> Side;
}

/// What a request of any protocol wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The name everybody has for what is wanted.
    pub skill: String,
    /// JSON text.
    pub input: String,
    pub budget: Option<Credits>,
    pub deadline: Option<Timestamp>,
    /// What its protocol has no word for: a JSON object.
    pub extras: Option<String>,
}

/// What the requester of a job of another protocol said that nobody else has a word for.
pub fn extras(job: &Job) -> Option<String> {
    hop::sides_of(job.origin).and_then(|sides| sides.extras(job))
}
