//! One HTTP/1.1 connection of the load client.
//!
//! It is driven by whoever waits for its answer: a task of its own, as is usual with hyper, would
//! cost a switch for every request and every answer.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::StatusCode;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::measured::Trouble;

/// One open connection, with at most one request under way.
pub(super) struct Wire {
    sender: SendRequest<Full<Bytes>>,
    connection: Option<Connection<TokioIo<TcpStream>, Full<Bytes>>>,
}

impl Wire {
    /// Connects to a server.
    pub(super) async fn to(address: SocketAddr) -> Result<Self, Trouble> {
        let stream = TcpStream::connect(address).await.map_err(Trouble::broken)?;
        stream.set_nodelay(true).map_err(Trouble::broken)?;
        Self::over(stream).await
    }

    /// Speaks HTTP over a connection that is there already.
    pub(super) async fn over(stream: TcpStream) -> Result<Self, Trouble> {
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(Trouble::broken)?;
        Ok(Self { sender, connection: Some(connection) })
    }

    /// Waits until a request can be sent; `false` if the connection has been closed.
    pub(super) async fn is_open(&mut self) -> bool {
        let Some(driven) = &mut self.connection else { return false };
        tokio::select! {
            // The connection first: only its own look at the socket tells that the server is gone.
            biased;
            _ = driven => {
                self.connection = None;
                false
            }
            ready = self.sender.ready() => ready.is_ok(),
        }
    }

    /// Sends a request and waits for the whole answer.
    pub(super) async fn exchange(
        &mut self,
        request: hyper::Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), Trouble> {
        let Self { sender, connection } = self;
        let answer = async {
            let answer = sender.send_request(request).await?;
            let status = answer.status();
            Ok::<_, hyper::Error>((status, answer.into_body().collect().await?.to_bytes()))
        };
        tokio::pin!(answer);
        if let Some(driven) = connection {
            tokio::select! {
                biased;
                answered = &mut answer => return answered.map_err(Trouble::broken),
                _ = driven => {}
            }
        }
        // The server has closed the connection; the answer may have arrived just before that.
        *connection = None;
        answer.await.map_err(Trouble::broken)
    }
}
