//! The edge: handles every connection and request before any protocol sees it.
//!
//! `accept` takes connections and closes those that cost too much. The [`Dispatcher`] checks each
//! request, calls its operation and completes each response. Only the [`OperationTable`] knows what
//! a path means and how its errors look.
//!
//! ```text
//! accept → slots → threads → connection (socket, bodies, connection_state, idle_timer)
//!   → dispatcher (operation_table, checks, hosts, freshness, rate_limits, limited_body, body_rate)
//!   → handler
//! ```

mod accept;
mod bodies;
mod body_rate;
mod checks;
mod connection;
mod connection_state;
mod cors;
mod dispatcher;
mod framing;
mod freshness;
mod hosts;
mod idle_timer;
mod keyed_body;
mod limited_body;
mod operation_table;
mod overload;
mod peer;
mod rate_limits;
mod rate_store;
mod read_rate;
mod request_id;
mod settings;
mod slots;
mod socket;
mod threads;
mod trace;
mod wrong_keys;

#[cfg(test)]
mod tests;

pub use accept::{bind, serve};
pub use bodies::EndsAtShutdown;
pub use body_rate::BodyRateLimits;
pub use dispatcher::{Dispatcher, KeyUseLookup, PrincipalLookup};
pub use hosts::HostPolicy;
pub use keyed_body::keep_key;
pub use operation_table::{OperationClash, OperationTable, UnrecognizedBody};
pub use rate_limits::{Principal, RateLimits};
pub use request_id::{IdSource, RequestId};
pub use settings::Settings;
pub use threads::ConnectionThreads;
pub use trace::TraceParent;
