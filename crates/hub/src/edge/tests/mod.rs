//! Tests of the edge over real sockets.

mod connections;
mod crowd;
mod front;
mod hostile;
mod kit;
mod operations;
mod stop;
