//! The frames of one connection that were not written yet.
//!
//! Senders never wait: they append the bytes of a frame, and the task of the connection takes all of
//! them at once. A connection whose other side does not read fast enough is closed when too many
//! bytes wait; the other side connects again and asks again.

use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::warn;

use super::codec::{KEPT_BUFFER_BYTES, encode_frame};
use crate::cluster::frame::{Frame, Head};

/// The most bytes that wait to be written to one connection. One more frame is taken while there are
/// less, so a frame of any size can be sent.
pub const OUTGOING_BYTES_MAX: usize = 64 << 20;

/// With more bytes than this before them, batches are not sent: the other side reads them from the
/// database when it has caught up.
pub const UNSENT_BATCH_BYTES_MAX: usize = 4 << 20;

#[derive(Default)]
pub(super) struct Outgoing {
    queue: Mutex<Queue>,
    not_empty: Notify,
    close: Notify,
}

#[derive(Default)]
struct Queue {
    frames: Vec<u8>,
    /// The newest head that was not sent.
    head: Option<Head>,
    /// Bytes that were taken and are being written.
    writing: usize,
    is_closed: bool,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.head.is_none()
    }
}

impl Outgoing {
    /// Sends a frame, unless the connection is closed.
    pub(super) fn push(&self, frame: &Frame) {
        match encode_frame(frame) {
            Ok(bytes) => self.push_bytes(&bytes),
            Err(error) => warn!(%error, "a frame for another node was dropped"),
        }
    }

    fn push_bytes(&self, bytes: &[u8]) {
        let mut queue = self.queue.lock();
        if queue.is_closed {
            return;
        }
        if queue.frames.len() + queue.writing > OUTGOING_BYTES_MAX {
            warn!("a node does not read fast enough; its connection is closed");
            return self.close_queue(&mut queue);
        }
        let was_empty = queue.is_empty();
        queue.frames.extend_from_slice(bytes);
        drop(queue);
        if was_empty {
            self.not_empty.notify_one();
        }
    }

    /// Sends the frame of a batch. Sends only the head if the batch has no frame, or if the other side
    /// reads too slowly.
    pub(super) fn push_batch(&self, frame: Option<&[u8]>, head: Head) {
        let queue = self.queue.lock();
        let has_room = queue.frames.len() + queue.writing <= UNSENT_BATCH_BYTES_MAX;
        drop(queue);
        match frame.filter(|_| has_room) {
            Some(frame) => self.push_bytes(frame),
            None => self.set_head(head),
        }
    }

    /// Sends a head in place of an older one that was not sent yet.
    pub(super) fn set_head(&self, head: Head) {
        let mut queue = self.queue.lock();
        if queue.is_closed {
            return;
        }
        let was_empty = queue.is_empty();
        queue.head = Some(head);
        drop(queue);
        if was_empty {
            self.not_empty.notify_one();
        }
    }

    /// Waits for frames and moves all of them into `buffer`, whose content has been written.
    pub(super) async fn take(&self, buffer: &mut Vec<u8>) {
        while !self.try_take(buffer) {
            self.not_empty.notified().await;
        }
    }

    fn try_take(&self, buffer: &mut Vec<u8>) -> bool {
        buffer.clear();
        if buffer.capacity() > KEPT_BUFFER_BYTES {
            *buffer = Vec::new();
        }
        let mut queue = self.queue.lock();
        std::mem::swap(buffer, &mut queue.frames);
        if let Some(head) = queue.head.take() {
            buffer.extend(encode_frame(&Frame::Head(head)).expect("a head is short"));
        }
        queue.writing = buffer.len();
        !buffer.is_empty()
    }

    /// Ends the connection; what was not written is dropped.
    pub(super) fn close(&self) {
        self.close_queue(&mut self.queue.lock());
    }

    fn close_queue(&self, queue: &mut Queue) {
        queue.is_closed = true;
        queue.frames = Vec::new();
        queue.head = None;
        self.close.notify_one();
    }

    /// Waits until the connection is to end. For one task only.
    pub(super) async fn closed(&self) {
        self.close.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use rialto_core::time::Timestamp;

    use super::*;
    use crate::cluster::hop::codec::{FRAME_BYTES_MAX, FrameReader};

    fn head(number: u64) -> Head {
        Head { number, now: Timestamp(number as i64) }
    }

    async fn frames_in(bytes: &[u8]) -> Vec<Frame> {
        let mut reader = FrameReader::new(bytes);
        let mut frames = Vec::new();
        while let Ok(frame) = reader.read_frame(FRAME_BYTES_MAX).await {
            frames.push(frame);
        }
        frames
    }

    #[tokio::test]
    async fn only_the_newest_head_is_sent() {
        let outgoing = Outgoing::default();
        let call = Frame::Call { number: 1, body: vec![] };
        outgoing.set_head(head(1));
        outgoing.push(&call);
        outgoing.set_head(head(2));
        outgoing.set_head(head(3));
        let mut buffer = Vec::new();
        outgoing.take(&mut buffer).await;
        assert_eq!(frames_in(&buffer).await, [call, Frame::Head(head(3))]);
        outgoing.set_head(head(4));
        outgoing.take(&mut buffer).await;
        assert_eq!(frames_in(&buffer).await, [Frame::Head(head(4))]);
    }

    #[tokio::test]
    async fn a_queue_over_its_limit_closes_the_connection() {
        let outgoing = Outgoing::default();
        let half = vec![0; OUTGOING_BYTES_MAX / 2 + 1];
        let mut buffer = Vec::new();
        outgoing.push_bytes(&half);
        outgoing.take(&mut buffer).await;
        // What is being written counts too.
        outgoing.push_bytes(&half);
        assert!(!outgoing.queue.lock().is_closed);
        outgoing.push_bytes(&half);
        assert!(outgoing.queue.lock().is_closed);
        outgoing.closed().await;
        outgoing.push_bytes(&half);
        outgoing.set_head(head(1));
        assert!(outgoing.queue.lock().is_empty());
    }

    #[tokio::test]
    async fn one_frame_may_be_longer_than_the_limit() {
        let outgoing = Outgoing::default();
        outgoing.push_bytes(&vec![0; OUTGOING_BYTES_MAX + 1]);
        let mut buffer = Vec::new();
        outgoing.take(&mut buffer).await;
        assert!(buffer.len() > OUTGOING_BYTES_MAX);
        assert!(!outgoing.queue.lock().is_closed);
    }
}
