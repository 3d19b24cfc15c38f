//! Tests of the edge over real sockets.

mod connections;
mod crowd;
mod express;
mod front;
mod hostile;
mod kit;
mod stop;
