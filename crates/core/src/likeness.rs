//! Likeness: which names a reader could take for each other.
//!
//! Core knows nothing of scripts. Whoever assembles the hub says what names look like; the world keeps
//! an index of it, made of the rows it has anyway, so that names given before there was one count too.

use crate::alias::Protocol;

/// What names look like. Two names with a look in common are taken for each other; one without any is
/// compared as it is written.
#[derive(Clone, Copy, Debug)]
pub struct Likeness {
    /// The looks of an owner's name.
    pub owner: fn(&str) -> Vec<String>,
    /// The looks of an agent's own id in its protocol.
    pub native: fn(Protocol, &str) -> Vec<String>,
}

/// Every name looks like itself alone.
impl Default for Likeness {
    fn default() -> Self {
        Self { owner: |_| Vec::new(), native: |_, _| Vec::new() }
    }
}
