//! The edge: handles every connection and request before any protocol sees it.
//!
//! `accept` takes connections and closes those that cost too much. `layer` checks each request and
//! completes each response. Only the [`House`] knows what a path means and how its errors look.
//!
//! ```text
//! accept → slots → connection (socket, bodies, connection_state, idle_timer)
//!   → layer (hosts, rate_limits, limited_body, body_rate) → fast_path or router
//! ```

mod accept;
mod bodies;
mod checks;
mod connection;
mod cors;
mod fast_path;
mod framing;
mod layer;
mod hosts;
mod path_policy;
mod limited_body;
mod rate_limits;
mod socket;
mod body_rate;
mod idle_timer;
mod peer;
mod connection_state;
mod read_rate;
mod overload;
mod request_id;
mod settings;
mod slots;
mod rate_store;
mod trace;
mod wrong_keys;

#[cfg(test)]
mod tests;

pub use accept::{bind, serve};
pub use fast_path::{Answering, Express, Reading};
pub use layer::{Front, Fronted};
pub use hosts::Hosts;
pub use path_policy::{Class, House, Kind, Pages, Principal, Trouble};
pub use rate_limits::Limits;
pub use body_rate::Tempo;
pub use request_id::{IdSource, RequestId};
pub use settings::Settings;
pub use trace::TraceParent;
