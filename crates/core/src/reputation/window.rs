//! The windowed score: 0 to 1 over the last hundred settled jobs.
//!
//! success rate × 0.6 + on-time rate × 0.3 + response-time score × 0.1, all in whole millionths.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::time::Millis;

/// How many of the newest outcomes count.
pub const WINDOW_SIZE: usize = 100;
/// 1.0 in millionths.
const ONE: i64 = 1_000_000;
/// An outcome packed into one number: two flags and the duration, which is capped at 12 days.
const OK: u32 = 1 << 31;
const ON_TIME: u32 = 1 << 30;
const TOOK_MAX: u32 = ON_TIME - 1;

/// The newest counted outcomes of one agent, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Window(VecDeque<u32>);

/// The rates of the newest outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// How many outcomes.
    pub count: i64,
    /// Shares of outcomes that succeeded, and that succeeded in time, in millionths.
    pub success: i64,
    pub on_time: i64,
    /// From accepting a job to its end.
    pub average_duration: Millis,
}

impl Window {
    /// Adds the newest outcome; drops the oldest when there are too many.
    pub fn push(&mut self, seen: WindowOutcome) {
        let took = u32::try_from(seen.took.0.max(0)).unwrap_or(TOOK_MAX).min(TOOK_MAX);
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        self.0.push_back(took | flag(seen.ok, OK) | flag(seen.on_time, ON_TIME));
        if self.0.len() > WINDOW_SIZE {
            self.0.pop_front();
        }
    }

    /// The outcomes, newest first.
    pub fn newest(&self) -> impl Iterator<Item = WindowOutcome> {
        self.0.iter().rev().map(|packed| WindowOutcome {
            ok: packed & OK != 0,
            on_time: packed & ON_TIME != 0,
            took: Millis(i64::from(packed & TOOK_MAX)),
        })
    }

    /// The bytes it takes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.0.len() * size_of::<u32>()
    }

    /// Whether nothing was counted yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The score in millionths; `None` before the first outcome.
    pub fn score(&self, scale: Millis) -> Option<i64> {
        score(self.newest(), scale)
    }

    /// The components of the score; `None` before the first outcome.
    pub fn rates(&self) -> Option<Rates> {
        rates(self.newest())
    }
}

/// What the window keeps of one counted outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowOutcome {
    pub ok: bool,
    pub on_time: bool,
    pub took: Millis,
}

/// The score of the newest outcomes, in millionths; `None` when there are none.
///
/// `scale` is the response time that scores zero.
pub fn score(newest: impl IntoIterator<Item = WindowOutcome>, scale: Millis) -> Option<i64> {
    let rates = rates(newest)?;
    Some((rates.success * 6 + rates.on_time * 3 + rates.response_score(scale)) / 10)
}

impl Rates {
    /// The score of the average response time, in millionths; zero at `scale` and above.
    pub fn response_score(&self, scale: Millis) -> i64 {
        let slow = self.average_duration.0.saturating_mul(ONE) / scale.0.max(1);
        (ONE - slow).clamp(0, ONE)
    }
}

/// The rates of the newest outcomes; `None` when there are none.
fn rates(newest: impl IntoIterator<Item = WindowOutcome>) -> Option<Rates> {
    let (mut count, mut good, mut timely, mut took) = (0_i64, 0_i64, 0_i64, 0_i64);
    for seen in newest.into_iter().take(WINDOW_SIZE) {
        count += 1;
        good += i64::from(seen.ok);
        timely += i64::from(seen.ok && seen.on_time);
        took = took.saturating_add(seen.took.0);
    }
    if count == 0 {
        return None;
    }
    let share = |n: i64| n * ONE / count;
    let average = Millis(took / count);
    Some(Rates { count, success: share(good), on_time: share(timely), average_duration: average })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Millis = Millis::seconds(10);

    #[test]
    fn a_perfect_record_scores_one_and_a_useless_one_zero() {
        let perfect = WindowOutcome { ok: true, on_time: true, took: Millis(0) };
        let useless = WindowOutcome { ok: false, on_time: true, took: Millis::seconds(60) };
        assert_eq!(score([perfect; 3], SCALE), Some(1_000_000));
        assert_eq!(score([useless; 3], SCALE), Some(0));
        assert_eq!(score([], SCALE), None);
    }

    #[test]
    fn the_weights_are_six_three_and_one_tenths() {
        let late = WindowOutcome { ok: true, on_time: false, took: Millis(5_000) };
        assert_eq!(score([late], SCALE), Some(650_000));
        let failed = WindowOutcome { ok: false, on_time: true, took: Millis(0) };
        assert_eq!(score([late, failed], SCALE), Some(300_000 + 75_000));
    }

    #[test]
    fn a_window_keeps_the_last_hundred_and_says_what_they_were() {
        let mut window = Window::default();
        assert_eq!((window.score(SCALE), window.rates()), (None, None));
        for n in 0..150 {
            let ok = n >= 50;
            window.push(WindowOutcome { ok, on_time: true, took: Millis(n) });
        }
        assert_eq!(window.newest().count(), WINDOW_SIZE);
        let first = window.newest().next().expect("the newest");
        assert_eq!(first, WindowOutcome { ok: true, on_time: true, took: Millis(149) });
        let rates = window.rates().expect("there are some");
        assert_eq!((rates.count, rates.success, rates.on_time), (100, ONE, ONE));
        let text = serde_json::to_string(&window).expect("it can be written");
        assert_eq!(serde_json::from_str::<Window>(&text).expect("and read"), window);
    }

    #[test]
    fn a_very_long_job_does_not_turn_into_a_flag() {
        let mut window = Window::default();
        window.push(WindowOutcome { ok: false, on_time: false, took: Millis(i64::MAX) });
        window.push(WindowOutcome { ok: false, on_time: false, took: Millis(-5) });
        let seen: Vec<_> = window.newest().collect();
        assert!(seen.iter().all(|seen| !seen.ok && !seen.on_time));
        assert_eq!(seen[0].took, Millis(0));
        assert_eq!(seen[1].took, Millis(i64::from(TOOK_MAX)));
    }

    #[test]
    fn only_the_last_hundred_count() {
        let good = WindowOutcome { ok: true, on_time: true, took: Millis(0) };
        let bad = WindowOutcome { ok: false, on_time: false, took: Millis(0) };
        let record = std::iter::repeat_n(good, 100).chain(std::iter::repeat_n(bad, 900));
        assert_eq!(score(record, SCALE), Some(1_000_000));
    }
}
