//! What both sides of a connection do: the socket's options, and frames in and out until it ends.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsStream;

use super::codec::{FRAME_BYTES_MAX, FrameReader, encode_frame, invalid_data};
use super::outgoing::Outgoing;
use crate::cluster::frame::Frame;

/// How long a connection may take to prove its key and to say `Hello`.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// After this long without any other frame, a side sends one that says nothing new.
pub const IDLE_FRAME_AFTER: Duration = Duration::from_millis(500);

/// A connection on which nothing arrives for this long is closed: the other side is paused, or the
/// network swallows what it sends.
pub const SILENCE_MAX: Duration = Duration::from_secs(3);

/// How many frames are handled before the task writes what is waiting.
const FRAMES_PER_TURN: usize = 256;

const KEEPALIVE_IDLE: Duration = Duration::from_secs(2);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(1);
const KEEPALIVE_RETRIES: u32 = 3;

/// The two halves of an open connection.
pub(super) struct Connection {
    pub(super) input: FrameReader<ReadHalf<TlsStream<TcpStream>>>,
    pub(super) output: WriteHalf<TlsStream<TcpStream>>,
}

/// A frame that this side does not take.
pub(super) struct UnexpectedFrame;

/// Frames are sent at once, and a host that disappeared is noticed within seconds.
pub(super) fn set_options(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    SockRef::from(socket).set_tcp_keepalive(&keepalive)
}

impl Connection {
    pub(super) fn new(stream: TlsStream<TcpStream>) -> Self {
        let (input, output) = tokio::io::split(stream);
        Self { input: FrameReader::new(input), output }
    }

    /// Writes one frame, for the time before there is a queue.
    pub(super) async fn write_frame(&mut self, frame: &Frame) -> io::Result<()> {
        self.output.write_all(&encode_frame(frame).map_err(invalid_data)?).await?;
        self.output.flush().await
    }

    /// Reads and writes until the connection ends, and returns why. Both in one task, so that they
    /// end together.
    pub(super) async fn run(
        self,
        outgoing: &Outgoing,
        idle_frame: impl Fn() -> Frame,
        receive: impl FnMut(Frame) -> Result<(), UnexpectedFrame>,
    ) -> io::Error {
        tokio::select! {
            error = read_frames(self.input, receive) => error,
            error = write_frames(self.output, outgoing, idle_frame) => error,
            () = outgoing.closed() => io::ErrorKind::ConnectionAborted.into(),
        }
    }
}

async fn read_frames(
    mut input: FrameReader<ReadHalf<TlsStream<TcpStream>>>,
    mut receive: impl FnMut(Frame) -> Result<(), UnexpectedFrame>,
) -> io::Error {
    let mut handled = 0;
    loop {
        match input.buffered_frame(FRAME_BYTES_MAX) {
            Ok(Some(frame)) => {
                if receive(frame).is_err() {
                    return invalid_data("a frame that this side does not take");
                }
                handled += 1;
            }
            Ok(None) => match timeout(SILENCE_MAX, input.fill()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return error,
                Err(_) => return io::ErrorKind::TimedOut.into(),
            },
            Err(error) => return error,
        }
        if handled >= FRAMES_PER_TURN {
            handled = 0;
            tokio::task::yield_now().await;
        }
    }
}

async fn write_frames(
    mut output: WriteHalf<TlsStream<TcpStream>>,
    outgoing: &Outgoing,
    idle_frame: impl Fn() -> Frame,
) -> io::Error {
    let mut buffer = Vec::new();
    loop {
        if timeout(IDLE_FRAME_AFTER, outgoing.take(&mut buffer)).await.is_err() {
            outgoing.push(&idle_frame());
            continue;
        }
        if let Err(error) = output.write_all(&buffer).await {
            return error;
        }
        if let Err(error) = output.flush().await {
            return error;
        }
    }
}
