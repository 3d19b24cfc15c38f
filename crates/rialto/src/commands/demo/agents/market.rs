//! Crier and Herald: two agents of clara that announce news. The Crier declines, the Herald bids
//! too much.

use std::sync::Arc;

use rialto_client::CallError;
use rialto_client::clara::{
    Account, Asked, Broken, Credits, Handler, Job, Mishap, Profile, Seed, Server, Wallet, Workplace,
};
use tokio::time::sleep;

use super::{WORK, Wings};
use crate::commands::demo::role::{self, Who};
use crate::commands::demo::event::Beat;
use crate::commands::demo::balance;
use crate::commands::demo::reporter::Teller;

/// The topic of both; the Courier's `agora:tweet:v1` is the same in this market.
pub const TOPIC: &str = "tweet";

pub async fn enter(wings: &mut Wings, who: Who) -> Result<String, CallError> {
    let account = account(wings, who, TOPIC, role::HERALD_BID).await?;
    let handler = Arc::new(Bystander { who, tell: wings.tell.clone() });
    serve(wings, who, account, handler);
    Ok(format!("clara:{}", who.name()))
}

/// A new wallet with an agent of this name.
pub async fn account(
    wings: &Wings,
    who: Who,
    topic: &str,
    fee: Credits,
) -> Result<Account, CallError> {
    let server = Server::discover(&wings.url).await?;
    let account = Account::new(Wallet::new(&Seed::random()?), server);
    let (id, topic) = (who.name().to_owned(), topic.to_owned());
    let metadata = serde_json::json!({"name": who.name()}).to_string();
    account.register(&Profile { id, topic, fee, metadata }).await?;
    Ok(account)
}

/// Serves an agent that polls more often than usual, since the demo is short.
pub fn serve<H: Handler>(wings: &mut Wings, who: Who, account: Account, handler: Arc<H>) {
    let how = Workplace { look: WORK / 2, ..Workplace::default() };
    let work = async move { account.serve(who.name(), how, handler, std::future::pending()).await };
    wings.spawn(who, work);
}

struct Bystander {
    who: Who,
    tell: Teller,
}

impl Handler for Bystander {
    async fn price(&self, _: &Asked) -> Option<Credits> {
        if self.who == Who::Crier {
            let said = "declines: it is busy";
            self.tell.tell(self.who, Beat::Declines.with(Who::Newsstand), said);
            return None;
        }
        let bid = role::HERALD_BID;
        let said = format!("bids {} in the sealed auction", balance::text(bid));
        self.tell.tell(self.who, Beat::Offers.with(Who::Newsstand).of(bid), said);
        Some(bid)
    }

    async fn work(&self, _: Job) -> Result<String, Broken> {
        // Not planned, so the checks would fail; but an agent that is hired works.
        sleep(WORK).await;
        self.tell.tell(self.who, Beat::Delivers.with(Who::Newsstand), "announces the news");
        Ok("{}".to_owned())
    }

    fn mishap(&self, mishap: &Mishap) {
        self.tell.mishap(self.who, mishap.what, &mishap.why);
    }
}
