//! The books: what the hub itself has to say about the story, read after its end.

use rialto_client::CallError;

use super::history::{self, Fact};
use super::hops::{self, Hop};
use super::house::House;
use super::ledger::{self, Ledger};
use super::people::People;
use super::players::reader::Reader;

/// Everything the hub has written down.
#[derive(Clone, Debug)]
pub struct Books {
    /// What happened to jobs.
    pub history: Vec<Fact>,
    /// Where every credit went.
    pub ledger: Ledger,
    /// How the Reader's job crossed from protocol to protocol and back.
    pub hops: Vec<Hop>,
}

impl Books {
    pub async fn read(
        house: &House,
        reader: &Reader,
        job: &str,
        people: &People,
    ) -> Result<Self, CallError> {
        Ok(Self {
            history: history::read(&house.engine, people).await?,
            ledger: ledger::read(&house.operator, people).await?,
            hops: hops::read(reader, job).await?,
        })
    }
}
