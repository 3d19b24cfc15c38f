//! clara over the wire: a real hub, real items.

pub mod kit;
mod smoke;
