//! Faults put under the unmodified binary: kills and power cuts at every place where it changes
//! something on disk, disks that fail or fill up, and bytes that rot.
//!
//! One client goes through a fixed script and notes what it was told. What the hub shows after every
//! step is known from a run without faults, so after a crash there are two right answers and no
//! others: everything that was acknowledged and nothing else, or that and the whole of the next step.

mod boundaries;
mod checkpoints;
mod disk;
mod errors;
mod first_start;
mod full;
mod hub;
mod points;
mod reference;
mod rot;
mod scene;
mod script;
mod view;
