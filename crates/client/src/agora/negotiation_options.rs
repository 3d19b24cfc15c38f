//! Options for a negotiation, such as how to choose among offers.

use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Millis;
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::time::Instant;

/// An offer for our request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedOffer {
    /// The id of the OFFER.
    pub offer_id: String,
    /// The agent that made it.
    pub provider: PublicKey,
    /// The price.
    pub cost: Credits,
    /// How long the work would take.
    pub eta: Millis,
    /// Until when it can be accepted.
    pub expires_at: Instant,
}

/// Chooses the index of an offer to accept, if any.
type ChooseOffer<'a> = dyn FnMut(&[ReceivedOffer]) -> Option<usize> + Send + 'a;

/// Options for a negotiation.
pub struct NegotiationOptions<'a> {
    pub(super) collect: Duration,
    pub(super) enough: usize,
    pub(super) choose: Box<ChooseOffer<'a>>,
    pub(super) part: Box<dyn FnMut(&str) + Send + 'a>,
    pub(super) payment_proof: Option<String>,
}

impl Default for NegotiationOptions<'_> {
    fn default() -> Self {
        Self {
            collect: Duration::from_secs(2),
            enough: usize::MAX,
            choose: Box::new(choose_cheapest),
            part: Box::new(|_| {}),
            payment_proof: None,
        }
    }
}

impl<'a> NegotiationOptions<'a> {
    /// Collects offers for this long before choosing; if there is none by then, chooses as soon as
    /// the first one arrives.
    pub fn collect_for(self, collect: Duration) -> Self {
        Self { collect, ..self }
    }

    /// Chooses as soon as there are this many offers.
    pub fn max_offers(self, enough: usize) -> Self {
        Self { enough: enough.max(1), ..self }
    }

    /// Chooses by your own rule; `None` accepts none and withdraws the request.
    pub fn choose(self, choose: impl FnMut(&[ReceivedOffer]) -> Option<usize> + Send + 'a) -> Self {
        Self { choose: Box::new(choose), ..self }
    }

    /// Calls this with every partial result.
    pub fn on_part(self, part: impl FnMut(&str) + Send + 'a) -> Self {
        Self { part: Box::new(part), ..self }
    }

    /// Attaches proof of a payment made elsewhere.
    pub fn payment_proof(self, proof: impl Into<String>) -> Self {
        Self { payment_proof: Some(proof.into()), ..self }
    }
}

/// The cheapest offer, and among equals the quickest.
pub fn choose_cheapest(offers: &[ReceivedOffer]) -> Option<usize> {
    let best = offers.iter().enumerate().min_by_key(|(_, offer)| (offer.cost, offer.eta.0));
    best.map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_is_taken_and_the_quickest_among_equals() {
        let offer = |micros, eta| ReceivedOffer {
            offer_id: String::new(),
            provider: PublicKey::from_bytes([1; 32]),
            cost: Credits::from_micros(micros),
            eta: Millis(eta),
            expires_at: Instant::now(),
        };
        assert_eq!(choose_cheapest(&[]), None);
        assert_eq!(choose_cheapest(&[offer(3, 1), offer(2, 9), offer(2, 5)]), Some(2));
    }
}
