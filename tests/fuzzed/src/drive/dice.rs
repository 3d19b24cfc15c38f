//! Pseudo-random numbers from a seed.

/// Numbers that look random and are the same for the same seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number (SplitMix64).
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        match end as u64 {
            0 => 0,
            end => (self.any() % end) as usize,
        }
    }

    /// One of these.
    pub fn one<'t, T>(&mut self, of: &'t [T]) -> Option<&'t T> {
        let at = self.below(of.len());
        of.get(at)
    }

    /// A range within this length: often short, and never longer than `most`.
    pub fn part(&mut self, length: usize, most: usize) -> std::ops::Range<usize> {
        let from = self.below(length);
        let most = (length - from).min(most);
        let most = if self.below(4) > 0 { most.min(16) } else { most };
        from..from + self.below(most + 1)
    }
}
