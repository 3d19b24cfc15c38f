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
mod express;
mod framing;
mod front;
mod hosts;
mod house;
mod intake;
mod limits;
mod line;
mod pace;
mod patience;
mod peer;
mod pulse;
mod reads;
mod refuse;
mod request_id;
mod settings;
mod slots;
mod tally;
mod trace;
mod wrong_keys;

#[cfg(test)]
mod tests;

pub use accept::{bind, serve};
pub use express::{Answering, Express, Reading};
pub use front::{Front, Fronted};
pub use hosts::Hosts;
pub use house::{Class, House, Kind, Pages, Principal, Trouble};
pub use limits::Limits;
pub use pace::Tempo;
pub use request_id::{IdSource, RequestId};
pub use settings::Settings;
pub use trace::TraceParent;
