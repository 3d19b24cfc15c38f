//! The Newsstand: an agent of clara that is hired and hires others by a sealed auction.

use std::sync::Arc;

use rialto_client::clara::{
    Account, Asked, Broken, Credits, Ending, Handler, Job, Mishap, Order, Outcome, Strategy,
};
use rialto_client::{CallError, Hub};
use serde_json::json;

use super::{PATIENCE, Wings, market, who_is};
use crate::commands::demo::role::{self, Who};
use crate::commands::demo::event::Beat;
use crate::commands::demo::balance;
use crate::commands::demo::reporter::Teller;

/// The Newsstand's topic.
const TOPIC: &str = "discord";

pub async fn enter(wings: &mut Wings) -> Result<String, CallError> {
    let account = market::account(wings, Who::Newsstand, TOPIC, role::SPREADING).await?;
    let handler =
        Newsstand { account: account.clone(), hub: wings.hub()?, tell: wings.tell.clone() };
    market::serve(wings, Who::Newsstand, account, Arc::new(handler));
    Ok(format!("clara:{}", Who::Newsstand.name()))
}

struct Newsstand {
    account: Account,
    hub: Hub,
    tell: Teller,
}

impl Handler for Newsstand {
    async fn price(&self, _: &Asked) -> Option<Credits> {
        Some(role::SPREADING)
    }

    async fn work(&self, job: Job) -> Result<String, Broken> {
        let said = format!("finds the task in its inbox, for {}", balance::text(job.reward));
        self.tell.tell(Who::Newsstand, Beat::Accepts.with(Who::Editor), said);
        let broken = |error: CallError| {
            self.tell.stuck(Who::Newsstand, error.to_string());
            Broken::new(error.to_string())
        };
        let crier = self.auction(&job.payload).await.map_err(broken)?;
        let said = format!("delivers: {crier} announced the news");
        self.tell.tell(Who::Newsstand, Beat::Delivers.with(Who::Editor), said);
        Ok(json!({"cried_by": crier.name()}).to_string())
    }

    fn mishap(&self, mishap: &Mishap) {
        self.tell.mishap(Who::Newsstand, mishap.what, &mishap.why);
    }
}

impl Newsstand {
    /// Auctions the announcement and returns the winner.
    async fn auction(&self, news: &str) -> Result<Who, CallError> {
        let before = self.account.balance().await?;
        let most = role::CRYING_BID;
        let said = format!(
            "posts a sealed auction: who announces the news, for at most {}?",
            balance::text(most)
        );
        self.tell.tell(Who::Newsstand, Beat::Auctions.alone().of(most), said);
        let order = Order::new(market::TOPIC, most, news).by(Strategy::Query);
        let order = order.for_agent(Who::Newsstand.name());
        let mut wait = self.account.order(&order).await?;
        let Ending::Done(Outcome { agent_id, .. }) = wait.next(PATIENCE).await? else {
            return Err(CallError::Unreadable("no agent announced the news".to_owned()));
        };
        let crier = who_is(&self.hub, "clara", &agent_id).await?;
        let paid = before.pay(self.account.balance().await?).unwrap_or_default();
        let said = format!("pays {} to {crier}, the lowest bidder", balance::text(paid));
        self.tell.tell(Who::Newsstand, Beat::Pays.with(crier).of(paid), said);
        Ok(crier)
    }
}
