//! The client against servers that behave in every way they can.

mod discovery;
mod inbox;
mod send;
mod server;
