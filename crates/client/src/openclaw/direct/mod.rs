//! From node to node, without a hub: a request goes to the node itself, and its result is fetched
//! there.
//!
//! A node is served by [`agent::direct::serve`](crate::agent::direct::serve) and answers
//!
//! | path | with |
//! |---|---|
//! | `GET /openclaw/identity` | who it is and what it can do |
//! | `GET /openclaw/status`, `GET /openclaw/reputation` | how it is, and how well it says it does |
//! | `POST /openclaw`, `…/messages`, `…/collaborations` | a response to a collaboration request, at once |
//! | `GET /openclaw/collaborations/{id}?wait=0…30` | how a collaboration stands, waiting for its result |
//! | `POST /openclaw/collaborations/{id}/cancel` | the `cancelled` result |
//! | `GET /openclaw/health` | that it is there |
//!
//! The checks are the hub's, in the hub's order, but for what only a hub knows: there are no keys
//! and no credits, so a `budget` is a promise. Whoever knows a collaboration's id is taken for one of
//! its two parties.
//!
//! A [`Peer`] asks such a node.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use rialto_client::openclaw::direct::Peer;
//! use rialto_client::openclaw::{Order, Uuid};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let me = Uuid::parse_str("ee0e8400-e29b-41d4-a716-446655440009")?;
//! let peer = Peer::find("http://127.0.0.1:8010", me).await?;
//! let asked = peer.request(&Order::new("count_words", r#"{"text":"one two"}"#)).await?;
//! println!("{:?}", peer.result(&asked, Duration::from_secs(60)).await?);
//! # Ok(())
//! # }
//! ```

mod book;
mod collaboration;
mod desk;
mod node;
mod peer;
mod works;

pub use peer::Peer;
pub(crate) use works::endpoint;
