//! The driver: runs the corpus first, then mutations of it, and measures each input.
//!
//! It has no coverage, which needs the compiler's help. Instead it uses the number of allocations:
//! an input with a new number took a new path and becomes a parent of others. The same seed gives
//! the same inputs.

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
pub use watchdog::TIME_LIMIT;
