//! Sets up a hub through its API: many requests once each, over several connections on all cores.

use std::io;
use std::net::SocketAddr;
use std::thread;

use futures_util::future::try_join_all;
use hyper::StatusCode;

use crate::connection::{BenchConnection, RawConnection, RawRequest};
use crate::measurement::RequestError;

/// Connections of each thread.
const CONNECTIONS: usize = 32;

/// Sends `count` requests, each once, and returns what `read` makes of the answers, in order. Fails
/// at the first answer of which `read` makes nothing.
pub fn send_all<T: Send>(
    address: SocketAddr,
    count: usize,
    request_for: impl Fn(usize) -> RawRequest + Sync,
    read: impl Fn(StatusCode, &[u8]) -> Option<T> + Sync,
) -> io::Result<Vec<T>> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let connections = (threads * CONNECTIONS).min(count);
    let (request_for, read) = (&request_for, &read);
    let share = move |first: usize| async move {
        let mut connection = RawConnection::connect(address).await?;
        let mut values = Vec::new();
        for number in (first..count).step_by(connections) {
            let (status, body) = connection.exchange(request_for(number)).await?;
            let value = read(status, &body);
            let value = value.ok_or_else(|| RequestError::unexpected_answer(status, &body))?;
            values.push((number, value));
        }
        Ok::<_, RequestError>(values)
    };
    let run_thread = move |thread: usize| -> io::Result<Vec<(usize, T)>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let shares = (thread..connections).step_by(threads).map(share);
        let done = runtime.block_on(try_join_all(shares));
        let done = done.map_err(|error| io::Error::other(format!("setup failed: {error}")))?;
        Ok(done.into_iter().flatten().collect())
    };
    let shares = thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || run_thread(thread))).collect();
        let joined = workers.into_iter().map(|worker| {
            worker.join().map_err(|_| io::Error::other("a client thread panicked")).flatten()
        });
        joined.collect::<io::Result<Vec<_>>>()
    })?;
    let mut values: Vec<_> = shares.into_iter().flatten().collect();
    values.sort_by_key(|(number, _)| *number);
    Ok(values.into_iter().map(|(_, value)| value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::echo::{EchoServer, EchoWorker};

    fn job(n: usize) -> String {
        format!(
            r#"{{"job_id":"{n}","orchestrator_id":"o","skill_name":"s","input_data":{{}},"budget":1}}"#
        )
    }

    #[test]
    fn answers_come_back_in_the_order_of_the_requests() {
        let echo = EchoServer::start(1, EchoWorker::default()).unwrap();
        let address = echo.address();
        let request_for = |n| RawRequest::post(address, "/registry/jobs", "", job(n).as_bytes());
        let read = |_, body: &[u8]| {
            let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
            answer["job_id"].as_str()?.parse::<usize>().ok()
        };
        let numbers = send_all(address, 100, request_for, read).unwrap();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
        assert_eq!(send_all(address, 0, request_for, read).unwrap(), Vec::<usize>::new());
    }

    #[test]
    fn a_refused_request_ends_the_setup() {
        let echo = EchoServer::start(1, EchoWorker::default()).unwrap();
        let address = echo.address();
        let request_for = |_| RawRequest::post(address, "/registry/jobs", "", b"{}");
        let done = send_all(address, 3, request_for, |status, _| status.is_success().then_some(()));
        assert!(done.unwrap_err().to_string().starts_with("setup failed: 400"));
    }
}
