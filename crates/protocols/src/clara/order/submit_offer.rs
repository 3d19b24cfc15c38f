//! `Submit-Offer`: for how much an agent would do a task that is put to auction (2.7).

use rialto_core::money::Credits;

use super::{FEE, agent_and_task};
use crate::clara::fault::Fault;
use crate::clara::message::Message;
use crate::clara::price;

/// A binding offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmitOffer<'a> {
    /// Who makes it.
    pub agent_id: &'a str,
    /// For what.
    pub task_id: &'a str,
    /// For how much.
    pub fee: Credits,
}

impl<'a> SubmitOffer<'a> {
    /// Reads a message.
    pub fn read(message: &Message<'a>) -> Result<Self, Fault> {
        let (agent_id, task_id) = agent_and_task(message)?;
        let fee = message.tag(FEE).and_then(price::read).ok_or(Fault::BadFee)?;
        Ok(Self { agent_id, task_id, fee })
    }
}
