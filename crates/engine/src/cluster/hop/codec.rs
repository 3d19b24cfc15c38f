//! Frames as bytes: a length of four bytes, then the encoded frame.

use std::io;

use bytes::{Buf, BytesMut};
use rialto_core::encoding::{self, ENCODED_BYTES_MAX, EncodingError};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::cluster::frame::Frame;

/// The most bytes of one frame.
pub const FRAME_BYTES_MAX: usize = ENCODED_BYTES_MAX;

/// The most bytes of the first frame of a connection, a `Hello`.
pub const HELLO_BYTES_MAX: usize = 128;

const LENGTH_BYTES: usize = 4;
/// How much is read at a time. A longer frame gets memory as its bytes arrive, whatever length it
/// claims.
const READ_BYTES: usize = 64 << 10;
/// A buffer that became larger than this for a long frame is given back after it.
pub(super) const KEPT_BUFFER_BYTES: usize = 1 << 20;

/// A frame with its length before it.
pub(super) fn encode_frame(frame: &Frame) -> Result<Vec<u8>, EncodingError> {
    let mut bytes = encoding::encode_to(frame, vec![0; LENGTH_BYTES])?;
    let length = bytes.len() - LENGTH_BYTES;
    let length = u32::try_from(length).map_err(|_| EncodingError::TooLong)?;
    bytes[..LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
    Ok(bytes)
}

/// Reads the frames of one connection.
pub(super) struct FrameReader<R> {
    input: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, buffer: BytesMut::new() }
    }

    /// The next frame, of at most `limit` bytes.
    pub(super) async fn read_frame(&mut self, limit: usize) -> io::Result<Frame> {
        loop {
            if let Some(frame) = self.buffered_frame(limit)? {
                return Ok(frame);
            }
            self.fill().await?;
        }
    }

    /// The next frame, if all of it has arrived.
    pub(super) fn buffered_frame(&mut self, limit: usize) -> io::Result<Option<Frame>> {
        let Some((length, rest)) = self.buffer.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > limit {
            return Err(invalid_data(format!("a frame of {length} bytes, more than {limit}")));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let frame = encoding::decode(body).map_err(invalid_data)?;
        self.buffer.advance(LENGTH_BYTES + length);
        Ok(Some(frame))
    }

    /// Waits for more bytes.
    pub(super) async fn fill(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_BUFFER_BYTES {
            self.buffer = BytesMut::new();
        }
        self.buffer.reserve(READ_BYTES);
        match self.input.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// The error of bytes that no node of this version sends.
pub(super) fn invalid_data(
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use rialto_core::time::Timestamp;

    use super::*;
    use crate::cluster::NodeId;
    use crate::cluster::frame::{Head, Hello};

    fn read_all(bytes: &[u8], limit: usize) -> (Vec<Frame>, io::Error) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let mut reader = FrameReader::new(bytes);
            let mut frames = Vec::new();
            loop {
                match reader.read_frame(limit).await {
                    Ok(frame) => frames.push(frame),
                    Err(error) => return (frames, error),
                }
            }
        })
    }

    #[test]
    fn the_largest_hello_is_within_its_limit() {
        let head = Head { number: u64::MAX, now: Timestamp(i64::MIN) };
        let hub = [0xff; 16];
        let (node, epoch) = (NodeId(u64::MAX), u64::MAX);
        let hello = Frame::Hello(Hello { hub, wire: u16::MAX, node, epoch, head });
        let bytes = encode_frame(&hello).expect("it is encoded");
        assert!(bytes.len() - LENGTH_BYTES <= HELLO_BYTES_MAX, "{}", bytes.len());
        assert_eq!(read_all(&bytes, HELLO_BYTES_MAX).0, [hello]);
    }

    #[test]
    fn frames_follow_each_other_and_a_part_of_one_is_none() {
        let frames: Vec<Frame> = [0, 1, 127, 128, 70_000, 3]
            .map(|length| Frame::Call { number: length as u64, body: vec![7; length] })
            .into();
        let bytes: Vec<u8> =
            frames.iter().flat_map(|frame| encode_frame(frame).expect("it is encoded")).collect();
        assert_eq!(read_all(&bytes, FRAME_BYTES_MAX).0, frames);
        for missing in [1, 5, 8, 100] {
            let (read, error) = read_all(&bytes[..bytes.len() - missing], FRAME_BYTES_MAX);
            assert_eq!(read[..], frames[..read.len()]);
            assert!(read.len() < frames.len());
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_any_of_its_bytes() {
        let claims = u32::MAX.to_be_bytes();
        assert_eq!(read_all(&claims, FRAME_BYTES_MAX).1.kind(), io::ErrorKind::InvalidData);
        let claims = (HELLO_BYTES_MAX as u32 + 1).to_be_bytes();
        assert_eq!(read_all(&claims, HELLO_BYTES_MAX).1.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_claimed_length_reserves_no_memory() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let mut bytes = (FRAME_BYTES_MAX as u32).to_be_bytes().to_vec();
        bytes.extend([0; 100]);
        let mut reader = FrameReader::new(&bytes[..]);
        assert!(runtime.block_on(reader.read_frame(FRAME_BYTES_MAX)).is_err());
        assert!(reader.buffer.capacity() <= 4 * READ_BYTES, "{}", reader.buffer.capacity());
    }

    proptest::proptest! {
        #[test]
        fn random_bytes_are_frames_or_an_error(bytes: Vec<u8>) {
            let (_, error) = read_all(&bytes, FRAME_BYTES_MAX);
            proptest::prop_assert!(matches!(
                error.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
            ));
        }

        #[test]
        fn random_bytes_in_a_frame_are_decoded_or_an_error(mut body: Vec<u8>) {
            body.insert(0, encoding::VERSION);
            let mut bytes = (body.len() as u32).to_be_bytes().to_vec();
            bytes.extend(&body);
            read_all(&bytes, FRAME_BYTES_MAX);
        }
    }
}
