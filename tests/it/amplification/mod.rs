//! Amplification: what an operation costs the hub for what it costs its caller.
//!
//! Every operation of every protocol is repeated by every kind of caller, each time with a fresh
//! idempotency key and whatever is fresh in its body, and each has a named bound for what it answers,
//! keeps in memory, keeps on disk and has the lane do. An operation without a bound fails the suite, as
//! one without a row does in the authority table. What is measured does not depend on the machine.
//!
//! - `routes`: all routes, with the requests of the authority table.
//! - `signed`: everything that is signed, with the words of the authority tables.
//! - `storm`: a hub in a process of its own, its real memory, and a restart.
//! - `answers`: lists of bounded length that leave nothing out.
//! - `principals`: who is counted.

mod answers;
mod bound;
mod measure;
mod principals;
mod routes;
mod signed;
#[cfg(target_os = "linux")]
mod storm;
