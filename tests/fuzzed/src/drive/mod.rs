//! The driver: kept inputs first, then mutations of them, each counted.
//!
//! It knows nothing of coverage, which takes a compiler's help. What it has instead is how often an
//! input made its parser allocate: an input with a number nobody had before went a way of its own
//! and becomes a parent of others. The same seed gives the same inputs.

mod broken;
mod corpus;
mod dice;
mod memory;
mod mutate;
mod parents;
mod run;
mod smaller;
mod watchdog;

pub use broken::Broken;
pub use corpus::{Corpus, folder};
pub use dice::Dice;
pub use mutate::Mutator;
pub use run::{Plan, Summary, run};
pub use watchdog::PATIENCE;
