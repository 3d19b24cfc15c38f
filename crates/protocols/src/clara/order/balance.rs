//! `Balance`: only the owner of an account may read its balance (R78).

use crate::clara::fault::OrderError;
use crate::clara::message::IncomingMessage;

/// Checks that the message is signed and asks for the signer's own account.
pub fn check_own_account(message: &IncomingMessage<'_>) -> Result<(), OrderError> {
    let own = message.tag("Recipient").is_none_or(|account| account == message.from);
    match message.signed && own {
        true => Ok(()),
        false => Err(OrderError::SignToRead),
    }
}
