//! Checker and Verifier: two agents of registry that check facts. The Checker fails, as planned.

use rialto_client::CallError;
use rialto_client::registry::{Agent, Skill, WorkOutcome};
use serde_json::json;
use tokio::time::sleep;

use super::{AgentRunner, WORK_TIME};
use crate::commands::demo::balance;
use crate::commands::demo::event::ActionKind;
use crate::commands::demo::reporter::Reporter;
use crate::commands::demo::role::{self, Role};
use rialto_core::money::Credits;

/// How long a poll without jobs is held open by the hub, in seconds.
const FETCH_SECONDS: u8 = 25;

/// An agent that checks facts.
#[derive(Clone, Copy)]
pub struct FactChecker {
    pub who: Role,
    price: Credits,
    fails: bool,
}

pub const CHECKERS: [FactChecker; 2] = [
    FactChecker { who: Role::Checker, price: role::CHECK_PRICE, fails: true },
    FactChecker { who: Role::Verifier, price: role::SECOND_CHECK_PRICE, fails: false },
];

pub async fn start(wings: &mut AgentRunner, checker: FactChecker) -> Result<String, CallError> {
    let price = balance::format_amount(checker.price);
    let skill = Skill { name: "check_facts", description: "Checks a claim", price: &price };
    let owner = format!("demo-{}", checker.who.slug());
    let agent = Agent::register(&wings.hub()?, checker.who.name(), &owner, &[skill]).await?;
    let id = format!("registry:{}", agent.id());
    let tell = wings.reporter.clone();
    wings.spawn(checker.who, async move { checker.work(&agent, &tell).await });
    Ok(id)
}

impl FactChecker {
    async fn work(self, agent: &Agent, tell: &Reporter) -> Result<(), CallError> {
        loop {
            for job in agent.fetch_jobs(FETCH_SECONDS).await? {
                tell.report_activity(self.who, "checks the facts");
                sleep(WORK_TIME).await;
                agent.report_result(&job, &self.outcome(tell)).await?;
            }
        }
    }

    fn outcome(self, tell: &Reporter) -> WorkOutcome {
        if self.fails {
            let said = "fails: its archive is unavailable";
            tell.report_action(self.who, ActionKind::Fails.with_party(Role::Editor), said);
            return WorkOutcome::Failed("the archive is unavailable".to_owned());
        }
        tell.report_action(
            self.who,
            ActionKind::Delivers.with_party(Role::Editor),
            "delivers: the claim is true",
        );
        WorkOutcome::Done(json!({"is_so": true}))
    }
}
