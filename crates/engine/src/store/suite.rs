//! One suite of behaviour that every store passes.
