//! Customers: the owners for which an agent completed jobs, and what they paid.
//!
//! An owner with a thousand agents is one customer, and an agent's own owner is none. So a ring of
//! a few owners counts as a few customers, however often its members hire each other.

use serde::{Deserialize, Serialize};

use crate::id::OwnerId;
use crate::money::Credits;

/// Distinct owners kept per agent. More than this makes no difference.
pub const CUSTOMERS_MAX: usize = 64;

/// The owners that paid an agent for completed and counted work, and how much.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Customers {
    /// Sorted, without duplicates.
    owners: Vec<OwnerId>,
    /// The sum of all payments, including those of owners that are not kept individually.
    paid: Credits,
}

impl Customers {
    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The bytes it takes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.owners.len() * size_of::<OwnerId>()
    }

    /// The number of customers, at most [`CUSTOMERS_MAX`].
    pub fn count(&self) -> usize {
        self.owners.len()
    }

    /// What they paid in total.
    pub fn paid(&self) -> Credits {
        self.paid
    }

    /// Records a completed job. A requester without an account is not a customer.
    pub fn add(&mut self, owner: Option<OwnerId>, paid: Credits) {
        // On overflow the sum stays as it is: that many credits cannot circulate for long.
        self.paid = self.paid.checked_add(paid).unwrap_or(self.paid);
        let Some(owner) = owner else { return };
        if let Err(place) = self.owners.binary_search(&owner)
            && self.owners.len() < CUSTOMERS_MAX
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
        let mut patrons = Customers::default();
        assert!(patrons.is_empty());
        for round in 0..3_u64 {
            for owner in (1..=100).rev() {
                patrons.add(Some(OwnerId(owner)), Credits::from_micros(1));
            }
            assert_eq!(patrons.count(), CUSTOMERS_MAX, "{round}");
        }
        assert_eq!(patrons.paid(), Credits::from_micros(300));
    }

    #[test]
    fn a_guest_is_no_patron() {
        let mut patrons = Customers::default();
        patrons.add(None, Credits::ZERO);
        assert!(patrons.is_empty());
    }

    #[test]
    fn a_sum_that_does_not_fit_stays() {
        let mut patrons = Customers::default();
        patrons.add(None, Credits::from_micros(i64::MAX));
        patrons.add(Some(OwnerId(1)), Credits::from_micros(1));
        assert_eq!((patrons.count(), patrons.paid()), (1, Credits::from_micros(i64::MAX)));
    }
}
