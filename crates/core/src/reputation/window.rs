//! The windowed score: 0 to 1 over the last hundred settled jobs.
//!
//! success rate × 0.6 + on-time rate × 0.3 + response-time score × 0.1, all in whole millionths.

use crate::time::Millis;

/// How many of the newest outcomes count.
pub const WINDOW: usize = 100;
/// 1.0 in millionths.
const ONE: i64 = 1_000_000;

/// What the window needs to know of one counted outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub ok: bool,
    pub on_time: bool,
    pub took: Millis,
}

/// The score of the newest outcomes, in millionths; `None` when there are none.
///
/// `scale` is the response time that is worth nothing any more.
pub fn score(newest: impl IntoIterator<Item = Seen>, scale: Millis) -> Option<i64> {
    let (mut count, mut good, mut timely, mut took) = (0_i64, 0_i64, 0_i64, 0_i64);
    for seen in newest.into_iter().take(WINDOW) {
        count += 1;
        good += i64::from(seen.ok);
        timely += i64::from(seen.ok && seen.on_time);
        took = took.saturating_add(seen.took.0);
    }
    if count == 0 {
        return None;
    }
    let share = |n: i64| n * ONE / count;
    let average = took / count;
    let slow = average.saturating_mul(ONE) / scale.0.max(1);
    let swift = (ONE - slow).clamp(0, ONE);
    Some((share(good) * 6 + share(timely) * 3 + swift) / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Millis = Millis::seconds(10);

    #[test]
    fn a_perfect_record_scores_one_and_a_useless_one_zero() {
        let perfect = Seen { ok: true, on_time: true, took: Millis(0) };
        let useless = Seen { ok: false, on_time: true, took: Millis::seconds(60) };
        assert_eq!(score([perfect; 3], SCALE), Some(1_000_000));
        assert_eq!(score([useless; 3], SCALE), Some(0));
        assert_eq!(score([], SCALE), None);
    }

    #[test]
    fn the_weights_are_six_three_and_one_tenths() {
        let late = Seen { ok: true, on_time: false, took: Millis(5_000) };
        assert_eq!(score([late], SCALE), Some(650_000));
        let failed = Seen { ok: false, on_time: true, took: Millis(0) };
        assert_eq!(score([late, failed], SCALE), Some(300_000 + 75_000));
    }

    #[test]
    fn only_the_last_hundred_count() {
        let good = Seen { ok: true, on_time: true, took: Millis(0) };
        let bad = Seen { ok: false, on_time: false, took: Millis(0) };
        let record = std::iter::repeat_n(good, 100).chain(std::iter::repeat_n(bad, 900));
        assert_eq!(score(record, SCALE), Some(1_000_000));
    }
}
