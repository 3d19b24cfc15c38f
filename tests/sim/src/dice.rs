//! Random numbers from a seed, the same in every run and on every machine.

/// Random numbers from a seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Mixes two numbers into one that resembles neither.
pub fn mix(a: u64, b: u64) -> u64 {
    let mut z = a ^ b.wrapping_mul(STEP).rotate_left(23);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0, 0)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.any() % sides.max(1)
    }

    /// True in this many cases of a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.roll(100) < percent
    }

    /// One of these.
    pub fn of<T: Copy, const N: usize>(&mut self, from: [T; N]) -> T {
        from[self.roll(N as u64) as usize]
    }

    /// One of these, if there are any.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.roll(from.len() as u64) as usize)
    }

    /// A number of milliseconds below this many seconds.
    pub fn within_seconds(&mut self, seconds: u64) -> i64 {
        self.roll(seconds * 1_000) as i64
    }
}
