//! Fault injection under the unmodified binary: kills and power cuts at every change on disk,
//! failing and full disks, and corrupted bytes.
//!
//! One client runs a fixed script and records the answers. A run without faults shows the state
//! after every step, so after a crash exactly two states are correct: every acknowledged step, or
//! those and the whole next one.

mod boundaries;
mod checkpoints;
mod disk;
mod errors;
mod first_start;
mod full;
mod hub;
mod migration;
mod points;
mod reference;
mod rot;
mod scene;
mod script;
mod view;
