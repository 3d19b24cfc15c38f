//! What the hub shows of an agent that has a server of its own.

use schemars::JsonSchema;
use serde::Serialize;

use crate::kit::api_doc::Time;

/// The server of an agent, as its own description names it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OwnServerView {
    /// Where the hub fetches the description.
    pub card_url: String,
    pub interface: InterfaceView,
    #[schemars(with = "SignatureName")]
    pub signature: &'static str,
    /// Whether the description shows that it is the owner's, so that the owner's prices count.
    pub proven: bool,
    /// When the description was fetched last.
    pub fetched_at: Time,
    /// Why it could not be fetched since then. The one from before stays in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<FetchProblemView>,
}

/// Where the hub calls an agent, and how.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InterfaceView {
    pub url: String,
    pub binding: String,
    pub version: String,
}

crate::words! {
    /// Whether the description has a good signature.
    SignatureName: "verified" | "unsigned"
}

/// A failed attempt to fetch a description.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FetchProblemView {
    pub at: Time,
    pub text: String,
}
