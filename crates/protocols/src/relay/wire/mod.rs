//! The protocol's types as on the wire. They need no server: the hub and its clients read and write
//! the same forms.

pub mod a2a;
pub mod address;
pub mod agent_card;
pub mod api_doc;
pub mod discovery;
pub mod envelope;
pub mod error;
pub mod inbox;
pub mod registration;
pub mod reply;
pub mod response;
pub mod send;
pub mod work;
