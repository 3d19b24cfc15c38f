//! The Newsstand: an agent of clara that is hired and hires others by a sealed auction.

use std::sync::Arc;

use rialto_client::clara::{
    Credits, Handler, MarketClient, Query, ServeError, Strategy, Task, TaskEnd, TaskOutcome,
    TaskSpec, WorkError,
};
use rialto_client::{CallError, Hub};
use serde_json::json;

use super::{AgentRunner, RESULT_TIMEOUT, market, role_of_alias};
use crate::commands::demo::balance;
use crate::commands::demo::event::ActionKind;
use crate::commands::demo::reporter::Reporter;
use crate::commands::demo::role::{self, Role};

/// The Newsstand's topic.
const TOPIC: &str = "discord";

pub async fn start(wings: &mut AgentRunner) -> Result<String, CallError> {
    let account =
        market::new_account(wings, Role::Newsstand, TOPIC, role::ANNOUNCEMENT_PRICE).await?;
    let handler =
        Newsstand { account: account.clone(), hub: wings.hub()?, tell: wings.reporter.clone() };
    market::serve(wings, Role::Newsstand, account, Arc::new(handler));
    Ok(format!("clara:{}", Role::Newsstand.name()))
}

struct Newsstand {
    account: MarketClient,
    hub: Hub,
    tell: Reporter,
}

impl Handler for Newsstand {
    async fn price(&self, _: &Query) -> Option<Credits> {
        Some(role::ANNOUNCEMENT_PRICE)
    }

    async fn work(&self, job: Task) -> Result<String, WorkError> {
        let said =
            format!("finds the task in its inbox, for {}", balance::format_amount(job.reward));
        self.tell.report_action(
            Role::Newsstand,
            ActionKind::Accepts.with_party(Role::Editor),
            said,
        );
        let broken = |error: CallError| {
            self.tell.report_failure(Role::Newsstand, error.to_string());
            WorkError::new(error.to_string())
        };
        let crier = self.auction(&job.payload).await.map_err(broken)?;
        let said = format!("delivers: {crier} announced the news");
        self.tell.report_action(
            Role::Newsstand,
            ActionKind::Delivers.with_party(Role::Editor),
            said,
        );
        Ok(json!({"cried_by": crier.name()}).to_string())
    }

    fn on_error(&self, serve_error: &ServeError) {
        self.tell.report_warning(Role::Newsstand, serve_error.action, &serve_error.reason);
    }
}

impl Newsstand {
    /// Auctions the announcement and returns the winner.
    async fn auction(&self, news: &str) -> Result<Role, CallError> {
        let before = self.account.balance().await?;
        let most = role::AUCTION_BUDGET;
        let said = format!(
            "posts a sealed auction: who announces the news, for at most {}?",
            balance::format_amount(most)
        );
        self.tell.report_action(
            Role::Newsstand,
            ActionKind::Auctions.without_party().for_amount(most),
            said,
        );
        let order = TaskSpec::new(market::TOPIC, most, news).strategy(Strategy::Query);
        let order = order.as_agent(Role::Newsstand.name());
        let mut wait = self.account.register_task(&order).await?;
        let TaskEnd::Done(TaskOutcome { agent_id, .. }) = wait.next(RESULT_TIMEOUT).await? else {
            return Err(CallError::Unreadable("no agent announced the news".to_owned()));
        };
        let crier = role_of_alias(&self.hub, "clara", &agent_id).await?;
        let paid = before.checked_pay(self.account.balance().await?).unwrap_or_default();
        let said = format!("pays {} to {crier}, the lowest bidder", balance::format_amount(paid));
        self.tell.report_action(
            Role::Newsstand,
            ActionKind::Pays.with_party(crier).for_amount(paid),
            said,
        );
        Ok(crier)
    }
}
