//! Money: accounts, and payments between their owners; and the sign of life that keeps an agent on
//! the lists.

use rialto_core::money::Credits;
use rialto_protocols::kit::object::Object;
use rialto_protocols::kit::stamp;
use rialto_protocols::registry::wire::DECIMALS;
use serde::Deserialize;
use uuid::Uuid;

use super::figures;
use super::server::Server;
use crate::call::CallError;
use crate::{clock, fresh};

/// A payment that can be sent as often as needed: it is made once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// What it is called.
    pub id: Uuid,
    /// Who pays.
    pub from_owner: String,
    /// Who is paid.
    pub to_owner: String,
    /// How much.
    pub amount: Credits,
    /// The job it is for, if it is for one.
    pub job_id: Option<Uuid>,
}

/// A payment that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paid {
    /// What it is called.
    pub id: Uuid,
    /// How much.
    pub amount: Credits,
    /// What the payer has left to spend.
    pub sender_balance: Credits,
    /// Whether the job's own hold had paid already, so that nothing moved now.
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

/// What an owner has.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Account {
    /// Whose it is.
    pub owner_id: String,
    /// What can be spent.
    #[serde(deserialize_with = "figures::credits")]
    pub balance: Credits,
    /// What is held for jobs that run.
    #[serde(deserialize_with = "figures::credits")]
    pub held: Credits,
    /// What was granted just now.
    #[serde(default, deserialize_with = "figures::maybe_credits")]
    pub granted: Option<Credits>,
}

#[derive(Deserialize)]
struct Beaten {}

impl Transfer {
    /// A payment under a new id.
    pub fn new(
        from_owner: impl Into<String>,
        to_owner: impl Into<String>,
        amount: Credits,
    ) -> Result<Self, CallError> {
        let (from_owner, to_owner) = (from_owner.into(), to_owner.into());
        Ok(Self { id: fresh::id()?, from_owner, to_owner, amount, job_id: None })
    }

    /// The same for a job.
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
            .text("timestamp_utc", &stamp::seconds(clock::now()))
            .finish()
    }
}

impl Server {
    /// Pays, or confirms what a job's hold has paid: with a key of who pays.
    pub async fn transfer(&self, transfer: &Transfer) -> Result<Paid, CallError> {
        let wire: Wire = self.post(self.at(&["transfer"]), transfer.write()).await?;
        Ok(Paid {
            id: wire.transfer.transfer_id,
            amount: wire.transfer.amount,
            sender_balance: wire.sender_balance,
            settled_before: wire.settlement == "escrow",
        })
    }

    /// Opens an account. Only an operator's grant is granted; anybody else's is ignored.
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

    /// What an owner has: with a key of that owner, or an operator's.
    pub async fn account(&self, owner: &str) -> Result<Account, CallError> {
        self.get(self.at(&["accounts", owner])).await
    }

    /// Says that an agent is there, with its key; from then on it must go on saying so.
    pub async fn heartbeat(&self, agent_id: Uuid) -> Result<(), CallError> {
        let body = Object::new().id("agent_id", agent_id).finish();
        self.post(self.at(&["heartbeat"]), body).await.map(|Beaten {}| ())
    }
}
