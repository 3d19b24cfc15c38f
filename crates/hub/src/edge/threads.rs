//! The threads that serve connections: one per core, each with a runtime of its own.
//!
//! A connection stays on the thread it was given to. A request is read, handled and answered there,
//! so its tasks never move between cores, and the replies of the lane wake each thread once per
//! batch (`rialto_engine::receive_replies`). See ADR 43.

use std::convert::Infallible;
use std::io;
use std::thread;

use rialto_engine::receive_replies;
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc;

/// All threads that serve connections of one hub. After this is dropped, each ends when its last
/// connection has ended.
pub struct ConnectionThreads(Vec<ConnectionThread>);

struct ConnectionThread {
    runtime: Handle,
    /// Nothing is ever sent: every connection of the thread holds a clone.
    connections: mpsc::Sender<Infallible>,
}

impl ConnectionThreads {
    /// Starts one thread per core.
    pub fn start() -> io::Result<Self> {
        let count = thread::available_parallelism().map_or(1, usize::from);
        (0..count).map(ConnectionThread::start).collect::<io::Result<_>>().map(Self)
    }

    /// Serves connections on the runtime of the caller, whose logs a test can capture.
    #[cfg(test)]
    pub fn of_caller() -> Self {
        let (connections, _) = mpsc::channel(1);
        Self(vec![ConnectionThread { runtime: Handle::current(), connections }])
    }

    /// Serves a connection on the thread that has the fewest.
    pub fn serve(&self, connection: impl Future<Output = ()> + Send + 'static) {
        let count = |thread: &&ConnectionThread| thread.connections.strong_count();
        let Some(thread) = self.0.iter().min_by_key(count) else { return };
        let counted = thread.connections.clone();
        thread.runtime.spawn(async move {
            connection.await;
            drop(counted);
        });
    }
}

impl ConnectionThread {
    fn start(number: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (connections, mut ended) = mpsc::channel(1);
        thread::Builder::new().name(format!("edge-{number}")).spawn(move || {
            runtime.block_on(async {
                tokio::spawn(receive_replies());
                // `None`, once neither the hub nor a connection holds a sender.
                let _: Option<Infallible> = ended.recv().await;
            });
            // A read of the store that no request waits for any more need not be waited for.
            runtime.shutdown_background();
        })?;
        Ok(Self { runtime: handle, connections })
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn connections_are_spread_evenly_and_stay_until_they_end() {
        let threads =
            ConnectionThreads((0..3).map(|n| ConnectionThread::start(n).unwrap()).collect());
        let (names, mut seen) = mpsc::unbounded_channel();
        let mut open = Vec::new();
        for _ in 0..6 {
            let (end, ended) = oneshot::channel::<()>();
            let names = names.clone();
            open.push(end);
            threads.serve(async move {
                let name = thread::current().name().map(str::to_owned);
                names.send(name).expect("the test listens");
                let _ = ended.await;
            });
        }
        let mut served = Vec::new();
        for _ in 0..6 {
            served.push(seen.recv().await.flatten().expect("a thread has a name"));
        }
        served.sort();
        assert_eq!(served, ["edge-0", "edge-0", "edge-1", "edge-1", "edge-2", "edge-2"]);
    }

    #[tokio::test]
    async fn a_connection_may_finish_after_the_hub_has_let_go_of_its_threads() {
        let threads = ConnectionThreads(vec![ConnectionThread::start(0).expect("a thread")]);
        let (end, ended) = oneshot::channel::<()>();
        let (done, finished) = oneshot::channel();
        threads.serve(async move {
            let _ = ended.await;
            done.send("finished").expect("the test listens");
        });
        drop(threads);
        end.send(()).expect("the connection is still served");
        assert_eq!(finished.await, Ok("finished"));
    }
}
