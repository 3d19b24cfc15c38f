//! Amplification: what an operation costs the hub compared to what it costs its caller.
//!
//! Every operation of every protocol is repeated by every kind of caller, each time with a new
//! idempotency key and new ids in its body. Each has a named bound for the size of its response,
//! the bytes it keeps in memory and on disk, and the work of the lane. An operation without a bound
//! fails the suite, as one without a row does in the authority table. No measurement depends on the
//! machine.
//!
//! - `routes`: all routes, with the requests of the authority table.
//! - `signed`: all signed messages, with the payloads of the authority tables.
//! - `storm`: a hub in its own process, its real memory, and a restart.
//! - `answers`: lists of bounded size that leave nothing out.
//! - `principals`: which caller a write counts for.

mod answers;
mod bound;
mod measure;
mod principals;
mod routes;
mod signed;
#[cfg(target_os = "linux")]
mod storm;
