//! The hub's own records of the demo, read after its end.

use rialto_client::CallError;

use super::agents::reader::Reader;
use super::demo_agent::DemoAgents;
use super::demo_hub::DemoHub;
use super::history::{self, Fact};
use super::hops::{self, Hop};
use super::ledger::{self, Ledger};

/// Everything the hub has recorded.
#[derive(Clone, Debug)]
pub struct HubRecords {
    /// What happened to jobs.
    pub history: Vec<Fact>,
    /// All movements of credits.
    pub ledger: Ledger,
    /// How the Reader's job was translated between protocols and back.
    pub hops: Vec<Hop>,
}

impl HubRecords {
    pub async fn read(
        policy: &DemoHub,
        reader: &Reader,
        job: &str,
        people: &DemoAgents,
    ) -> Result<Self, CallError> {
        Ok(Self {
            history: history::read_history(&policy.engine, people).await?,
            ledger: ledger::read_ledger(&policy.operator, people).await?,
            hops: hops::read_hops(reader, job).await?,
        })
    }
}
