//! How many connections there may be, and how long each may do nothing.

use std::time::Duration;

use crate::config::Http;

/// How long an answer may wait for a reader that takes nothing. Long enough for a laptop that
/// changes networks; a stream that is cut can be resumed.
const STALL_MAX: Duration = Duration::from_secs(30);
/// How long we wait for what is still under way after our last word, so that a caller who is still
/// sending gets to read the answer instead of a reset.
const LINGER_MAX: Duration = Duration::from_secs(1);
/// Connections kept for questions about the hub's health when all others are taken: enough for every
/// probe that a deployment has, and little enough to cost nothing.
const HEALTH_CONNECTIONS: usize = 64;
const HEALTH_CONNECTIONS_PER_ADDRESS: usize = 4;
/// How long such a connection may do nothing. A probe says at once what it wants.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);
/// How long requests may still run when the hub stops: all of it has to fit in a second.
const GRACE: Duration = Duration::from_millis(850);

/// The limits of the accept loop and its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// For a request's head, counted from its first byte; also for a new connection's silence.
    pub header_timeout: Duration,
    /// Between two requests.
    pub idle_timeout: Duration,
    /// For a reader that takes nothing while we have something for it.
    pub stall_timeout: Duration,
    /// For the rest of a refused request, after the refusal.
    pub linger_timeout: Duration,
    /// For everything still running when the hub stops.
    pub grace: Duration,
    /// Connections open at once.
    pub max_connections: usize,
    /// Connections open at once from one peer.
    pub max_connections_per_address: usize,
    /// Beyond those, connections that may only ask how the hub is; and of one peer.
    pub health_connections: usize,
    pub health_connections_per_address: usize,
    /// For anything such a connection does.
    pub health_timeout: Duration,
}

impl Settings {
    /// Those of a connection that may only ask how the hub is: others wait for its place.
    pub fn for_health(&self) -> Self {
        let short = |timeout: Duration| timeout.min(self.health_timeout);
        Self {
            header_timeout: short(self.header_timeout),
            idle_timeout: short(self.idle_timeout),
            stall_timeout: short(self.stall_timeout),
            linger_timeout: short(self.linger_timeout),
            ..self.clone()
        }
    }
}

impl From<&Http> for Settings {
    fn from(http: &Http) -> Self {
        Self {
            header_timeout: http.header_timeout.duration(),
            idle_timeout: http.idle_timeout.duration(),
            stall_timeout: STALL_MAX,
            linger_timeout: LINGER_MAX,
            grace: GRACE,
            max_connections: http.max_connections.get() as usize,
            max_connections_per_address: http.max_connections_per_address.get() as usize,
            health_connections: HEALTH_CONNECTIONS,
            health_connections_per_address: HEALTH_CONNECTIONS_PER_ADDRESS,
            health_timeout: HEALTH_TIMEOUT,
        }
    }
}
