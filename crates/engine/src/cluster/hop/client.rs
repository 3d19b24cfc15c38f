//! The connection of a node to the writer: dials, and dials again when it ends.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::{debug, warn};

use super::codec::{HELLO_BYTES_MAX, invalid_data};
use super::connection::{Connection, HANDSHAKE_TIMEOUT, UnexpectedFrame, set_options};
use super::outgoing::Outgoing;
use super::{Mode, TaskContext, WIRE_VERSION, Writer};
use crate::cluster::frame::{CallFuture, Frame, Head, Notes};

/// How long the writer's host may take to answer at all.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest delay between two attempts to connect. The first attempt after a connection ended is
/// made at once, the next after `BACKOFF_MIN`, and then the delay doubles.
pub const BACKOFF_MAX: Duration = Duration::from_millis(250);
const BACKOFF_MIN: Duration = Duration::from_millis(5);

/// A connection that lasted less does not reset the backoff.
const BACKOFF_RESET_AFTER: Duration = Duration::from_millis(100);

/// So many connections in a row that are accepted and closed at once are a refusal: a proxy in front
/// of a writer that is gone does that, and a node that writes no longer.
pub const REFUSED_AFTER_CLOSES: usize = 3;

/// How soon after it was accepted, and before `Hello`, a connection is closed at once.
pub const REFUSED_WITHIN: Duration = Duration::from_millis(100);

/// How long a call waits for its answer.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// The most calls that wait for an answer. Further ones get none.
pub const CALLS_MAX: usize = 1_024;

/// A connection to the writer, after both sides sent `Hello`.
pub(super) struct WriterConnection {
    pub(super) epoch: u64,
    pub(super) outgoing: Outgoing,
    calls: Mutex<PendingCalls>,
}

#[derive(Default)]
struct PendingCalls {
    next_number: u64,
    waiting: HashMap<u64, oneshot::Sender<Option<Vec<u8>>>>,
    is_closed: bool,
}

impl WriterConnection {
    fn new(epoch: u64) -> Self {
        Self { epoch, outgoing: Outgoing::default(), calls: Mutex::default() }
    }

    /// Sends the call now; the future only waits.
    pub(super) fn call(self: Arc<Self>, body: Vec<u8>) -> CallFuture {
        let (sender, answer) = oneshot::channel();
        let mut calls = self.calls.lock();
        if calls.is_closed || calls.waiting.len() >= CALLS_MAX {
            return Box::pin(std::future::ready(None));
        }
        let number = calls.next_number;
        calls.next_number += 1;
        calls.waiting.insert(number, sender);
        drop(calls);
        self.outgoing.push(&Frame::Call { number, body });
        let pending = PendingCall { connection: self, number };
        Box::pin(async move {
            let _pending = pending;
            timeout(CALL_TIMEOUT, answer).await.ok()?.ok()?
        })
    }

    fn answer_call(&self, number: u64, body: Option<Vec<u8>>) {
        if let Some(call) = self.calls.lock().waiting.remove(&number) {
            // The caller may be gone.
            let _ = call.send(body);
        }
    }

    /// Ends the connection. Its calls get no answer.
    pub(super) fn close(&self) {
        self.outgoing.close();
        let mut calls = self.calls.lock();
        calls.is_closed = true;
        calls.waiting.clear();
    }
}

/// Frees the place of a call whose caller no longer waits.
struct PendingCall {
    connection: Arc<WriterConnection>,
    number: u64,
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.connection.calls.lock().waiting.remove(&self.number);
    }
}

/// Keeps a connection to the writer that is to be followed, whichever that is.
pub(super) async fn keep_connected(context: Arc<TaskContext>) {
    let mut mode = context.connections.mode.subscribe();
    loop {
        let now = mode.borrow_and_update().clone();
        let changed = match now {
            Mode::Stopped => return,
            Mode::Following(writer) if !writer.address.is_empty() => tokio::select! {
                changed = mode.changed() => changed,
                () = follow_writer(&context, &writer) => return,
            },
            _ => mode.changed().await,
        };
        if changed.is_err() {
            return;
        }
    }
}

/// How an attempt to connect ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttemptEnd {
    /// Nothing listens at the address.
    Refused,
    /// The connection was accepted, and closed at once.
    Closed,
    /// The other side did not answer, or too late, or not as a node of this hub does.
    Failed,
    /// Both sides sent `Hello`, and the connection served until it ended.
    Served,
}

