//! How the Editor hires: it searches openclaw's own list, hires an agent and waits for the result.

use rialto_client::openclaw::{
    Agent, AgentFilter, ListedAgent, RequestEnd, RequestReply, RequestSpec, ResponseAnswer,
    ResultOutcome, Uuid,
};
use rialto_client::{CallError, Hub};
use rialto_core::money::Credits;
use serde_json::Value;

use super::{RESULT_TIMEOUT, role_of_alias};
use crate::commands::demo::balance::{self, Balance};
use crate::commands::demo::event::ActionKind;
use crate::commands::demo::reporter::Reporter;
use crate::commands::demo::role::Role;

/// The Editor's client side.
pub struct Hirer<'a> {
    pub agent: &'a Agent,
    /// A client for the hub, with the Editor's key.
    pub hub: &'a Hub,
    pub tell: &'a Reporter,
}

/// An agent that has the wanted skill.
struct Candidate {
    who: Role,
    id: Uuid,
    /// Maximum price: its listed price, or the Editor's bid if it lists none.
    max_price: Credits,
}

impl Hirer<'_> {
    /// Hires the cheapest agent with the skill; if it fails, the next one.
    pub async fn get_done(
        &self,
        skill: &str,
        input: Value,
        bid: Credits,
    ) -> Result<Value, CallError> {
        for candidate in self.candidates(skill, bid).await? {
            if let Some(output) = self.hire(skill, &input, &candidate).await? {
                return Ok(output);
            }
        }
        Err(CallError::Unreadable(format!("no other agent has the skill {skill}")))
    }

    async fn candidates(&self, skill: &str, bid: Credits) -> Result<Vec<Candidate>, CallError> {
        let filter = AgentFilter { capability: Some(skill.to_owned()), ..AgentFilter::default() };
        let found = self.agent.server().agents(&filter).await?;
        let mut all = Vec::new();
        for found in &found {
            let id = found.entry.agent_id;
            let who = role_of_alias(self.hub, "openclaw", &id.to_string()).await?;
            all.push(Candidate { who, id, max_price: listed_price(found, skill).unwrap_or(bid) });
        }
        all.sort_by_key(|candidate| candidate.max_price);
        Ok(all)
    }

    /// Hires an agent; `None` if it failed, in which case nothing was paid.
    async fn hire(
        &self,
        skill: &str,
        input: &Value,
        candidate: &Candidate,
    ) -> Result<Option<Value>, CallError> {
        let Candidate { who, id, max_price: most } = *candidate;
        let before = Balance::of_caller(self.hub).await?;
        let price = match most.is_zero() {
            true => "free".to_owned(),
            false => format!("at most {}", balance::format_amount(most)),
        };
        let said = format!("hires {who} ({}): {skill}, {price}", who.protocol());
        self.tell.report_action(
            Role::Editor,
            ActionKind::Hires.with_party(who).for_amount(most),
            said,
        );
        let order = RequestSpec::new(skill, &input.to_string()).to(id).budget(most);
        let asked = self.agent.request(&order).await?;
        check_not_rejected(&asked)?;
        self.tell.report_activity(Role::Editor, format!("waits for {who}"));
        let end = self.agent.result(asked.pending(), RESULT_TIMEOUT).await?;
        let after = Balance::of_caller(self.hub).await?;
        let paid = before.total().checked_pay(after.total()).unwrap_or_default();
        match output(end)? {
            Some(output) => {
                let price = if paid.is_zero() {
                    "nothing".to_owned()
                } else {
                    balance::format_amount(paid)
                };
                let said = format!("gets the result of {who} and pays {price}");
                self.tell.report_action(
                    Role::Editor,
                    ActionKind::Pays.with_party(who).for_amount(paid),
                    said,
                );
                Ok(Some(output))
            }
            None => {
                let back = most.checked_pay(paid).unwrap_or_default();
                let said = format!("gets back all {} held for {who}", balance::format_amount(back));
                self.tell.report_action(
                    Role::Editor,
                    ActionKind::Refunded.with_party(who).for_amount(back),
                    said,
                );
                Ok(None)
            }
        }
    }
}

/// The listed price of a skill. An agent that prices by offer lists zero.
fn listed_price(found: &ListedAgent, skill: &str) -> Option<Credits> {
    let all = &found.entry.capabilities.advertised_capabilities;
    let price = all.iter().find(|offered| offered.capability_id == skill)?.price.as_ref()?;
    balance::parse_amount(price.get()).ok().filter(|price| !price.is_zero())
}

/// Turns a refusal into an error: no agent of the demo refuses the Editor.
fn check_not_rejected(asked: &RequestReply) -> Result<(), CallError> {
    match &asked.response.answer {
        ResponseAnswer::Rejected(why) => Err(CallError::Unreadable(why.message.clone())),
        ResponseAnswer::Accepted { .. } | ResponseAnswer::Deferred { .. } => Ok(()),
    }
}

/// The output; `None` if the job failed.
fn output(end: RequestEnd) -> Result<Option<Value>, CallError> {
    match end {
        RequestEnd::Result(message) => match message.body.outcome {
            ResultOutcome::Completed { output_data } => {
                serde_json::from_str(&output_data).map(Some).map_err(balance::unreadable)
            }
            ResultOutcome::Failed(_) => Ok(None),
            ResultOutcome::Cancelled { .. } => {
                Err(CallError::Unreadable("it was cancelled".to_owned()))
            }
        },
        RequestEnd::Rejected(why) => Err(CallError::Unreadable(why.message)),
        RequestEnd::Withdrawn => Err(CallError::Unreadable("it was cancelled".to_owned())),
        RequestEnd::Pending(state) => {
            Err(CallError::TimedOut { url: format!("job in state {state}") })
        }
    }
}
