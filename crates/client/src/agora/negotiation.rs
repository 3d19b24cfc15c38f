//! How to choose among offers.

use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Millis;
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::time::Instant;

/// An offer for our order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The id of the OFFER.
    pub offer_id: String,
    /// Who made it.
    pub provider: PublicKey,
    /// What it would cost.
    pub cost: Credits,
    /// How long the work would take.
    pub eta: Millis,
    /// Until when it can be taken.
    pub until: Instant,
}

/// Which of some offers to take, if any.
type Choose<'a> = dyn FnMut(&[Proposal]) -> Option<usize> + Send + 'a;

/// How to negotiate.
pub struct Negotiation<'a> {
    pub(super) collect: Duration,
    pub(super) enough: usize,
    pub(super) choose: Box<Choose<'a>>,
    pub(super) part: Box<dyn FnMut(&str) + Send + 'a>,
    pub(super) payment_proof: Option<String>,
}

impl Default for Negotiation<'_> {
    fn default() -> Self {
        Self {
            collect: Duration::from_secs(2),
            enough: usize::MAX,
            choose: Box::new(cheapest),
            part: Box::new(|_| {}),
            payment_proof: None,
        }
    }
}

impl<'a> Negotiation<'a> {
    /// Gathers offers for this long before one is chosen; if there is none by then, the first that
    /// comes is looked at.
    pub fn collect(self, collect: Duration) -> Self {
        Self { collect, ..self }
    }

    /// Looks no further once there are so many.
    pub fn enough(self, enough: usize) -> Self {
        Self { enough: enough.max(1), ..self }
    }

    /// Chooses by a rule of one's own; `None` takes none and withdraws the order.
    pub fn choose(self, choose: impl FnMut(&[Proposal]) -> Option<usize> + Send + 'a) -> Self {
        Self { choose: Box::new(choose), ..self }
    }

    /// Hears every part of the work that comes before its end.
    pub fn parts(self, part: impl FnMut(&str) + Send + 'a) -> Self {
        Self { part: Box::new(part), ..self }
    }

    /// Sends a proof of a payment made elsewhere along.
    pub fn payment_proof(self, proof: impl Into<String>) -> Self {
        Self { payment_proof: Some(proof.into()), ..self }
    }
}

/// The offer that costs least, and among those the quickest.
pub fn cheapest(offers: &[Proposal]) -> Option<usize> {
    let best = offers.iter().enumerate().min_by_key(|(_, offer)| (offer.cost, offer.eta.0));
    best.map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_is_taken_and_the_quickest_among_equals() {
        let offer = |micros, eta| Proposal {
            offer_id: String::new(),
            provider: PublicKey::from_bytes([1; 32]),
            cost: Credits::from_micros(micros),
            eta: Millis(eta),
            until: Instant::now(),
        };
        assert_eq!(cheapest(&[]), None);
        assert_eq!(cheapest(&[offer(3, 1), offer(2, 9), offer(2, 5)]), Some(2));
    }
}
