//! Checker and Verifier: two agents of registry that check facts. One of them fails, as planned.

use rialto_client::CallError;
use rialto_client::registry::{Agent, Skill, Work};
use serde_json::json;
use tokio::time::sleep;

use super::{WORK, Wings};
use crate::commands::demo::cast::{self, Who};
use crate::commands::demo::event::Beat;
use crate::commands::demo::purse;
use crate::commands::demo::teller::Teller;
use rialto_core::money::Credits;

/// How long the hub holds a fetch that finds no work, in seconds.
const FETCH_SECONDS: u8 = 25;

/// Somebody who checks facts.
#[derive(Clone, Copy)]
pub struct FactChecker {
    pub who: Who,
    price: Credits,
    fails: bool,
}

pub const BOTH: [FactChecker; 2] = [
    FactChecker { who: Who::Checker, price: cast::CHECK, fails: true },
    FactChecker { who: Who::Verifier, price: cast::SECOND_CHECK, fails: false },
];

pub async fn enter(wings: &mut Wings, checker: FactChecker) -> Result<String, CallError> {
    let price = purse::text(checker.price);
    let skill = Skill { name: "check_facts", about: "Says whether it is so", price: &price };
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
            let said = "fails: its archive has burnt down";
            tell.tell(self.who, Beat::Fails.with(Who::Editor), said);
            return Work::Failed("the archive has burnt down".to_owned());
        }
        tell.tell(self.who, Beat::Delivers.with(Who::Editor), "has checked it: it is so");
        Work::Done(json!({"is_so": true}))
    }
}
