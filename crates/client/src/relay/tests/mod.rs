//! The client against test servers with all kinds of behaviour.

mod inbox;
mod send;
mod server;
