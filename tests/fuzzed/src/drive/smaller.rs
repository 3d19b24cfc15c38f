//! Minimizes a failing input while it still fails.

/// Maximum number of attempts.
const TRIES_MAX: usize = 2_000;

/// The smallest input found for which `still` holds.
pub fn smaller(input: &[u8], still: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut least = input.to_vec();
    let mut tries = 0;
    let mut step = least.len().div_ceil(2);
    while step > 0 && tries < TRIES_MAX {
        let mut at = 0;
        while at < least.len() && tries < TRIES_MAX {
            let mut shorter = least.clone();
            shorter.drain(at..(at + step).min(least.len()));
            tries += 1;
            match still(&shorter) {
                true => least = shorter,
                false => at += step,
            }
        }
        step /= 2;
    }
    least
}
