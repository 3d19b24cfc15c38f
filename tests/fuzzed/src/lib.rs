//! Fuzz checks for every parser of untrusted input.
//!
//! A [`Target`] is a plain function of bytes. It must return for any input, and asserts what must
//! hold for accepted ones. `cargo test -p rialto-fuzzed` runs each over the corpus in `fuzz/corpus`
//! and some thousand mutations of it, `cargo xtask fuzz` over millions, and `fuzz/` wraps the same
//! functions for libFuzzer.

#[cfg(feature = "drive")]
pub mod drive;
mod target;
pub mod targets;

pub use target::Target;
pub use targets::ALL;
