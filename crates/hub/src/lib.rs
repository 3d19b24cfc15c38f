//! The assembled hub. So far it only knows how to be configured.

pub mod config;
