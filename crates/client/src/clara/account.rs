//! An account: a wallet at a market. It sends messages and reads what came of them.

use rialto_protocols::clara::PROTOCOL;
use rialto_protocols::clara::action::Action;
use rialto_protocols::clara::result::{Evaluated, Sent};

use super::server::Server;
use super::signed::Signed;
use super::wallet::Wallet;
use crate::call::CallError;

/// A wallet at a market.
#[derive(Clone, Debug)]
pub struct Account {
    wallet: Wallet,
    server: Server,
}

/// Get the result of a message that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// What the message is called.
    pub id: String,
    /// What the market sent; a reply to us comes first.
    pub messages: Vec<Sent>,
}

impl Account {
    /// This wallet at that market. Nothing is sent yet.
    pub fn new(wallet: Wallet, server: Server) -> Self {
        Self { wallet, server }
    }

    /// Who this is.
    pub fn wallet(&self) -> &Wallet {
        &self.wallet
    }

    /// What the market calls it.
    pub fn address(&self) -> &str {
        self.wallet.address()
    }

    /// Where it is.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Sends an action with these tags besides, and reads what came of it. What the market did not
    /// do is an error with its words.
    pub async fn act(
        &self,
        action: Action,
        tags: &[(&str, &str)],
        data: &str,
    ) -> Result<Said, CallError> {
        self.send(&self.sign(action, tags, data)?).await
    }

    /// Signs an action without sending it.
    pub fn sign(
        &self,
        action: Action,
        tags: &[(&str, &str)],
        data: &str,
    ) -> Result<Signed, CallError> {
        let mut all = vec![("Action", action.as_str()), ("Protocol", PROTOCOL)];
        all.extend_from_slice(tags);
        self.wallet.sign(self.server.process(), &all, data)
    }

    /// Sends a message and reads what came of it. The same one may be sent again and again.
    pub async fn send(&self, signed: &Signed) -> Result<Said, CallError> {
        self.server.post(signed).await?;
        let result = self.server.result(&signed.id).await?;
        done(result).map(|messages| Said { id: signed.id.clone(), messages })
    }
}

impl Said {
    /// What the first message carries.
    pub(super) fn data(&self) -> Option<&str> {
        self.messages.first().and_then(|message| message.data.as_deref())
    }

    /// The tag of the first message with this name.
    pub(super) fn tag(&self, name: &str) -> Option<&str> {
        self.messages.first().and_then(|message| message.tag(name))
    }
}

/// The market's messages, or its `Error`. The market does not say whether a retry can succeed:
/// for the market to tell: only a lack of agents or offers passes by itself.
fn done(result: Evaluated) -> Result<Vec<Sent>, CallError> {
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
