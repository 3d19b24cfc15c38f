//! Price steps: how finely a protocol counts money, so that a price from elsewhere is rounded only
//! once.

use serde::{Deserialize, Serialize};

use crate::money::Credits;

/// The smallest step of an amount, and the minimum price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grain {
    pub decimals: u8,
    pub least: Credits,
}

impl Grain {
    /// As fine as the ledger itself.
    pub const FINE: Self = Self { decimals: 6, least: Credits::ZERO };

    /// The price its requester sees and pays: never below the price asked.
    pub fn shown(self, price: Credits) -> Credits {
        self.up(price).max(self.least)
    }

    /// The amount for work that cost less than agreed: rounded up, and free if it was free.
    pub fn up(self, amount: Credits) -> Credits {
        amount.ceil(usize::from(self.decimals)).unwrap_or(amount)
    }

    /// Whether there is nothing to round.
    pub fn is_fine(&self) -> bool {
        *self == Self::FINE
    }
}

impl Default for Grain {
    fn default() -> Self {
        Self::FINE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_books_worked_roundings() {
        let cents = Grain { decimals: 2, least: Credits::ZERO };
        let whole = Grain { decimals: 0, least: Credits::from_micros(1_000_000) };
        let shown = |grain: Grain, micros| grain.shown(Credits::from_micros(micros)).micros();
        assert_eq!(shown(cents, 1), 10_000);
        assert_eq!(shown(whole, 1), 1_000_000);
        assert_eq!(shown(whole, 100_000), 1_000_000);
        assert_eq!(shown(whole, 0), 1_000_000);
        assert_eq!((shown(cents, 0), shown(Grain::FINE, 1)), (0, 1));
        assert_eq!(whole.up(Credits::ZERO), Credits::ZERO);
    }
}
