//! Cards of A2A whose URLs the test chooses, at an address that the hub may call.

use std::net::IpAddr;

use axum::Router;
use axum::extract::Query;
use axum::response::IntoResponse;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Value, json};

/// A server of cards; it stops when dropped.
pub struct CardServer {
    url: String,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for CardServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// The URLs in a card.
#[derive(Deserialize)]
struct Wanted {
    interface: Option<String>,
    key_set: Option<String>,
}

impl CardServer {
    pub async fn start(address: IpAddr) -> Self {
        let listener = tokio::net::TcpListener::bind((address, 0)).await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let own = url.clone();
        let card = async move |Query(wanted): Query<Wanted>| axum::Json(card(&own, &wanted));
        let router =
            Router::new().route("/card", get(card)).fallback(async || "{}".into_response());
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        Self { url, server }
    }

    /// The URL of a card with a URL at one of its places.
    pub fn card_with(&self, place: &str, url: &str) -> String {
        let mut card = reqwest::Url::parse(&format!("{}/card", self.url)).expect("a URL");
        card.query_pairs_mut().append_pair(place, url);
        card.into()
    }

    /// The URL of a card that names no other server.
    pub fn plain_card(&self) -> String {
        format!("{}/card", self.url)
    }
}

fn card(own: &str, wanted: &Wanted) -> Value {
    let interface = wanted.interface.clone().unwrap_or_else(|| format!("{own}/rpc"));
    let mut card = json!({
        "name": "Probe", "description": "Is probed", "version": "1",
        "supportedInterfaces": [
            {"url": interface, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "probed", "name": "Probed", "description": "Is probed", "tags": ["x"]}],
    });
    if let Some(key_set) = &wanted.key_set {
        let header = json!({"alg": "EdDSA", "kid": "k", "typ": "JOSE", "jku": key_set});
        let protected = URL_SAFE_NO_PAD.encode(header.to_string());
        card["signatures"] =
            json!([{"protected": protected, "signature": URL_SAFE_NO_PAD.encode([7; 64])}]);
    }
    card
}
