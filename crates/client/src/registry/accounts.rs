//! Accounts, transfers between their owners, and the heartbeat that keeps an agent listed.

use rialto_core::money::Credits;
use rialto_protocols::kit::object::Object;
use rialto_protocols::kit::rfc3339;
use rialto_protocols::registry::wire::DECIMALS;
use serde::Deserialize;
use uuid::Uuid;

use super::decimals;
use super::server::Server;
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
pub struct Paid {
    /// The transfer's id.
    pub id: Uuid,
    /// The amount.
    pub amount: Credits,
    /// The payer's available balance.
    pub sender_balance: Credits,
    /// Whether the job's hold had already paid, so that nothing was moved now.
    pub settled_before: bool,
}

#[derive(Deserialize)]
struct Wire {
    transfer: Made,
    #[serde(deserialize_with = "figures::credits")]
    sender_balance: Credits,
    #[serde(default)]
    settlement: String,
}

#[derive(Deserialize)]
struct Made {
    transfer_id: Uuid,
    #[serde(deserialize_with = "figures::credits")]
    amount: Credits,
}

/// The account of an owner.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Account {
    /// The owner.
    pub owner_id: String,
    /// The available credits.
    #[serde(deserialize_with = "figures::credits")]
    pub balance: Credits,
    /// The credits held for running jobs.
    #[serde(deserialize_with = "figures::credits")]
    pub held: Credits,
    /// The credits granted just now.
    #[serde(default, deserialize_with = "figures::maybe_credits")]
    pub granted: Option<Credits>,
}

#[derive(Deserialize)]
struct Beaten {}

impl Transfer {
    /// A transfer with a new id.
    pub fn new(
        from_owner: impl Into<String>,
        to_owner: impl Into<String>,
        amount: Credits,
    ) -> Result<Self, CallError> {
        let (from_owner, to_owner) = (from_owner.into(), to_owner.into());
        Ok(Self { id: ids::id()?, from_owner, to_owner, amount, job_id: None })
    }

    /// Sets the job it pays for.
    pub fn for_job(mut self, job_id: Uuid) -> Self {
        self.job_id = Some(job_id);
        self
    }

    fn write(&self) -> String {
        Object::new()
            .id("transfer_id", self.id)
            .text("from_owner", &self.from_owner)
            .text("to_owner", &self.to_owner)
            .raw("amount", &self.amount.text(DECIMALS))
            .maybe_id("job_id", self.job_id)
            .text("timestamp_utc", &rfc3339::seconds(clock::now()))
            .finish()
    }
}

impl Server {
    /// Makes a transfer, or confirms what a job's hold has paid. Needs a key of the payer.
    pub async fn transfer(&self, transfer: &Transfer) -> Result<Paid, CallError> {
        let wire: Wire = self.post(self.at(&["transfer"]), transfer.write()).await?;
        Ok(Paid {
            id: wire.transfer.transfer_id,
            amount: wire.transfer.amount,
            sender_balance: wire.sender_balance,
            settled_before: wire.settlement == "escrow",
        })
    }

    /// Opens an account. A grant needs an operator's key; otherwise it is ignored.
    pub async fn open_account(
        &self,
        owner: &str,
        grant: Option<Credits>,
    ) -> Result<Account, CallError> {
        let grant = grant.map(|grant| grant.text(DECIMALS));
        let body = Object::new().text("owner_id", owner);
        let body = body.maybe_raw("initial_balance", grant.as_deref()).finish();
        self.post_once(self.at(&["accounts"]), Some(body)).await
    }

    /// The account of an owner. Needs a key of that owner or of an operator.
    pub async fn account(&self, owner: &str) -> Result<Account, CallError> {
        self.get(self.at(&["accounts", owner])).await
    }

    /// Sends an agent's heartbeat, with its key. From then on it must keep sending them.
    pub async fn heartbeat(&self, agent_id: Uuid) -> Result<(), CallError> {
        let body = Object::new().id("agent_id", agent_id).finish();
        self.post(self.at(&["heartbeat"]), body).await.map(|Beaten {}| ())
    }
}
