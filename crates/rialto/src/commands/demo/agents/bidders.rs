//! Scout and Courier: two agents of agora. The Scout offers a price when asked, the Courier has a
//! fixed price.

use std::sync::Arc;
use std::time::Duration;

use rialto_client::CallError;
use rialto_client::agora::{
    Agent, Credits, Handler, Identity, Job, Profile, Progress, Seed, ServeError, ServeOptions,
    Server, Skill, Terms, WorkError,
};
use tokio::time::sleep;

use super::{AgentRunner, WORK_TIME};
use crate::commands::demo::balance;
use crate::commands::demo::event::ActionKind;
use crate::commands::demo::reporter::Reporter;
use crate::commands::demo::role::{self, Role};

/// How long an offer is valid.
const OFFER_TTL: Duration = Duration::from_secs(60);

/// An agent that works for a price.
#[derive(Clone, Copy)]
pub struct Bidder {
    pub who: Role,
    resource: &'static str,
    price: Credits,
    /// The agent that hires it.
    client: Role,
    /// Text of its offer; an agent with a fixed price needs none.
    offers: Option<&'static str>,
    works: &'static str,
    output: &'static str,
    delivers: &'static str,
}

pub const BIDDERS: [Bidder; 2] = [
    Bidder {
        who: Role::Scout,
        resource: "agora:find_news:v1",
        price: role::NEWS_PRICE,
        client: Role::Editor,
        offers: Some("offers to find the news for"),
        works: "gets its OFFER accepted: it was within the bid, so the hub sent the ACCEPT",
        output: r#"{"headline":"the bridge is open"}"#,
        delivers: "delivers the headline: \"the bridge is open\"",
    },
    Bidder {
        who: Role::Courier,
        resource: "agora:tweet:v1",
        price: role::COURIER_PRICE,
        client: Role::Newsstand,
        offers: None,
        works: "wins the auction: its listed 3.60 is 4.00 in clara's whole credits, the lowest bid",
        output: r#"{"cried":"on every square"}"#,
        delivers: "delivers: the news is announced on every square",
    },
];

pub async fn start(wings: &mut AgentRunner, bidder: Bidder) -> Result<String, CallError> {
    let server = Server::discover(&wings.url).await?;
    let agent = Agent::new(Identity::new(&Seed::random()?), server);
    let name = Some(bidder.who.name().to_owned());
    let skill = Skill::new(bidder.resource);
    let skill = if bidder.offers.is_some() { skill } else { skill.with_price(bidder.price) };
    let skills = Some(vec![skill]);
    agent.hello(&Profile { name, skills, endpoint: None }, true).await?;
    let id = format!("agora:{}", agent.identity().did());
    let handler = Arc::new(BidderHandler { bidder, tell: wings.reporter.clone() });
    let work =
        async move { agent.serve(ServeOptions::default(), handler, std::future::pending()).await };
    wings.spawn(bidder.who, work);
    Ok(id)
}

struct BidderHandler {
    bidder: Bidder,
    tell: Reporter,
}

impl Handler for BidderHandler {
    async fn terms(&self, _: &Job) -> Terms {
        let Bidder { who, client, price, offers, .. } = self.bidder;
        let Some(offers) = offers else { return Terms::Work };
        let said = format!("{offers} {}", balance::format_amount(price));
        self.tell.report_action(who, ActionKind::Offers.with_party(client).for_amount(price), said);
        Terms::Offer { cost: price, ttl: OFFER_TTL, eta: WORK_TIME }
    }

    async fn work(&self, _: Job, _: Progress) -> Result<String, WorkError> {
        let Bidder { who, client, price, works, output, delivers, .. } = self.bidder;
        self.tell.report_action(
            who,
            ActionKind::OfferAccepted.with_party(client).for_amount(price),
            works,
        );
        sleep(WORK_TIME).await;
        self.tell.report_action(who, ActionKind::Delivers.with_party(client), delivers);
        Ok(output.to_owned())
    }

    fn on_error(&self, error: &ServeError) {
        self.tell.report_warning(self.bidder.who, error.action, &error.reason);
    }
}
