//! Tests that involve several modules.

mod market;
mod wallets;
