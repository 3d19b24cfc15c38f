//! Estimates how much work a pattern is per byte of the text it is matched against.
//!
//! The engine is linear in the text, but its factor is the size of the pattern: a bounded repeat of
//! a wide class is thousands of states, each of which may be active at every byte.

use regex_syntax::hir::{Class, Hir, HirKind};

/// The largest compiled pattern, in bytes, and the largest cache it may have.
pub(super) const SIZE_MAX: usize = 128 * 1024;
/// How many patterns one schema may have: together with [`SIZE_MAX`] this bounds a schema's memory.
pub(super) const COUNT_MAX: usize = 64;
/// Assumed for ECMAScript patterns that this parser cannot read. A larger one does not fit into
/// [`SIZE_MAX`].
const UNKNOWN: u64 = 4_096;

/// The approximate number of states of a pattern.
pub(super) fn estimate_states(pattern: &str) -> u64 {
    regex_syntax::parse(pattern).map_or(UNKNOWN, |hir| states(&hir)).clamp(1, UNKNOWN)
}

fn states(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        // Up to four bytes per range of characters.
        HirKind::Class(Class::Unicode(class)) => 4 * class.ranges().len() as u64,
        HirKind::Class(Class::Bytes(class)) => class.ranges().len() as u64,
        HirKind::Repetition(again) => {
            let times = again.max.unwrap_or(again.min.saturating_add(1)).max(1);
            states(&again.sub).saturating_mul(u64::from(times))
        }
        HirKind::Capture(group) => states(&group.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().fold(1, |sum, part| sum.saturating_add(states(part)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_weigh_as_much_as_what_they_repeat() {
        assert!(estimate_states("^[a-z0-9-]+$") < 40);
        assert!(estimate_states("(a+)+$") < 20);
        assert!(estimate_states("[01]*1[01]{2000}$") > 2_000);
        assert_eq!(estimate_states("((a{900}){900}){900}"), UNKNOWN);
        assert_eq!(estimate_states("(?=a)"), UNKNOWN);
    }
}
