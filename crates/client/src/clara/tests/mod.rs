//! What only several parts together can show.

mod market;
mod wallets;
