//! A wallet at a market. It sends messages and reads their results.

use rialto_protocols::clara::wire::result::{MarketMessage, MessageResult};
use rialto_protocols::clara::{Action, PROTOCOL};

use super::server::Server;
use super::signed_item::SignedItem;
use super::wallet::Wallet;
use crate::call::CallError;

/// A wallet at a market.
#[derive(Clone, Debug)]
pub struct MarketClient {
    wallet: Wallet,
    server: Server,
}

/// The result of a message that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionResult {
    /// The id of the message.
    pub id: String,
    /// The messages the market sent; a reply to the sender comes first.
    pub messages: Vec<MarketMessage>,
}

impl MarketClient {
    /// Creates a client for this wallet and market. Sends nothing.
    pub fn new(wallet: Wallet, server: Server) -> Self {
        Self { wallet, server }
    }

    /// The wallet.
    pub fn wallet(&self) -> &Wallet {
        &self.wallet
    }

    /// The wallet's address.
    pub fn address(&self) -> &str {
        self.wallet.address()
    }

    /// The market.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Sends an action with these extra tags, and reads its result. If the market refuses it, the
    /// error contains the market's text.
    pub async fn send_action(
        &self,
        action: Action,
        tags: &[(&str, &str)],
        data: &str,
    ) -> Result<ActionResult, CallError> {
        self.send(&self.sign(action, tags, data)?).await
    }

    /// Signs an action without sending it.
    pub fn sign(
        &self,
        action: Action,
        tags: &[(&str, &str)],
        data: &str,
    ) -> Result<SignedItem, CallError> {
        let mut all = vec![("Action", action.as_str()), ("Protocol", PROTOCOL)];
        all.extend_from_slice(tags);
        self.wallet.sign(self.server.process(), &all, data)
    }

    /// Sends a message and reads its result. It is safe to send the same message again.
    pub async fn send(&self, signed: &SignedItem) -> Result<ActionResult, CallError> {
        self.server.post(signed).await?;
        let result = self.server.result(&signed.id).await?;
        action_messages(result).map(|messages| ActionResult { id: signed.id.clone(), messages })
    }
}

impl ActionResult {
    /// The data of the first message.
    pub(super) fn data(&self) -> Option<&str> {
        self.messages.first().and_then(|message| message.data.as_deref())
    }

    /// The tag of the first message with this name.
    pub(super) fn tag(&self, name: &str) -> Option<&str> {
        self.messages.first().and_then(|message| message.tag(name))
    }
}

/// The market's messages, or its `Error`. The market does not say whether a retry can succeed; only
/// a lack of agents or offers is temporary.
fn action_messages(result: MessageResult) -> Result<Vec<MarketMessage>, CallError> {
    let Some(message) = result.error else { return Ok(result.messages) };
    let retryable = message == "No agents to choose from" || message.starts_with("No offers ");
    Err(CallError::Refused {
        status: 202,
        code: String::new(),
        message,
        retryable,
        hint: None,
        retry_after: None,
    })
}
