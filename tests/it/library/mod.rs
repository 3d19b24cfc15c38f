//! `rialto-client` as a program of somebody's own uses it.

mod agents;
mod examples;
mod recipes;
