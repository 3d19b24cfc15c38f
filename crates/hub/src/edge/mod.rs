//! The edge: handles every connection and request before any protocol sees it.
//!
//! `accept` takes connections and closes those that cost too much. `layer` checks each request and
//! completes each response. Only the [`PathPolicy`] knows what a path means and how its errors look.
//!
//! ```text
//! accept → slots → connection (socket, bodies, connection_state, idle_timer)
//!   → layer (hosts, rate_limits, limited_body, body_rate) → fast_path or router
//! ```

mod accept;
mod bodies;
mod body_rate;
mod checks;
mod connection;
mod connection_state;
mod cors;
mod fast_path;
mod framing;
mod hosts;
mod idle_timer;
mod layer;
mod limited_body;
mod overload;
mod path_policy;
mod peer;
mod rate_limits;
mod rate_store;
mod read_rate;
mod request_id;
mod settings;
mod slots;
mod socket;
mod trace;
mod wrong_keys;

#[cfg(test)]
mod tests;

pub use accept::{bind, serve};
pub use body_rate::BodyRateLimits;
pub use fast_path::{BodyFuture, FastRoute, ResponseFuture};
pub use hosts::HostPolicy;
pub use layer::{EdgeLayer, EdgeRouter};
pub use path_policy::{AllowedOrigins, EdgeError, PathPolicy, Principal, RateClass, RequestClass};
pub use rate_limits::RateLimits;
pub use request_id::{IdSource, RequestId};
pub use settings::Settings;
pub use trace::TraceParent;
