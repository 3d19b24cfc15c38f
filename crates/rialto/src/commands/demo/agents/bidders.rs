//! Scout and Courier: two agents of agora. The Scout offers a price when asked, the Courier has a
//! fixed price.

use std::sync::Arc;
use std::time::Duration;

use rialto_client::CallError;
use rialto_client::agora::{
    Agent, Broken, Credits, Handler, Identity, Job, Mishap, Profile, Progress, Seed, Server, Skill,
    Terms, Workplace,
};
use tokio::time::sleep;

use super::{WORK, Wings};
use crate::commands::demo::role::{self, Who};
use crate::commands::demo::event::Beat;
use crate::commands::demo::balance;
use crate::commands::demo::reporter::Teller;

/// How long an offer is valid.
const STANDS: Duration = Duration::from_secs(60);

/// An agent that works for a price.
#[derive(Clone, Copy)]
pub struct Bidder {
    pub who: Who,
    resource: &'static str,
    price: Credits,
    /// The agent that hires it.
    client: Who,
    /// Text of its offer; an agent with a fixed price needs none.
    offers: Option<&'static str>,
    works: &'static str,
    output: &'static str,
    delivers: &'static str,
}

pub const BOTH: [Bidder; 2] = [
    Bidder {
        who: Who::Scout,
        resource: "agora:find_news:v1",
        price: role::NEWS,
        client: Who::Editor,
        offers: Some("offers to find the news for"),
        works: "gets its OFFER accepted: it was within the bid, so the hub sent the ACCEPT",
        output: r#"{"headline":"the bridge is open"}"#,
        delivers: "delivers the headline: \"the bridge is open\"",
    },
    Bidder {
        who: Who::Courier,
        resource: "agora:tweet:v1",
        price: role::COURIER_BID,
        client: Who::Newsstand,
        offers: None,
        works: "wins the auction: its listed 3.60 is 4.00 in clara's whole credits, the lowest bid",
        output: r#"{"cried":"on every square"}"#,
        delivers: "delivers: the news is announced on every square",
    },
];

pub async fn enter(wings: &mut Wings, bidder: Bidder) -> Result<String, CallError> {
    let server = Server::discover(&wings.url).await?;
    let agent = Agent::new(Identity::new(&Seed::random()?), server);
    let name = Some(bidder.who.name().to_owned());
    let skill = Skill::new(bidder.resource);
    let skill = if bidder.offers.is_some() { skill } else { skill.priced(bidder.price) };
    let skills = Some(vec![skill]);
    agent.hello(&Profile { name, skills, endpoint: None }, true).await?;
    let id = format!("agora:{}", agent.identity().did());
    let handler = Arc::new(Asked { bidder, tell: wings.tell.clone() });
    let work =
        async move { agent.serve(Workplace::default(), handler, std::future::pending()).await };
    wings.spawn(bidder.who, work);
    Ok(id)
}

struct Asked {
    bidder: Bidder,
    tell: Teller,
}

impl Handler for Asked {
    async fn terms(&self, _: &Job) -> Terms {
        let Bidder { who, client, price, offers, .. } = self.bidder;
        let Some(offers) = offers else { return Terms::Work };
        let said = format!("{offers} {}", balance::text(price));
        self.tell.tell(who, Beat::Offers.with(client).of(price), said);
        Terms::Offer { cost: price, ttl: STANDS, eta: WORK }
    }

    async fn work(&self, _: Job, _: Progress) -> Result<String, Broken> {
        let Bidder { who, client, price, works, output, delivers, .. } = self.bidder;
        self.tell.tell(who, Beat::IsTaken.with(client).of(price), works);
        sleep(WORK).await;
        self.tell.tell(who, Beat::Delivers.with(client), delivers);
        Ok(output.to_owned())
    }

    fn mishap(&self, mishap: &Mishap) {
        self.tell.mishap(self.bidder.who, mishap.what, &mishap.why);
    }
}
