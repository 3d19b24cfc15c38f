//! Refuses connections when all slots are taken.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How many refused connections get a response at once. The others are closed without one, so that
/// refusing never becomes a load of its own.
const RESPONSES_MAX: usize = 64;
/// Timeout for sending the response.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(500);
/// How much of a request is read before the response is sent.
const READ_MAX: usize = 16 << 10;

/// No path is known yet, so this has the format of `/v1` errors.
const OVERLOADED_RESPONSE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/problem+json\r\n\
    content-length: 106\r\n\
    retry-after: 1\r\n\
    connection: close\r\n\
    \r\n\
    {\"title\":\"too many connections\",\"status\":503,\"code\":\"overloaded\",\"retryable\":true,\
    \"retry_after_seconds\":1}";

/// Refuses connections.
pub struct OverloadResponder(Arc<Semaphore>);

impl OverloadResponder {
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(RESPONSES_MAX)))
    }

    /// Sends a 503 that asks the peer to retry later, and closes.
    pub fn refuse(&self, stream: TcpStream) {
        let Ok(told) = Arc::clone(&self.0).try_acquire_owned() else {
            return;
        };
        tokio::spawn(async move {
            // It does not matter whether the peer received it.
            let _ = timeout(RESPONSE_TIMEOUT, send_overloaded(stream)).await;
            drop(told);
        });
    }
}

async fn send_overloaded(mut stream: TcpStream) -> std::io::Result<()> {
    // A response that precedes its request confuses clients.
    let mut request = vec![0; READ_MAX];
    if stream.read(&mut request).await? == 0 {
        return Ok(());
    }
    stream.write_all(OVERLOADED_RESPONSE).await?;
    stream.shutdown().await?;
    while stream.read(&mut request).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_as_long_as_it_says() {
        let text = std::str::from_utf8(OVERLOADED_RESPONSE).expect("the answer is text");
        let (head, body) = text.split_once("\r\n\r\n").expect("the answer has a head");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{}", body.len());
        assert!(body.ends_with('}'));
    }
}
