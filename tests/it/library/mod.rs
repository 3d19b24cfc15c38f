//! `rialto-client` as an application uses it.

mod agents;
mod examples;
mod recipes;