async fn follow_writer(context: &TaskContext, writer: &Writer) {
    let mut backoff = Backoff::default();
    let mut refusals = RefusalDetector::default();
    loop {
        let began = Instant::now();
        let end = connect_and_serve(context, writer).await;
        if refusals.is_refused(end) {
            context.events.refused(writer.epoch);
        }
        if end == AttemptEnd::Served && began.elapsed() > BACKOFF_RESET_AFTER {
            backoff = Backoff::default();
        }
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

async fn connect_and_serve(context: &TaskContext, writer: &Writer) -> AttemptEnd {
    let socket = match timeout(CONNECT_TIMEOUT, TcpStream::connect(&*writer.address)).await {
        Ok(Ok(socket)) => socket,
        Ok(Err(error)) => return end_of_failed(writer, &error, Instant::now()),
        Err(_) => return end_of_failed(writer, &ErrorKind::TimedOut.into(), Instant::now()),
    };
    let accepted = Instant::now();
    let opening = open_connection(context, writer, socket);
    let (connection, head) = match timeout(HANDSHAKE_TIMEOUT, opening).await {
        Ok(Ok(opened)) => opened,
        Ok(Err(error)) => return end_of_failed(writer, &error, accepted),
        Err(_) => return end_of_failed(writer, &ErrorKind::TimedOut.into(), accepted),
    };
    if let Some(registered) = RegisteredWriter::new(context, writer) {
        let error = serve(context, &registered.connection, connection, head).await;
        debug!(epoch = writer.epoch, %error, "the connection to the writer ended");
    }
    AttemptEnd::Served
}

fn end_of_failed(writer: &Writer, error: &io::Error, accepted: Instant) -> AttemptEnd {
    debug!(epoch = writer.epoch, address = %writer.address, %error, "no connection to the writer");
    match error.kind() {
        ErrorKind::ConnectionRefused => AttemptEnd::Refused,
        ErrorKind::UnexpectedEof
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
            if accepted.elapsed() <= REFUSED_WITHIN =>
        {
            AttemptEnd::Closed
        }
        _ => AttemptEnd::Failed,
    }
}

/// Proves the key on both sides, and exchanges `Hello`.
async fn open_connection(
    context: &TaskContext,
    writer: &Writer,
    socket: TcpStream,
) -> io::Result<(Connection, Head)> {
    set_options(&socket)?;
    let mut connection = Connection::new(context.tls.connect(socket).await?);
    connection.write_frame(&context.hello(writer.epoch)).await?;
    let Frame::Hello(hello) = connection.input.read_frame(HELLO_BYTES_MAX).await? else {
        return Err(invalid_data("the first frame is not a Hello"));
    };
    if hello.hub != context.hub {
        return Err(invalid_data("a node of another hub"));
    }
    if hello.wire != WIRE_VERSION {
        let theirs = hello.wire;
        warn!(theirs, ours = WIRE_VERSION, "the writer has another version; update the older one");
        return Err(invalid_data("another version of the frames"));
    }
    if hello.epoch != writer.epoch {
        return Err(invalid_data("a writer of another epoch"));
    }
    Ok((connection, hello.head))
}

/// The connection while it is the one on which the node asks.
struct RegisteredWriter<'a> {
    context: &'a TaskContext,
    connection: Arc<WriterConnection>,
}

impl<'a> RegisteredWriter<'a> {
    /// `None` if another writer is to be followed by now.
    fn new(context: &'a TaskContext, writer: &Writer) -> Option<Self> {
        let mut open = context.connections.open.lock();
        if *context.connections.mode.borrow() != Mode::Following(writer.clone()) {
            return None;
        }
        let connection = Arc::new(WriterConnection::new(writer.epoch));
        open.writer = Some(connection.clone());
        Some(Self { context, connection })
    }
}

impl Drop for RegisteredWriter<'_> {
    fn drop(&mut self) {
        self.connection.close();
        let mut open = self.context.connections.open.lock();
        if open.writer.as_ref().is_some_and(|writer| Arc::ptr_eq(writer, &self.connection)) {
            open.writer = None;
        }
    }
}

