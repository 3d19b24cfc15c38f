//! The ledger: double entry, append-only, chained by hash.
//!
//! Every entry moves an amount from one sub-account to another, so the sum over all sub-accounts is
//! always zero. Credits for a job are held by moving them from an owner's available sub-account to
//! its held one.

pub mod accounts;
pub mod post;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::alias::Digest;
use crate::id::{EntryId, JobId, OwnerId, TransferId};
use crate::money::Credits;
use crate::time::Timestamp;

/// One entry of the ledger. Never changed, never removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub id: EntryId,
    pub at: Timestamp,
    pub kind: EntryKind,
    pub from: SubAccount,
    pub to: SubAccount,
    pub amount: Credits,
    pub job: Option<JobId>,
    pub transfer: Option<TransferId>,
    /// The previous entry of the paying and of the receiving owner.
    pub before_from: Option<EntryId>,
    pub before_to: Option<EntryId>,
    /// SHA-256 over the previous entry's hash and this entry's content.
    pub hash: EntryHash,
}

/// A full SHA-256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryHash(#[serde(with = "crate::hex")] pub [u8; 32]);

/// Why credits moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    Grant,
    Burn,
    Transfer,
    Hold,
    Capture,
    Release,
}

/// One of an owner's two sub-accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SubAccount {
    pub owner: OwnerId,
    pub held: bool,
}

impl SubAccount {
    /// What the owner can spend.
    pub fn available(owner: OwnerId) -> Self {
        Self { owner, held: false }
    }

    /// What the owner holds for jobs.
    pub fn held(owner: OwnerId) -> Self {
        Self { owner, held: true }
    }
}

impl EntryKind {
    /// Its name in the store and in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Grant => "grant",
            Self::Burn => "burn",
            Self::Transfer => "transfer",
            Self::Hold => "hold",
            Self::Capture => "capture",
            Self::Release => "release",
        }
    }

    /// Whether credits went from one owner to another as payment.
    pub fn is_payment(self) -> bool {
        matches!(self, Self::Transfer | Self::Capture)
    }
}

impl Entry {
    /// The hash this entry must have after an entry with hash `previous`.
    pub fn chain_hash(&self, previous: EntryHash) -> EntryHash {
        let mut hash = Sha256::new();
        hash.update(previous.0);
        for number in [
            self.id.0 as i64,
            self.at.0,
            self.kind as i64,
            self.from.owner.0 as i64,
            i64::from(self.from.held),
            self.to.owner.0 as i64,
            i64::from(self.to.held),
            self.amount.micros(),
            self.job.map_or(-1, |job| job.0 as i64),
            self.transfer.map_or(-1, |transfer| transfer.0 as i64),
        ] {
            hash.update(number.to_be_bytes());
        }
        EntryHash(hash.finalize().into())
    }

    /// The previous entry of one owner.
    pub fn previous_entry_of(&self, owner: OwnerId) -> Option<EntryId> {
        if self.from.owner == owner { self.before_from } else { self.before_to }
    }
}

/// An explicit payment and its result. A repeat gets the same answer forever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    pub id: TransferId,
    /// The payer's id for it.
    #[serde(rename = "foreign")]
    pub foreign_id: String,
    pub from: OwnerId,
    pub to: OwnerId,
    pub amount: Credits,
    /// The job it pays for, by the requester's id.
    pub job: Option<String>,
    pub at: Timestamp,
    /// True if the job's hold had already paid and nothing moved now.
    pub settled_by_hold: bool,
    #[serde(rename = "payer_left")]
    pub payer_balance: Credits,
    #[serde(rename = "payee_left")]
    pub payee_balance: Credits,
    pub content: Digest,
}
