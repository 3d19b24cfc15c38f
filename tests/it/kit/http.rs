//! The HTTP client of all tests.

use std::time::Duration;

/// A longer silence means that something hangs: the longest wait for news is 30 s, and idle streams
/// are pinged every 15 s.
const SILENCE_MAX: Duration = Duration::from_secs(90);

/// A client with its own connections, for which a hub that hangs is an error.
pub fn http() -> reqwest::Client {
    http_builder().build().expect("a client")
}

/// The same, for further options.
pub fn http_builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder().no_proxy().read_timeout(SILENCE_MAX)
}
