//! The connections that a node accepts from others. They are useful while it writes.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::{debug, warn};

use super::codec::{HELLO_BYTES_MAX, invalid_data};
use super::connection::{Connection, HANDSHAKE_TIMEOUT, UnexpectedFrame, set_options};
use super::outgoing::Outgoing;
use super::{CALLS_MAX, Mode, TaskContext, WIRE_VERSION};
use crate::cluster::NodeId;
use crate::cluster::frame::{Ask, Frame, Hello, Reply, ReplyResult};

/// The most connections that have not proven the key and sent `Hello`. Further ones wait to be
/// accepted. They are not closed, because a node that is closed at once believes that the writer is
/// gone.
pub const UNAUTHENTICATED_MAX: usize = 64;

/// The most nodes that are connected.
pub const FOLLOWERS_MAX: usize = 256;

/// The most commands of one node without a reply. Further ones are replied `Overloaded`.
pub const UNANSWERED_MAX: usize = 1_024;

/// How long a `Hello` for an epoch that this node does not know yet may wait. A node that has taken
/// the lease needs a moment until it writes, and others learn of the lease before.
pub const LEAD_WAIT_MAX: Duration = Duration::from_secs(1);

/// How often the wait for an epoch looks whether it began.
const LEAD_POLL: Duration = Duration::from_millis(2);

/// The delay after an error of the listener, for example too many open files.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// A connection of another node, after both sides sent `Hello`.
pub(super) struct FollowerConnection {
    pub(super) node: NodeId,
    pub(super) epoch: u64,
    pub(super) outgoing: Outgoing,
    unanswered: Mutex<BTreeSet<u64>>,
    has_ended: watch::Sender<bool>,
}

impl FollowerConnection {
    fn new(hello: &Hello) -> Self {
        Self {
            node: hello.node,
            epoch: hello.epoch,
            outgoing: Outgoing::default(),
            unanswered: Mutex::default(),
            has_ended: watch::channel(false).0,
        }
    }

    pub(super) fn reply(&self, reply: Reply) {
        self.unanswered.lock().remove(&reply.number);
        self.outgoing.push(&Frame::Reply(reply));
    }

    /// Nothing was done, so the node need not have applied anything before it passes that on.
    fn reply_overloaded(&self, number: u64) {
        self.reply(Reply { number, place: 0, result: ReplyResult::Overloaded });
    }

    /// Counts a command as unanswered, unless there are too many.
    fn has_room(&self, ask: &Ask) -> bool {
        let mut unanswered = self.unanswered.lock();
        while unanswered.first().is_some_and(|first| *first < ask.low) {
            unanswered.pop_first();
        }
        unanswered.contains(&ask.number)
            || unanswered.len() < UNANSWERED_MAX && unanswered.insert(ask.number)
    }
}

