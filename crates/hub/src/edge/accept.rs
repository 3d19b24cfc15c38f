//! The accept loop: accepts connections until shutdown.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::connection::{ConnectionServer, serve_connection};
use super::dispatcher::Dispatcher;
use super::overload::OverloadResponder;
use super::peer::Peer;
use super::settings::Settings;
use super::slots::ConnectionSlots;
use super::threads::ConnectionThreads;
use crate::shutdown::Shutdown;
use crate::telemetry::Metrics;

/// Length of the OS queue of connections that are not yet accepted.
const BACKLOG: u32 = 1024;
/// Socket send buffer per connection. By default it would grow to megabytes, and a thousand stalled
/// readers would use more memory than the hub's own limits allow (T45).
const SEND_BUFFER: u32 = 128 << 10;
/// Delay after a failed accept: first and longest.
const ACCEPT_BACKOFF_MIN: Duration = Duration::from_millis(5);
const ACCEPT_BACKOFF_MAX: Duration = Duration::from_millis(500);

/// Listens on `address`.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restarted hub must not wait until the OS forgets the connections of its predecessor.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves on `threads` until `shutdown`, then waits for running requests up to the grace period and
/// drops the rest. Every request carries `ConnectInfo<SocketAddr>`.
pub async fn serve(
    listener: TcpListener,
    threads: &ConnectionThreads,
    dispatcher: Arc<Dispatcher>,
    settings: Settings,
    metrics: &Metrics,
    shutdown: Shutdown,
) {
    run_accept_loop(listener, threads, dispatcher, settings, metrics, shutdown).await;
}

/// Source of connections; a test has one that fails.
pub(super) trait Listener {
    fn accept_next(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send;
}

impl Listener for TcpListener {
    fn accept_next(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send {
        self.accept()
    }
}

pub(super) async fn run_accept_loop(
    door: impl Listener,
    threads: &ConnectionThreads,
    dispatcher: Arc<Dispatcher>,
    settings: Settings,
    metrics: &Metrics,
    shutdown: Shutdown,
) {
    let gauge = metrics.connection_gauge().clone();
    let slots =
        ConnectionSlots::new(settings.max_connections, settings.max_connections_per_address, gauge);
    // Extra slots for health checks, used when all other slots are taken.
    let (most, of_one) = (settings.health_connections, settings.health_connections_per_address);
    let kept = ConnectionSlots::new(most, of_one, Gauge::default());
    let refuser = OverloadResponder::new();
    let grace = settings.grace;
    let health = Arc::new(ConnectionServer::for_health(dispatcher.clone(), &settings));
    let counter = Arc::new(ConnectionServer::new(dispatcher, settings));
    let (stop, stopping) = watch::channel(false);
    let mut pause = ACCEPT_BACKOFF_MIN;
    loop {
        let next = tokio::select! {
            biased;
            () = shutdown.wait() => break,
            next = door.accept_next() => next,
        };
        let (stream, address) = match next {
            Ok(next) => next,
            Err(error) if is_about_one_connection(&error) => continue,
            Err(error) => {
                // Most likely out of file descriptors. They become free when connections end;
                // retrying at once would only burn CPU.
                warn!(%error, ?pause, "cannot accept connections");
                tokio::select! {
                    () = shutdown.wait() => break,
                    () = sleep(pause) => {}
                }
                pause = (pause * 2).min(ACCEPT_BACKOFF_MAX);
                continue;
            }
        };
        pause = ACCEPT_BACKOFF_MIN;
        let peer = Peer::from(address);
        let place = slots.try_acquire(peer).map(|slot| (slot, &counter));
        match place.or_else(|| kept.try_acquire(peer).map(|slot| (slot, &health))) {
            None => refuser.refuse(stream),
            Some((slot, counter)) => {
                // Without it a small response waits for the peer's ACK of the previous one.
                let _ = stream.set_nodelay(true);
                let (counter, stopping) = (Arc::clone(counter), stopping.clone());
                // A socket belongs to the runtime that waits for it.
                if let Ok(stream) = stream.into_std() {
                    threads.serve(serve_connection(counter, stream, address, slot, stopping));
                }
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

/// Errors of a connection that was closed before it was accepted; the next one may be fine.
fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};

    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
