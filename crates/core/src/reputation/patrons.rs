//! Customers: the owners for which an agent completed jobs, and what they paid.
//!
//! One owner with a thousand agents is one patron, and an agent's own owner is none, so a ring of a few
//! owners stays a ring of a few owners however often its members hire each other.

use serde::{Deserialize, Serialize};

use crate::id::OwnerId;
use crate::money::Credits;

/// Owners told apart for one agent; to have more is as good as to have so many.
pub const PATRONS_MAX: usize = 64;

/// Who has paid an agent for work that was done well and counted, and how much.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patrons {
    /// In order, each once.
    owners: Vec<OwnerId>,
    /// All of it together, also from those who are not told apart any more.
    paid: Credits,
}

impl Patrons {
    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The bytes it takes beside its own size.
    pub fn held_bytes(&self) -> usize {
        self.owners.len() * size_of::<OwnerId>()
    }

    /// How many there are, at most [`PATRONS_MAX`].
    pub fn count(&self) -> usize {
        self.owners.len()
    }

    /// What they have paid.
    pub fn paid(&self) -> Credits {
        self.paid
    }

    /// Notes a job that was done well; somebody without an account is no patron.
    pub fn add(&mut self, owner: Option<OwnerId>, paid: Credits) {
        // More than fits into the sum cannot circulate for long; it stays at what it was.
        self.paid = self.paid.plus(paid).unwrap_or(self.paid);
        let Some(owner) = owner else { return };
        if let Err(place) = self.owners.binary_search(&owner)
            && self.owners.len() < PATRONS_MAX
        {
            self.owners.insert(place, owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_owner_counts_once_and_only_so_many_are_told_apart() {
        let mut patrons = Patrons::default();
        assert!(patrons.is_empty());
        for round in 0..3_u64 {
            for owner in (1..=100).rev() {
                patrons.add(Some(OwnerId(owner)), Credits::from_micros(1));
            }
            assert_eq!(patrons.count(), PATRONS_MAX, "{round}");
        }
        assert_eq!(patrons.paid(), Credits::from_micros(300));
    }

    #[test]
    fn a_guest_is_no_patron() {
        let mut patrons = Patrons::default();
        patrons.add(None, Credits::ZERO);
        assert!(patrons.is_empty());
    }

    #[test]
    fn a_sum_that_does_not_fit_stays() {
        let mut patrons = Patrons::default();
        patrons.add(None, Credits::from_micros(i64::MAX));
        patrons.add(Some(OwnerId(1)), Credits::from_micros(1));
        assert_eq!((patrons.count(), patrons.paid()), (1, Credits::from_micros(i64::MAX)));
    }
}
