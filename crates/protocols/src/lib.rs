//! One folder per protocol: wire, proof, translation, codes, routes.
//!
//! What the protocols share in reading and writing their bytes lives in `kit`.

pub mod kit;