/// Accepts connections until the task ends; then all of them end.
pub(super) async fn accept_connections(context: Arc<TaskContext>, listener: TcpListener) {
    let permits = Arc::new(Semaphore::new(UNAUTHENTICATED_MAX));
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((socket, _)) => {
                connections.spawn(serve_connection(context.clone(), socket, permit));
            }
            Err(error) => {
                warn!(%error, "no connection of another node can be accepted");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn serve_connection(
    context: Arc<TaskContext>,
    socket: TcpStream,
    permit: OwnedSemaphorePermit,
) {
    let opened = match timeout(HANDSHAKE_TIMEOUT, open_connection(&context, socket)).await {
        Ok(opened) => opened,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    };
    let (mut connection, hello) = match opened {
        Ok(opened) => opened,
        Err(error) => return debug!(%error, "a connection was refused"),
    };
    let Some(follower) = register(&context, &hello).await else {
        return debug!(node = %hello.node, epoch = hello.epoch, "not the writer of this epoch");
    };
    if connection.write_frame(&context.hello(hello.epoch)).await.is_err() {
        return;
    }
    drop(permit);
    let error = serve(&context, &follower.connection, connection).await;
    debug!(node = %hello.node, epoch = hello.epoch, %error, "the connection of a node ended");
}

/// Proves the key on both sides, and reads the `Hello` of a node of this hub and version.
async fn open_connection(
    context: &TaskContext,
    socket: TcpStream,
) -> io::Result<(Connection, Hello)> {
    set_options(&socket)?;
    let mut connection = Connection::new(context.tls.accept(socket).await?);
    let Frame::Hello(hello) = connection.input.read_frame(HELLO_BYTES_MAX).await? else {
        return Err(invalid_data("the first frame is not a Hello"));
    };
    if hello.hub != context.hub {
        return Err(invalid_data("a node of another hub"));
    }
    if hello.wire != WIRE_VERSION {
        // The node learns the version, so that it does not believe that the writer is gone.
        connection.write_frame(&context.hello(hello.epoch)).await?;
        return Err(invalid_data("another version of the frames"));
    }
    Ok((connection, hello))
}

/// A connection while it is the current one of its node.
struct RegisteredFollower {
    context: Arc<TaskContext>,
    connection: Arc<FollowerConnection>,
}

impl Drop for RegisteredFollower {
    fn drop(&mut self) {
        let Self { context, connection } = self;
        connection.outgoing.close();
        context.events.left(connection.node);
        context.connections.open.lock().followers.remove(&connection.node);
        connection.has_ended.send_replace(true);
    }
}

/// Makes a connection the current one of its node, after an older one has ended. `None` if this node
/// does not write in its epoch.
async fn register(context: &Arc<TaskContext>, hello: &Hello) -> Option<RegisteredFollower> {
    if !wait_to_lead(context, hello.epoch).await {
        return None;
    }
    loop {
        let older = {
            let mut open = context.connections.open.lock();
            let leads = *context.connections.mode.borrow() == Mode::Leading { epoch: hello.epoch };
            let is_full = open.followers.len() >= FOLLOWERS_MAX;
            match open.followers.get(&hello.node) {
                _ if !leads => return None,
                Some(older) => older.clone(),
                None if is_full => return None,
                None => {
                    let connection = Arc::new(FollowerConnection::new(hello));
                    open.followers.insert(hello.node, connection.clone());
                    return Some(RegisteredFollower { context: context.clone(), connection });
                }
            }
        };
        older.outgoing.close();
        // An error means that it has ended, too.
        let _ = older.has_ended.subscribe().wait_for(|ended| *ended).await;
    }
}

/// Whether this node writes in an epoch. Waits for an epoch that may be about to begin.
async fn wait_to_lead(context: &TaskContext, epoch: u64) -> bool {
    let deadline = Instant::now() + LEAD_WAIT_MAX;
    let mut mode = context.connections.mode.subscribe();
    loop {
        // Events are called without any lock, also that of the mode.
        let current = mode.borrow_and_update().clone();
        let may_begin = match current {
            Mode::Leading { epoch: leading } if leading == epoch => {
                if context.events.leading_epoch() == Some(epoch) {
                    return true;
                }
                true
            }
            Mode::Leading { epoch: leading } => leading < epoch,
            Mode::Following(writer) => writer.epoch < epoch,
            Mode::Idle => true,
            Mode::Stopped => false,
        };
        if !may_begin || Instant::now() >= deadline {
            return false;
        }
        let next_look = deadline.min(Instant::now() + LEAD_POLL);
        if let Ok(Err(_)) = timeout_at(next_look, mode.changed()).await {
            return false;
        }
    }
}

async fn serve(
    context: &TaskContext,
    follower: &Arc<FollowerConnection>,
    connection: Connection,
) -> io::Error {
    let (node, epoch, events) = (follower.node, follower.epoch, &context.events);
    let mut calls = JoinSet::new();
    let receive = |frame| {
        match frame {
            Frame::Ask(ask) => {
                let number = ask.number;
                if !follower.has_room(&ask) || !events.asked(epoch, node, ask) {
                    follower.reply_overloaded(number);
                }
            }
            Frame::Notes(notes) if notes.is_empty() => {}
            Frame::Notes(notes) => events.noted(node, notes),
            Frame::Call { number, body } => {
                while calls.try_join_next().is_some() {}
                if calls.len() >= CALLS_MAX {
                    follower.outgoing.push(&Frame::CallReply { number, body: None });
                    return Ok(());
                }
                let (answer, follower) = (events.called(body), follower.clone());
                calls.spawn(async move {
                    let body = answer.await;
                    follower.outgoing.push(&Frame::CallReply { number, body });
                });
            }
            Frame::Hello(_)
            | Frame::Reply(_)
            | Frame::Head(_)
            | Frame::Batch(_)
            | Frame::CallReply { .. }
            | Frame::Readers(_) => {
                return Err(UnexpectedFrame);
            }
        }
        Ok(())
    };
    connection.run(&follower.outgoing, || Frame::Head(events.head()), receive).await
}
