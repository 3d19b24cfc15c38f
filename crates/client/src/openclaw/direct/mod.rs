//! Direct calls from node to node, without a hub: a request goes to the node itself, and its result
//! is fetched there.
//!
//! [`agent::direct::serve`](crate::agent::direct::serve) serves a node, which answers
//!
//! | path | with |
//! |---|---|
//! | `GET /openclaw/identity` | its identity and capabilities |
//! | `GET /openclaw/status`, `GET /openclaw/reputation` | its status, and the reputation it claims |
//! | `POST /openclaw`, `…/messages`, `…/collaborations` | an immediate response to a collaboration request |
//! | `GET /openclaw/collaborations/{id}?wait=0…30` | the state of a collaboration, after waiting for its result |
//! | `POST /openclaw/collaborations/{id}/cancel` | the `cancelled` result |
//! | `GET /openclaw/health` | a health check |
//!
//! The checks are the hub's, in the same order, except for what only a hub has: there are no keys
//! and no credits, so a `budget` is only a promise. A caller that knows a collaboration's id counts
//! as one of its two parties.
//!
//! A [`Peer`] calls such a node.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use rialto_client::openclaw::direct::Peer;
//! use rialto_client::openclaw::{RequestSpec, Uuid};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let me = Uuid::parse_str("ee0e8400-e29b-41d4-a716-446655440009")?;
//! let peer = Peer::connect("http://127.0.0.1:8010", me).await?;
//! let asked = peer.request(&RequestSpec::new("count_words", r#"{"text":"one two"}"#)).await?;
//! println!("{:?}", peer.result(&asked, Duration::from_secs(60)).await?);
//! # Ok(())
//! # }
//! ```

mod collaboration;
mod endpoint;
mod node;
mod peer;
mod service;
mod store;

pub(crate) use endpoint::endpoint;
pub use peer::Peer;
