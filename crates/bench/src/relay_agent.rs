//! Agents of the relay for benchmarks, registered over HTTP like any other agent (relay 2.3).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures_util::future::try_join_all;
use hyper::StatusCode;
use serde_json::Value;

use super::hyper_connection::BenchConnection;
use super::measurement::RequestError;
use super::raw_connection::{RawConnection, RawRequest};

/// Registrations in flight at once.
const REGISTRATIONS_MAX: usize = 32;

/// An agent, its key, and its position in its inbox.
#[derive(Clone, Debug)]
pub struct RelayAgent {
    pub id: String,
    pub key: String,
    /// Position of the last inbox event it has read.
    pub read_to: Arc<AtomicU64>,
}

impl RelayAgent {
    pub fn new(id: String, key: String) -> Self {
        Self { id, key, read_to: Arc::default() }
    }
}

/// Registers `count` agents without an endpoint. Their names all have the same length.
pub fn register_agents(hub: SocketAddr, prefix: &str, count: usize) -> io::Result<Vec<RelayAgent>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let agent_states = REGISTRATIONS_MAX.min(count);
    let shares = (0..agent_states)
        .map(|agent_state| register_share(hub, prefix, (agent_state..count).step_by(agent_states)));
    let made = runtime.block_on(try_join_all(shares));
    let made = made.map_err(|error| io::Error::other(format!("registration failed: {error}")))?;
    let mut all: Vec<_> = made.into_iter().flatten().collect();
    all.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(all)
}

async fn register_share(
    hub: SocketAddr,
    prefix: &str,
    places: impl Iterator<Item = usize>,
) -> Result<Vec<RelayAgent>, RequestError> {
    let mut line = RawConnection::connect(hub).await?;
    let mut made = Vec::new();
    for at in places {
        let body = format!(r#"{{"agent_id":"{prefix}-{at:05}"}}"#);
        let length = body.len();
        let request = format!(
            "POST /relay/register HTTP/1.1\r\nhost: {hub}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let (status, answer) = line.exchange(RawRequest(request.into())).await?;
        made.push(
            read(status, &answer)
                .ok_or_else(|| RequestError::unexpected_answer(status, &answer))?,
        );
    }
    Ok(made)
}

fn read(status: StatusCode, answer: &[u8]) -> Option<RelayAgent> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let text = |name: &str| Some(answer["data"][name].as_str()?.to_owned());
    (status == StatusCode::CREATED).then_some(())?;
    Some(RelayAgent::new(text("agent_id")?, text("api_key")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registration_gives_the_full_name_and_the_key() {
        let answer = br#"{"success":true,"data":{"agent_id":"a-1@chorus","api_key":"ca_1f",
            "registration":{"agent_id":"a-1@chorus"}},"metadata":{"timestamp":"x"}}"#;
        let made = read(StatusCode::CREATED, answer).unwrap();
        assert_eq!((made.id.as_str(), made.key.as_str()), ("a-1@chorus", "ca_1f"));
    }

    #[test]
    fn everything_else_is_a_failure() {
        let whole = br#"{"data":{"agent_id":"a@chorus","api_key":"ca_1f"}}"#;
        assert!(read(StatusCode::OK, whole).is_none());
        assert!(read(StatusCode::CREATED, br#"{"data":{"agent_id":"a@chorus"}}"#).is_none());
        assert!(read(StatusCode::CREATED, b"busy").is_none());
    }
}
