//! When to retry a delivery, and when to stop.
//!
//! Pure: the number of attempts and the time are arguments. The timers store the result.

use rialto_core::time::{Millis, Timestamp};

/// The delays between attempts (the schedule of the Standard Webhooks specification).
const BACKOFF: [Millis; 7] = [
    Millis::seconds(5),
    Millis::minutes(5),
    Millis::minutes(30),
    Millis::hours(2),
    Millis::hours(5),
    Millis::hours(10),
    Millis::hours(10),
];

/// When to retry after `attempts_made` failed attempts; `None` means to abandon the delivery. The
/// first attempt has no delay.
pub fn next_attempt_at(attempts_made: u32, now: Timestamp) -> Option<Timestamp> {
    let Some(step) = attempts_made.checked_sub(1) else {
        return Some(now);
    };
    let wait = BACKOFF.get(usize::try_from(step).ok()?)?;
    Some(now.plus(*wait))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    #[test]
    fn the_first_try_is_at_once() {
        assert_eq!(next_attempt_at(0, NOW), Some(NOW));
    }

    #[test]
    fn each_failure_waits_as_long_as_the_ladder_says() {
        let waits_s = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];
        for (attempts, wait_s) in (1..).zip(waits_s) {
            assert_eq!(next_attempt_at(attempts, NOW), Some(Timestamp(1_000_000 + wait_s * 1_000)));
        }
    }

    #[test]
    fn after_eight_tries_the_delivery_is_given_up() {
        assert_eq!(next_attempt_at(8, NOW), None);
        assert_eq!(next_attempt_at(u32::MAX, NOW), None);
    }

    #[test]
    fn the_end_of_time_does_not_overflow() {
        assert_eq!(next_attempt_at(1, Timestamp::NEVER), Some(Timestamp::NEVER));
    }
}
