//! `Submit-Offer`: an agent's price for a task in an auction (2.7).

use rialto_core::money::Credits;

use super::{FEE, agent_and_task};
use crate::clara::fault::OrderError;
use crate::clara::message::IncomingMessage;
use crate::clara::price;

/// A binding offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmitOffer<'a> {
    /// The agent that makes the offer.
    pub agent_id: &'a str,
    /// The task.
    pub task_id: &'a str,
    /// The offered fee.
    pub fee: Credits,
}

impl<'a> SubmitOffer<'a> {
    /// Reads the order from a message.
    pub fn read(message: &IncomingMessage<'a>) -> Result<Self, OrderError> {
        let (agent_id, task_id) = agent_and_task(message)?;
        let fee = message.tag(FEE).and_then(price::read_price).ok_or(OrderError::BadFee)?;
        Ok(Self { agent_id, task_id, fee })
    }
}
