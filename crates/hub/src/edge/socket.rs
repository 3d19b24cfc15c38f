//! A connection's socket: reports phase changes and drains unread input before it closes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::connection_state::{ConnectionPhase, ConnectionState};
use super::slots::ConnectionSlot;

/// Unread bytes of a refused request that are drained before the socket is closed.
const DRAIN_BYTES_MAX: usize = 16 << 20;
/// How many bytes are drained at a time.
const DRAIN_CHUNK: usize = 4096;

/// The socket owns the connection's slot, so that the slot is not free before the socket is, even
/// if a handler takes over the socket.
pub struct ConnectionSocket {
    stream: TcpStream,
    connection_state: Arc<ConnectionState>,
    drained: usize,
    _slot: ConnectionSlot,
}

impl ConnectionSocket {
    pub fn new(
        stream: TcpStream,
        connection_state: Arc<ConnectionState>,
        slot: ConnectionSlot,
    ) -> Self {
        Self { stream, connection_state, drained: 0, _slot: slot }
    }

    fn note_read(&self, bytes: &[u8]) {
        match self.connection_state.snapshot().phase() {
            ConnectionPhase::Idle => self.connection_state.enter_phase(ConnectionPhase::Head),
            ConnectionPhase::Head => {}
            ConnectionPhase::Responding | ConnectionPhase::Closing => return,
        }
        self.connection_state.append_head(bytes);
    }

    fn note_written(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Pending => self.connection_state.mark_stalled(),
            Poll::Ready(_) => self.connection_state.mark_flowing(),
        }
    }
}

impl AsyncRead for ConnectionSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let fresh = buffer.filled().get(before..).unwrap_or_default();
        if !fresh.is_empty() {
            self.note_read(fresh);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ConnectionSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_written(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.note_written(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Closing a socket with unread bytes resets the connection, and the peer may lose the last
    /// response, which says what was wrong. So the rest is drained first.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        let phase = self.connection_state.snapshot().phase();
        if phase != ConnectionPhase::Closing {
            let half_read =
                phase == ConnectionPhase::Head && self.connection_state.has_partial_head();
            if !half_read && !self.connection_state.has_unread_body() {
                return Poll::Ready(Ok(()));
            }
            self.connection_state.enter_phase(ConnectionPhase::Closing);
        }
        while self.drained < DRAIN_BYTES_MAX {
            let mut part = [0; DRAIN_CHUNK];
            let mut part = ReadBuf::new(&mut part);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut part));
            if read.is_err() || part.filled().is_empty() {
                break;
            }
            self.drained += part.filled().len();
        }
        Poll::Ready(Ok(()))
    }
}
