//! Random moments that can be repeated: a run prints its seed, and the same seed gives the same run.

use rialto_engine::random::{OsRandom, RandomSource};

/// Environment variable: the seed, to reproduce a failed run.
pub const SEED: &str = "RIALTO_CRASH_SEED";

/// Splitmix64: random enough for kills, and reproducible from its seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut n = self.0;
        n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (n ^ (n >> 31)) % sides
    }
}

/// The seed of the environment, or a new one.
pub fn seed() -> u64 {
    number(SEED).unwrap_or_else(|| OsRandom.new_uuid().as_u64_pair().0)
}

/// The number in an environment variable.
pub fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, not {text}")))
}
