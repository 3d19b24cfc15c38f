//! The hub's own records of the demo, read after its end.

use rialto_client::CallError;

use super::history::{self, Fact};
use super::hops::{self, Hop};
use super::demo_hub::House;
use super::ledger::{self, Ledger};
use super::demo_agent::People;
use super::agents::reader::Reader;

/// Everything the hub has recorded.
#[derive(Clone, Debug)]
pub struct Books {
    /// What happened to jobs.
    pub history: Vec<Fact>,
    /// All movements of credits.
    pub ledger: Ledger,
    /// How the Reader's job was translated between protocols and back.
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
