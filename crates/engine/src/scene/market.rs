//! Orders submitted to a market whose recorder writes what it is given.

use std::sync::Arc;

use rialto_core::command::{Command, JobRef};
use rialto_core::id::{AgentId, JobId};
use rialto_core::market::{Deed, Market, Opening, Post, Scribe, Step, Written};

use super::{HOME, credits};

/// Records what it is given, one line for each thing.
#[derive(Debug)]
pub struct Teller;

impl Scribe for Teller {
    fn write(&self, step: &Step<'_, '_>) -> Written {
        let outcome = step.outcome.map(|outcome| outcome.is_ok());
        let mut text = format!("{} {} {outcome:?} 界", step.posts, step.first_message);
        for notice in &step.notices {
            text.push_str(&format!("\n{notice:?}"));
        }
        let messages = step.notices.len() as u64;
        Written { text, messages, shown: outcome != Some(false), question: None }
    }
}

/// The market that all test agents are native to.
pub fn market() -> Arc<Market> {
    Arc::new(Market { protocol: HOME, scribe: Arc::new(Teller) })
}

/// Submits an order.
pub fn post(id: &str, deed: Deed) -> Command {
    let (market, id, scribe) = (HOME, id.to_owned(), Arc::new(Teller));
    Command::Post(Box::new(Post { market, id, deed, scribe }))
}

/// Submits a task.
pub fn post_task(order: rialto_core::command::OpenJob) -> Command {
    let id = order.foreign.clone();
    post(&id, Deed::Open(Box::new(Opening { order, newcomer: None })))
}

/// Submits an offer.
pub fn post_offer(id: &str, job: JobId, by: AgentId, price: &str) -> Command {
    post(id, Deed::Offer { job: JobRef::Id(job), by, price: credits(price) })
}

/// Submits a decline.
pub fn post_decline(id: &str, job: JobId, by: AgentId) -> Command {
    post(id, Deed::Decline { job: JobRef::Id(job), by })
}
