//! Price steps: how finely a protocol counts money, so that a price from elsewhere is rounded only
//! once.

use serde::{Deserialize, Serialize};

use crate::money::Credits;

/// The smallest step of an amount, and the minimum price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceStep {
    pub decimals: u8,
    #[serde(rename = "least")]
    pub minimum: Credits,
}

impl PriceStep {
    /// As fine as the ledger itself.
    pub const FINEST: Self = Self { decimals: 6, minimum: Credits::ZERO };

    /// The price its requester sees and pays: never below the price asked.
    pub fn round_price(self, price: Credits) -> Credits {
        self.round_up(price).max(self.minimum)
    }

    /// The amount for work that cost less than agreed: rounded up, and free if it was free.
    pub fn round_up(self, amount: Credits) -> Credits {
        amount.ceil(usize::from(self.decimals)).unwrap_or(amount)
    }

    /// Whether there is nothing to round.
    pub fn is_finest(&self) -> bool {
        *self == Self::FINEST
    }
}

impl Default for PriceStep {
    fn default() -> Self {
        Self::FINEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_books_worked_roundings() {
        let cents = PriceStep { decimals: 2, minimum: Credits::ZERO };
        let whole = PriceStep { decimals: 0, minimum: Credits::from_micros(1_000_000) };
        let shown = |price_step: PriceStep, micros| {
            price_step.round_price(Credits::from_micros(micros)).micros()
        };
        assert_eq!(shown(cents, 1), 10_000);
        assert_eq!(shown(whole, 1), 1_000_000);
        assert_eq!(shown(whole, 100_000), 1_000_000);
        assert_eq!(shown(whole, 0), 1_000_000);
        assert_eq!((shown(cents, 0), shown(PriceStep::FINEST, 1)), (0, 1));
        assert_eq!(whole.round_up(Credits::ZERO), Credits::ZERO);
    }
}
