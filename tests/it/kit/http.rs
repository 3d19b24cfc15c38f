//! The client all tests call with.

use std::time::Duration;

/// No answer and no stream is silent for so long unless something hangs: the longest that anybody may
/// be kept waiting for news is 30 s, and quiet streams are pinged every 15 s.
const SILENCE_MAX: Duration = Duration::from_secs(90);

/// A client with connections of its own, to which a hub that hangs is an error.
pub fn http() -> reqwest::Client {
    http_builder().build().expect("a client")
}

/// The same for somebody with wishes.
pub fn http_builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder().no_proxy().read_timeout(SILENCE_MAX)
}
