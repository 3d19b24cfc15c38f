//! The accept loop: takes connections, and stops taking them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::connection::{Counter, attend};
use super::front::Fronted;
use super::peer::Peer;
use super::refuse::Refuser;
use super::settings::Settings;
use super::slots::Slots;
use crate::shutdown::Shutdown;
use crate::telemetry::Metrics;

/// Connections the system may hold ready for us.
const BACKLOG: u32 = 1024;
/// What the system may hold for a slow reader. Left alone it would grow to megabytes each, and a
/// thousand stalled readers would take what the hub itself promises not to (T45).
const SEND_BUFFER: u32 = 128 << 10;
/// How long we wait after a failed accept: at first, and at most.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Listens on `address`.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restarted hub must not wait for the connections of the one before it to be forgotten.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until `shutdown`; then lets what runs finish, within the grace, and drops the
/// rest. Every request carries `ConnectInfo<SocketAddr>`.
pub async fn serve(
    listener: TcpListener,
    fronted: Fronted,
    settings: Settings,
    metrics: &Metrics,
    shutdown: Shutdown,
) {
    take_all(listener, fronted, settings, metrics, shutdown).await;
}

/// Where connections come from. A test has one that fails.
pub(super) trait Door {
    fn next(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send;
}

impl Door for TcpListener {
    fn next(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send {
        self.accept()
    }
}

pub(super) async fn take_all(
    door: impl Door,
    fronted: Fronted,
    settings: Settings,
    metrics: &Metrics,
    shutdown: Shutdown,
) {
    let gauge = metrics.connections().clone();
    let slots = Slots::new(settings.max_connections, settings.max_connections_per_address, gauge);
    // These are not counted among the others: they are there when no place is left.
    let (most, of_one) = (settings.health_connections, settings.health_connections_per_address);
    let kept = Slots::new(most, of_one, Gauge::default());
    let refuser = Refuser::new();
    let grace = settings.grace;
    let health = Arc::new(Counter::for_health(fronted.clone(), &settings));
    let counter = Arc::new(Counter::new(fronted, settings));
    let (stop, stopping) = watch::channel(false);
    let mut pause = PAUSE_MIN;
    loop {
        let next = tokio::select! {
            biased;
            () = shutdown.wait() => break,
            next = door.next() => next,
        };
        let (stream, address) = match next {
            Ok(next) => next,
            Err(error) if is_about_one_connection(&error) => continue,
            Err(error) => {
                // Out of file descriptors, most likely. Some will come back when connections end;
                // asking at once would only burn the time they need for that.
                warn!(%error, ?pause, "cannot accept connections");
                tokio::select! {
                    () = shutdown.wait() => break,
                    () = sleep(pause) => {}
                }
                pause = (pause * 2).min(PAUSE_MAX);
                continue;
            }
        };
        pause = PAUSE_MIN;
        let peer = Peer::from(address);
        let place = slots.take(peer).map(|slot| (slot, &counter));
        match place.or_else(|| kept.take(peer).map(|slot| (slot, &health))) {
            None => refuser.refuse(stream),
            Some((slot, counter)) => {
                // Without it small answers wait for the peer's acknowledgement of the one before.
                let _ = stream.set_nodelay(true);
                let counter = Arc::clone(counter);
                tokio::spawn(attend(counter, stream, address, slot, stopping.clone()));
            }
        }
    }
    // Closes the listener first, so that new connections are refused at once.
    drop((door, stopping));
    stop.send_replace(true);
    if timeout(grace, stop.closed()).await.is_err() {
        info!(
            connections = stop.receiver_count(),
            "closed connections that did not finish in time"
        );
    }
}

/// Errors of a connection that was gone before we took it; the next one may be fine.
fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};

    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
