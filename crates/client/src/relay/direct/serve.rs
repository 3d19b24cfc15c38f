//! The endpoint: a small HTTP server around a [`Receiver`].

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rialto_core::time::Timestamp;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::BODY_BYTES_MAX;
use super::receiver::{Answer, CannotAdapt, Received, Receiver};

/// Connections at a time; whoever is one too many waits to be accepted.
const CONNECTIONS_MAX: usize = 256;
/// How long a caller may take for the head of a request, and then for its body.
const READ_TIME_MAX: Duration = Duration::from_secs(30);
/// How long what runs may go on after the end.
const GRACE: Duration = Duration::from_secs(5);
/// How long to wait after a failed accept: out of file descriptors, most likely.
const PAUSE: Duration = Duration::from_millis(50);

/// Receives envelopes on every path of `listener` until `stop`; then what runs may finish. A caller
/// that hangs up takes the handling of its envelope with it.
pub async fn serve<H, F>(
    listener: TcpListener,
    receiver: Receiver<H>,
    stop: impl Future<Output = ()>,
) where
    H: Fn(Received) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), CannotAdapt>> + Send,
{
    let receiver = Arc::new(receiver);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(READ_TIME_MAX);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => accepted,
        };
        let Ok((stream, _)) = accepted else {
            sleep(PAUSE).await;
            continue;
        };
        let receiver = Arc::clone(&receiver);
        let service = service_fn(move |request| answer(Arc::clone(&receiver), request));
        let connection = http.serve_connection(TokioIo::new(stream), service);
        connections.spawn(graceful.watch(connection));
    }
    drop(listener);
    // Whoever does not end in time is dropped with the set of connections.
    let _ = timeout(GRACE, graceful.shutdown()).await;
}

async fn answer<H, F>(
    receiver: Arc<Receiver<H>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible>
where
    H: Fn(Received) -> F,
    F: Future<Output = Result<(), CannotAdapt>>,
{
    let answer = if request.method() == Method::POST {
        let (head, body) = request.into_parts();
        match whole(body).await {
            Ok(body) => receiver.receive(&head.headers, &body, now()).await,
            Err(answer) => answer,
        }
    } else {
        Answer::unusable(405, "envelopes are sent with POST")
    };
    let mut response = Response::new(Full::from(answer.body));
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if answer.status == 405 {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    Ok(response)
}

/// The whole body of a request, unless it is too long or too slow.
async fn whole(body: Incoming) -> Result<Bytes, Answer> {
    let limited = Limited::new(body, BODY_BYTES_MAX).collect();
    match timeout(READ_TIME_MAX, limited).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(Answer::unusable(413, &format!("the body has more than {BODY_BYTES_MAX} bytes")))
        }
        Ok(Err(_)) => Err(Answer::unusable(400, "the body broke off")),
        Err(_) => Err(Answer::unusable(408, "the body took too long")),
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
