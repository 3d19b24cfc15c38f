//! Crier and Herald: two agents of clara that announce news. The Crier declines, the Herald bids
//! too much.

use std::sync::Arc;

use rialto_client::CallError;
use rialto_client::clara::{
    Credits, Handler, MarketClient, Profile, Query, Seed, ServeError, ServeOptions, Server, Task,
    Wallet, WorkError,
};
use tokio::time::sleep;

use super::{AgentRunner, WORK_TIME};
use crate::commands::demo::balance;
use crate::commands::demo::event::ActionKind;
use crate::commands::demo::reporter::Reporter;
use crate::commands::demo::role::{self, Role};

/// The topic of both; the Courier's `agora:tweet:v1` is the same in this market.
pub const TOPIC: &str = "tweet";

pub async fn start(wings: &mut AgentRunner, who: Role) -> Result<String, CallError> {
    let account = new_account(wings, who, TOPIC, role::HERALD_BID).await?;
    let handler = Arc::new(AuctionHandler { who, tell: wings.reporter.clone() });
    serve(wings, who, account, handler);
    Ok(format!("clara:{}", who.name()))
}

/// A new wallet with an agent of this name.
pub async fn new_account(
    wings: &AgentRunner,
    who: Role,
    topic: &str,
    fee: Credits,
) -> Result<MarketClient, CallError> {
    let server = Server::discover(&wings.url).await?;
    let account = MarketClient::new(Wallet::new(&Seed::random()?), server);
    let (id, topic) = (who.name().to_owned(), topic.to_owned());
    let metadata = serde_json::json!({"name": who.name()}).to_string();
    account.register(&Profile { id, topic, fee, metadata }).await?;
    Ok(account)
}

/// Serves an agent that polls more often than usual, since the demo is short.
pub fn serve<H: Handler>(
    wings: &mut AgentRunner,
    who: Role,
    account: MarketClient,
    handler: Arc<H>,
) {
    let how = ServeOptions { poll_interval: WORK_TIME / 2, ..ServeOptions::default() };
    let work = async move { account.serve(who.name(), how, handler, std::future::pending()).await };
    wings.spawn(who, work);
}

struct AuctionHandler {
    who: Role,
    tell: Reporter,
}

impl Handler for AuctionHandler {
    async fn price(&self, _: &Query) -> Option<Credits> {
        if self.who == Role::Crier {
            let said = "declines: it is busy";
            self.tell.report_action(
                self.who,
                ActionKind::Declines.with_party(Role::Newsstand),
                said,
            );
            return None;
        }
        let bid = role::HERALD_BID;
        let said = format!("bids {} in the sealed auction", balance::format_amount(bid));
        self.tell.report_action(
            self.who,
            ActionKind::Offers.with_party(Role::Newsstand).for_amount(bid),
            said,
        );
        Some(bid)
    }

    async fn work(&self, _: Task) -> Result<String, WorkError> {
        // Not planned, so the checks would fail; but an agent that is hired works.
        sleep(WORK_TIME).await;
        self.tell.report_action(
            self.who,
            ActionKind::Delivers.with_party(Role::Newsstand),
            "announces the news",
        );
        Ok("{}".to_owned())
    }

    fn on_error(&self, error: &ServeError) {
        self.tell.report_warning(self.who, error.action, &error.reason);
    }
}
