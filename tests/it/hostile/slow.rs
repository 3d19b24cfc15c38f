//! Requests that never end, and idle connections (T43).

use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::bystander::Bystander;
use super::hub_process::HubProcess;
use super::room::Room;
use crate::kit::in_time;

/// Clients of each kind at once.
const CLIENTS: usize = 200;
/// Memory limit of one of them when all are connected, in a hub built without optimisation.
const SLOW_BYTES: u64 = 128 << 10;
/// Short timeouts, but long enough for a client on a busy machine.
pub const TIMEOUTS: [(&str, &str); 3] =
    [("http.header_timeout", "3s"), ("http.body_timeout", "3s"), ("http.idle_timeout", "3s")];
/// The pause between two bytes of a slow client.
const DRIP: Duration = Duration::from_millis(50);

/// Writes its bytes one by one for ever, and returns the response it gets in the end.
async fn drip(process: &HubProcess, begin: &str, rest: &str) -> String {
    let mut stream = TcpStream::connect(process.address).await.expect("it listens");
    stream.write_all(begin.as_bytes()).await.expect("it is sent");
    let (mut reads, mut writes) = stream.split();
    let mut answer = Vec::new();
    let dripping = async {
        for byte in rest.bytes().cycle() {
            tokio::time::sleep(DRIP).await;
            if writes.write_all(&[byte]).await.is_err() {
                // The connection is closed; the response can still be read.
                std::future::pending::<()>().await;
            }
        }
    };
    in_time(async {
        tokio::select! {
            () = dripping => {}
            _ = reads.read_to_end(&mut answer) => {}
        }
    })
    .await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_client_gets_408_or_is_disconnected_and_others_are_served() {
    let _room = Room::of(5 * CLIENTS).await;
    let process = HubProcess::open(&TIMEOUTS);
    let bystander = Bystander::arrive(&process).await;
    let before = process.memory();
    let host = format!("host: {}\r\n", process.address);
    let head = format!("POST /registry/register HTTP/1.1\r\n{host}");
    let heads = (0..CLIENTS).map(|_| drip(&process, "POST /registry/regis", "ter HTTP/1.1 x"));
    let fields = (0..CLIENTS).map(|_| drip(&process, &head, "x-slow: yes\r\nx-more"));
    let bodies = format!("{head}content-length: 100000\r\n\r\n{{");
    let bodies = (0..CLIENTS).map(|_| drip(&process, &bodies, " "));
    let chunks = format!("{head}transfer-encoding: chunked\r\n\r\n");
    let chunks = (0..CLIENTS).map(|_| drip(&process, &chunks, "1\r\n \r\n"));
    let silent = (0..CLIENTS).map(|_| drip_nothing(&process));
    let (heads, fields, bodies, chunks, silent) = tokio::join!(
        join_all(heads),
        join_all(fields),
        join_all(bodies),
        join_all(chunks),
        join_all(silent)
    );
    for answer in heads.iter().chain(&fields).chain(&silent) {
        let fine = answer.is_empty() || answer.starts_with("HTTP/1.1 408");
        assert!(fine, "{answer}");
    }
    for answer in bodies.iter().chain(&chunks) {
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
    let count = 5 * CLIENTS;
    process.assert_within(before, count as u64 * SLOW_BYTES, &format!("{count} slow clients"));
    bystander.leave().await;
}

/// Connects and waits for the hub to close.
async fn drip_nothing(process: &HubProcess) -> String {
    let mut stream = TcpStream::connect(process.address).await.expect("it listens");
    let mut answer = Vec::new();
    let _ = in_time(stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}
