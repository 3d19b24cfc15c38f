//! Everything that reads what strangers wrote, fed with anything at all.
//!
//! A [`Target`] is a plain function of bytes. It must return, whatever they are, and asserts what
//! must hold for those that were accepted. `cargo test -p rialto-fuzzed` runs each over the inputs
//! kept in `fuzz/corpus` and some thousand mutations of them, `cargo xtask fuzz` over millions, and
//! `fuzz/` wraps the same functions for libFuzzer.

#[cfg(feature = "drive")]
pub mod drive;
mod target;
pub mod targets;

pub use target::Target;
pub use targets::ALL;
