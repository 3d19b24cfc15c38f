//! A hub at its connection limit, and its health checks (T43).

use tokio::net::TcpStream;

use super::hub_process::HubProcess;
use super::room::Room;
use crate::kit::in_time;

/// The connection limit.
const PLACES: usize = 20;
/// No connection is closed for being idle during the test.
const SETTINGS: [(&str, &str); 3] = [
    ("http.max_connections", "20"),
    ("http.header_timeout", "1h"),
    ("http.min_body_bytes_per_second", "0"),
];
const HEALTH: [&str; 6] =
    ["/livez", "/readyz", "/health", "/relay/health", "/registry/health", "/openclaw/health"];

async fn get(process: &HubProcess, path: &str) -> String {
    process
        .raw(format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", process.address).as_bytes())
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_without_a_free_place_tells_how_it_is_and_when_to_come_back() {
    let _room = Room::of(PLACES).await;
    let process = HubProcess::open(&SETTINGS);
    let mut silent = Vec::new();
    for _ in 0..PLACES {
        silent.push(TcpStream::connect(process.address).await.expect("it listens"));
    }
    for path in HEALTH {
        let answer = get(&process, path).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
    for path in ["/relay/agents", "/registry/discover?skill=x", "/v1/agents", "/metrics", "/none"] {
        let answer = get(&process, path).await;
        assert!(answer.starts_with("HTTP/1.1 503"), "{path}: {answer}");
        assert!(answer.contains("retry-after: 1\r\n"), "{path}: {answer}");
        assert!(answer.contains("\"retryable\":true"), "{path}: {answer}");
    }
    drop(silent);
    // Slots are free as soon as the hub notices the closed connections.
    let served = async { while !get_once(&process).await {} };
    in_time(served).await;
}

/// Whether a request other than a health check is served.
async fn get_once(process: &HubProcess) -> bool {
    let request = format!(
        "GET /relay/agents HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
        process.address
    );
    process.raw(request.as_bytes()).await.starts_with("HTTP/1.1 200")
}
