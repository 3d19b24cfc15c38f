//! How the Editor hires: it searches openclaw's own list, hires an agent and waits for the result.

use rialto_client::openclaw::{Agent, Answer, Asked, End, Filter, Found, Order, Outcome, Uuid};
use rialto_client::{CallError, Hub};
use rialto_core::money::Credits;
use serde_json::Value;

use super::{PATIENCE, who_is};
use crate::commands::demo::role::Who;
use crate::commands::demo::event::Beat;
use crate::commands::demo::balance::{self, Purse};
use crate::commands::demo::reporter::Teller;

/// The Editor's client side.
pub struct Desk<'a> {
    pub agent: &'a Agent,
    /// A client for the hub, with the Editor's key.
    pub hub: &'a Hub,
    pub tell: &'a Teller,
}

/// An agent that has the wanted skill.
struct Candidate {
    who: Who,
    id: Uuid,
    /// Maximum price: its listed price, or the Editor's bid if it lists none.
    most: Credits,
}

impl Desk<'_> {
    /// Hires the cheapest agent with the skill; if it fails, the next one.
    pub async fn have(&self, skill: &str, input: Value, bid: Credits) -> Result<Value, CallError> {
        for candidate in self.candidates(skill, bid).await? {
            if let Some(output) = self.hire(skill, &input, &candidate).await? {
                return Ok(output);
            }
        }
        Err(CallError::Unreadable(format!("no other agent has the skill {skill}")))
    }

    async fn candidates(&self, skill: &str, bid: Credits) -> Result<Vec<Candidate>, CallError> {
        let filter = Filter { capability: Some(skill.to_owned()), ..Filter::default() };
        let found = self.agent.server().agents(&filter).await?;
        let mut all = Vec::new();
        for found in &found {
            let id = found.entry.agent_id;
            let who = who_is(self.hub, "openclaw", &id.to_string()).await?;
            all.push(Candidate { who, id, most: listed(found, skill).unwrap_or(bid) });
        }
        all.sort_by_key(|candidate| candidate.most);
        Ok(all)
    }

    /// Hires an agent; `None` if it failed, in which case nothing was paid.
    async fn hire(
        &self,
        skill: &str,
        input: &Value,
        candidate: &Candidate,
    ) -> Result<Option<Value>, CallError> {
        let Candidate { who, id, most } = *candidate;
        let before = Purse::own(self.hub).await?;
        let price = match most.is_zero() {
            true => "free".to_owned(),
            false => format!("at most {}", balance::text(most)),
        };
        let said = format!("hires {who} ({}): {skill}, {price}", who.protocol());
        self.tell.tell(Who::Editor, Beat::Hires.with(who).of(most), said);
        let order = Order::new(skill, &input.to_string()).of(id).budget(most);
        let asked = self.agent.request(&order).await?;
        refused(&asked)?;
        self.tell.doing(Who::Editor, format!("waits for {who}"));
        let end = self.agent.result(asked.errand(), PATIENCE).await?;
        let after = Purse::own(self.hub).await?;
        let paid = before.whole().pay(after.whole()).unwrap_or_default();
        match output(end)? {
            Some(output) => {
                let price = if paid.is_zero() { "nothing".to_owned() } else { balance::text(paid) };
                let said = format!("gets the result of {who} and pays {price}");
                self.tell.tell(Who::Editor, Beat::Pays.with(who).of(paid), said);
                Ok(Some(output))
            }
            None => {
                let back = most.pay(paid).unwrap_or_default();
                let said = format!("gets back all {} held for {who}", balance::text(back));
                self.tell.tell(Who::Editor, Beat::IsRefunded.with(who).of(back), said);
                Ok(None)
            }
        }
    }
}

/// The listed price of a skill. An agent that prices by offer lists zero.
fn listed(found: &Found, skill: &str) -> Option<Credits> {
    let all = &found.entry.capabilities.advertised_capabilities;
    let price = all.iter().find(|offered| offered.capability_id == skill)?.price.as_ref()?;
    balance::amount(price.get()).ok().filter(|price| !price.is_zero())
}

/// Turns a refusal into an error: no agent of the demo refuses the Editor.
fn refused(asked: &Asked) -> Result<(), CallError> {
    match &asked.response.answer {
        Answer::Rejected(why) => Err(CallError::Unreadable(why.message.clone())),
        Answer::Accepted { .. } | Answer::Deferred { .. } => Ok(()),
    }
}

/// The output; `None` if the job failed.
fn output(end: End) -> Result<Option<Value>, CallError> {
    match end {
        End::Result(message) => match message.said.outcome {
            Outcome::Completed { output_data } => {
                serde_json::from_str(&output_data).map(Some).map_err(balance::unreadable)
            }
            Outcome::Failed(_) => Ok(None),
            Outcome::Cancelled { .. } => Err(CallError::Unreadable("it was cancelled".to_owned())),
        },
        End::Rejected(why) => Err(CallError::Unreadable(why.message)),
        End::Withdrawn => Err(CallError::Unreadable("it was cancelled".to_owned())),
        End::NotYet(state) => Err(CallError::TimedOut { url: format!("job in state {state}") }),
    }
}
