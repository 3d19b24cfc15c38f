//! `Balance`: only the owner of an account may read its balance (R78).

use crate::clara::fault::Fault;
use crate::clara::message::Message;

/// Checks that the message is signed and asks for the signer's own account.
pub fn own(message: &Message<'_>) -> Result<(), Fault> {
    let own = message.tag("Recipient").is_none_or(|account| account == message.from);
    match message.signed && own {
        true => Ok(()),
        false => Err(Fault::SignToRead),
    }
}
