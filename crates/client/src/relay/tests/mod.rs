//! The client against test servers with all kinds of behaviour.

mod discovery;
mod inbox;
mod send;
mod server;
