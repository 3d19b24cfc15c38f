//! Accounts, transfers between their owners, and the heartbeat that keeps an agent listed.

use rialto_core::money::Credits;
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::rfc3339;
use rialto_protocols::registry::wire::DECIMALS;
use serde::Deserialize;
use uuid::Uuid;

use super::decimals;
use super::server::{Call, Server};
use crate::call::CallError;
use crate::{clock, ids};

/// A transfer. It is idempotent: sent again, it is still made once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The transfer's id.
    pub id: Uuid,
    /// The payer.
    pub from_owner: String,
    /// The payee.
    pub to_owner: String,
    /// The amount.
    pub amount: Credits,
    /// The job it pays for, if any.
    pub job_id: Option<Uuid>,
}

/// A completed transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferReceipt {
    /// The transfer's id.
    pub id: Uuid,
    /// The amount.
    pub amount: Credits,
    /// The payer's available balance.
    pub sender_balance: Credits,
    /// Whether the job's hold had already paid, so that nothing was moved now.
    pub already_settled: bool,
}

#[derive(Deserialize)]
struct TransferResponse {
    transfer: TransferBody,
    #[serde(deserialize_with = "decimals::credits")]
    sender_balance: Credits,
    #[serde(default)]
    settlement: String,
}

#[derive(Deserialize)]
struct TransferBody {
    transfer_id: Uuid,
    #[serde(deserialize_with = "decimals::credits")]
    amount: Credits,
}

/// The account of an owner.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Account {
    /// The owner.
    pub owner_id: String,
    /// The available credits.
    #[serde(deserialize_with = "decimals::credits")]
    pub balance: Credits,
    /// The credits held for running jobs.
    #[serde(deserialize_with = "decimals::credits")]
    pub held: Credits,
    /// The credits granted just now.
    #[serde(default, deserialize_with = "decimals::optional_credits")]
    pub granted: Option<Credits>,
}

#[derive(Deserialize)]
struct HeartbeatResponse {}

impl Transfer {
    /// A transfer with a new id.
    pub fn new(
        from_owner: impl Into<String>,
        to_owner: impl Into<String>,
        amount: Credits,
    ) -> Result<Self, CallError> {
        let (from_owner, to_owner) = (from_owner.into(), to_owner.into());
        Ok(Self { id: ids::random_id()?, from_owner, to_owner, amount, job_id: None })
    }

    /// Sets the job it pays for.
    pub fn for_job(mut self, job_id: Uuid) -> Self {
        self.job_id = Some(job_id);
        self
    }

    fn write(&self) -> String {
        ObjectWriter::new()
            .uuid("transfer_id", self.id)
            .text("from_owner", &self.from_owner)
            .text("to_owner", &self.to_owner)
            .raw("amount", &self.amount.to_text(DECIMALS))
            .maybe_uuid("job_id", self.job_id)
            .text("timestamp_utc", &rfc3339::format_seconds(clock::now()))
            .finish()
    }
}

impl Server {
    /// Makes a transfer, or confirms what a job's hold has paid. Needs a key of the payer.
    pub async fn transfer(&self, transfer: &Transfer) -> Result<TransferReceipt, CallError> {
        let wire: TransferResponse = self.post(self.url(&["transfer"]), transfer.write()).await?;
        Ok(TransferReceipt {
            id: wire.transfer.transfer_id,
            amount: wire.transfer.amount,
            sender_balance: wire.sender_balance,
            already_settled: wire.settlement == "escrow",
        })
    }

    /// Opens an account. A grant needs an operator's key; otherwise it is ignored.
    pub async fn open_account(
        &self,
        owner: &str,
        grant: Option<Credits>,
    ) -> Result<Account, CallError> {
        let grant = grant.map(|grant| grant.to_text(DECIMALS));
        let body = ObjectWriter::new().text("owner_id", owner);
        let body = body.maybe_raw("initial_balance", grant.as_deref()).finish();
        self.call(Call::post_idempotent(self.url(&["accounts"]), Some(body))?).await
    }

    /// The account of an owner. Needs a key of that owner or of an operator.
    pub async fn account(&self, owner: &str) -> Result<Account, CallError> {
        self.get(self.url(&["accounts", owner])).await
    }

    /// Sends an agent's heartbeat, with its key. From then on it must keep sending them.
    pub async fn heartbeat(&self, agent_id: Uuid) -> Result<(), CallError> {
        let body = ObjectWriter::new().uuid("agent_id", agent_id).finish();
        self.post(self.url(&["heartbeat"]), body).await.map(|HeartbeatResponse {}| ())
    }
}
