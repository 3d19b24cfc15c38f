//! Limits on the number of connections and on their idle times.

use std::time::Duration;

use crate::config::Http;

/// How long a response may wait for a reader that reads nothing. Long enough for a laptop that
/// changes networks; a stream that is cut can be resumed.
const STALL_MAX: Duration = Duration::from_secs(30);
/// How long to keep reading after the last response, so that a client that is still sending can
/// read the response instead of a reset.
const LINGER_MAX: Duration = Duration::from_secs(1);
/// Connections reserved for health checks when all others are taken: enough for all probes of a
/// deployment, and cheap.
const HEALTH_CONNECTIONS: usize = 64;
const HEALTH_CONNECTIONS_PER_ADDRESS: usize = 4;
/// Idle timeout of such a connection. A probe sends its request at once.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);
/// How long requests may still run when the hub stops; the whole shutdown must fit in a second.
const GRACE: Duration = Duration::from_millis(850);

/// The limits of the accept loop and its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// For a request's head, from its first byte; also for a new connection that sends nothing.
    pub header_timeout: Duration,
    /// Between two requests.
    pub idle_timeout: Duration,
    /// For a reader that reads nothing while output is pending.
    pub stall_timeout: Duration,
    /// For reading the rest of a refused request, after the response.
    pub linger_timeout: Duration,
    /// For everything still running when the hub stops.
    pub grace: Duration,
    /// Connections open at once.
    pub max_connections: usize,
    /// Connections open at once from one address.
    pub max_connections_per_address: usize,
    /// Additional connections for health checks only, in total and per address.
    pub health_connections: usize,
    pub health_connections_per_address: usize,
    /// For anything such a connection does.
    pub health_timeout: Duration,
}

impl Settings {
    /// The limits of a health-only connection; short, because few slots are reserved.
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
            header_timeout: http.header_timeout.to_duration(),
            idle_timeout: http.idle_timeout.to_duration(),
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
