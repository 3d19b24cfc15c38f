//! Submitting an order to a market: executed once, whatever the result.

use super::{OrderOutcome, publish};
use crate::agent::{registration, suspension};
use crate::alias::{ClaimTarget, claim};
use crate::answer::Answer;
use crate::changes::Changes;
use crate::command::{Command, OfferTerms, Registration};
use crate::decide;
use crate::draft::Draft;
use crate::envelope::MarketSubmission;
use crate::id::AgentId;
use crate::job::Requester;
use crate::refusal::Refusal;

/// Executes an order. Every order gets a record of its result, even if it is refused.
pub fn submit(
    mut draft: Draft<'_>,
    order: MarketSubmission,
    command: Command,
) -> Result<(Changes, Answer), Refusal> {
    let (world, now) = (draft.world, draft.now);
    let recorder = world.markets.get(&order.market).ok_or(Refusal::NotFound)?;
    let name = claim::market_order(order.market, &order.id);
    if let Some(ClaimTarget::MarketRecord(record)) = draft.claim_target(name) {
        return Ok((Changes::default(), Answer::MarketOrder { record, repeated: true }));
    }
    let may_close =
        matches!(command, Command::Offer { terms: OfferTerms::Bid, .. } | Command::Pass { .. });
    let result = execute(&mut draft, order.registration, command);
    if result.is_err() {
        // An order refused half-way changes nothing.
        draft = Draft::new(world, now);
    }
    let executed = (&*order.id, OrderOutcome { reply: &order.reply, result: result.as_ref() });
    let market = (order.market, &**recorder);
    let record = publish::publish_order(&mut draft, market, executed, may_close);
    draft.add_claim(name, ClaimTarget::MarketRecord(record));
    draft.next.market_orders += 1;
    Ok((draft.into_changes(), Answer::MarketOrder { record, repeated: false }))
}

fn execute(
    draft: &mut Draft<'_>,
    new_agent: Option<Box<Registration>>,
    mut command: Command,
) -> Result<Answer, Refusal> {
    if let Some(by) = order_author(&command)? {
        suspension::ensure_not_suspended(draft, by)?;
    }
    if let (Some(new_agent), Command::OpenJob(order)) = (new_agent, &mut command) {
        // It may have registered since it was looked up.
        let known = draft.world.agent_by_alias(new_agent.home, &new_agent.native_id);
        let agent =
            known.map_or_else(|| registration::register_on_first_order(draft, &new_agent), Ok)?;
        order.requester = Requester::Agent(agent);
    }
    decide::execute(draft, command)
}

/// The order's author, for orders whose rules do not check suspension themselves. Refuses commands
/// that cannot be submitted to a market.
fn order_author(command: &Command) -> Result<Option<AgentId>, Refusal> {
    match command {
        Command::ReportResult(report) => Ok(Some(report.by)),
        Command::Pass { by, .. } => Ok(Some(*by)),
        Command::AckUnread { agent, .. } => Ok(Some(*agent)),
        Command::Register(_)
        | Command::OpenJob(_)
        | Command::Offer { terms: OfferTerms::Bid, .. }
        | Command::DispatchQueue
        | Command::RecordOnly => Ok(None),
        _ => Err(Refusal::NotAuthenticated),
    }
}