async fn serve(
    context: &TaskContext,
    writer: &WriterConnection,
    connection: Connection,
    head: Head,
) -> io::Error {
    let (epoch, events) = (writer.epoch, &context.events);
    events.connected(epoch, head);
    let receive = |frame| {
        match frame {
            Frame::Reply(reply) => events.replied(epoch, reply),
            Frame::Head(head) => events.announced(epoch, head),
            Frame::Batch(batch) => events.received(batch),
            Frame::CallReply { number, body } => writer.answer_call(number, body),
            Frame::Readers(agents) => events.readers_told(agents),
            Frame::Hello(_) | Frame::Ask(_) | Frame::Notes(_) | Frame::Call { .. } => {
                return Err(UnexpectedFrame);
            }
        }
        Ok(())
    };
    connection.run(&writer.outgoing, || Frame::Notes(Notes::default()), receive).await
}

/// The delays between attempts: none, 5 ms, 10 ms, … up to the maximum.
#[derive(Default)]
struct Backoff {
    attempts: u32,
}

impl Backoff {
    fn next_delay(&mut self) -> Duration {
        let delay = match self.attempts.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => BACKOFF_MIN * (1 << doublings.min(16)),
        };
        self.attempts = self.attempts.saturating_add(1);
        delay.min(BACKOFF_MAX)
    }
}

/// Tells a writer that is gone from one that cannot be reached.
#[derive(Default)]
struct RefusalDetector {
    /// How many attempts in a row were closed at once.
    closes: usize,
}

impl RefusalDetector {
    /// Whether this end of an attempt means that the writer's process is gone. Once the closes are
    /// enough, every further one is a refusal.
    fn is_refused(&mut self, end: AttemptEnd) -> bool {
        match end {
            AttemptEnd::Refused => true,
            AttemptEnd::Closed => {
                self.closes += 1;
                self.closes >= REFUSED_AFTER_CLOSES
            }
            AttemptEnd::Failed | AttemptEnd::Served => {
                self.closes = 0;
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_redial_is_at_once_and_the_delays_double_up_to_the_maximum() {
        let mut backoff = Backoff::default();
        let delays: Vec<u128> = (0..9).map(|_| backoff.next_delay().as_millis()).collect();
        assert_eq!(delays, [0, 5, 10, 20, 40, 80, 160, 250, 250]);
        backoff.attempts = u32::MAX;
        assert_eq!(backoff.next_delay(), BACKOFF_MAX);
    }

    fn detect(ends: &[AttemptEnd]) -> Vec<bool> {
        let mut detector = RefusalDetector::default();
        ends.iter().map(|end| detector.is_refused(*end)).collect()
    }

    #[test]
    fn three_closes_in_a_row_are_a_refusal_and_so_is_each_after_them() {
        assert_eq!(detect(&[AttemptEnd::Closed; 4]), [false, false, true, true]);
        for between in [AttemptEnd::Failed, AttemptEnd::Served] {
            let ends = [AttemptEnd::Closed, AttemptEnd::Closed, between, AttemptEnd::Closed];
            assert_eq!(detect(&ends), [false; 4]);
        }
    }

    #[test]
    fn a_refused_connect_is_a_refusal_and_one_without_an_answer_is_none() {
        assert_eq!(detect(&[AttemptEnd::Refused; 2]), [true; 2]);
        assert_eq!(detect(&[AttemptEnd::Failed; 4]), [false; 4]);
    }

    #[test]
    fn only_a_connection_that_is_closed_soon_after_it_was_accepted_is_closed_at_once() {
        let writer = Writer { epoch: 1, address: "host:1".into() };
        let end = |kind: ErrorKind, accepted| end_of_failed(&writer, &kind.into(), accepted);
        let long_ago = Instant::now().checked_sub(2 * REFUSED_WITHIN).expect("a time");
        for kind in [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset] {
            assert_eq!(end(kind, Instant::now()), AttemptEnd::Closed);
            assert_eq!(end(kind, long_ago), AttemptEnd::Failed);
        }
        for kind in [ErrorKind::TimedOut, ErrorKind::HostUnreachable, ErrorKind::InvalidData] {
            assert_eq!(end(kind, Instant::now()), AttemptEnd::Failed);
        }
        assert_eq!(end(ErrorKind::ConnectionRefused, long_ago), AttemptEnd::Refused);
    }
}
