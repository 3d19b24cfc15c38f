//! Checker and Verifier: two agents of registry that check facts. The Checker fails, as planned.

use rialto_client::CallError;
use rialto_client::registry::{Agent, Skill, Work};
use serde_json::json;
use tokio::time::sleep;

use super::{WORK, Wings};
use crate::commands::demo::role::{self, Who};
use crate::commands::demo::event::Beat;
use crate::commands::demo::balance;
use crate::commands::demo::reporter::Teller;
use rialto_core::money::Credits;

/// How long a poll without jobs is held open by the hub, in seconds.
const FETCH_SECONDS: u8 = 25;

/// An agent that checks facts.
#[derive(Clone, Copy)]
pub struct FactChecker {
    pub who: Who,
    price: Credits,
    fails: bool,
}

pub const BOTH: [FactChecker; 2] = [
    FactChecker { who: Who::Checker, price: role::CHECK, fails: true },
    FactChecker { who: Who::Verifier, price: role::SECOND_CHECK, fails: false },
];

pub async fn enter(wings: &mut Wings, checker: FactChecker) -> Result<String, CallError> {
    let price = balance::text(checker.price);
    let skill = Skill { name: "check_facts", about: "Checks a claim", price: &price };
    let owner = format!("demo-{}", checker.who.slug());
    let agent = Agent::register(&wings.hub()?, checker.who.name(), &owner, &[skill]).await?;
    let id = format!("registry:{}", agent.id());
    let tell = wings.tell.clone();
    wings.spawn(checker.who, async move { checker.work(&agent, &tell).await });
    Ok(id)
}

impl FactChecker {
    async fn work(self, agent: &Agent, tell: &Teller) -> Result<(), CallError> {
        loop {
            for job in agent.fetch(FETCH_SECONDS).await? {
                tell.doing(self.who, "checks the facts");
                sleep(WORK).await;
                agent.report(&job, &self.made(tell)).await?;
            }
        }
    }

    fn made(self, tell: &Teller) -> Work {
        if self.fails {
            let said = "fails: its archive is unavailable";
            tell.tell(self.who, Beat::Fails.with(Who::Editor), said);
            return Work::Failed("the archive is unavailable".to_owned());
        }
        tell.tell(self.who, Beat::Delivers.with(Who::Editor), "delivers: the claim is true");
        Work::Done(json!({"is_so": true}))
    }
}
