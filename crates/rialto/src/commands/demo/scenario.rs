//! The scenario: all agents start, the Reader posts its job, and the hub's records are read at the
//! end.

use std::time::Duration;

use rialto_client::CallError;
use tokio::time::{sleep, timeout};

use super::agents::reader::{Bulletin, Reader};
use super::agents::{AgentIds, AgentRunner};
use super::demo_agent::{self, DemoAgents};
use super::demo_hub::DemoHub;
use super::display::LiveDisplay;
use super::event::Event;
use super::hub_records::HubRecords;
use super::plan;
use super::report::DemoReport;
use super::reporter::{AgentUpdate, Reporter};
use super::role::Role;
use crate::commands::error::CliError;
use crate::exit::Exit;

/// Time limit for each step.
const STEP_TIMEOUT: Duration = Duration::from_secs(20);
/// How often to check whether all agents are online.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Runs the scenario from the first registration to the last payment.
pub async fn run_scenario(
    policy: &DemoHub,
    stage: &mut LiveDisplay,
) -> Result<DemoReport, CliError> {
    let (tell, mut words) = Reporter::new();
    let mut wings = AgentRunner::new(&policy.url, tell);
    let (reader, known) = within("all agents register", start_agents(policy, &mut wings)).await?;
    let before = demo_agent::fetch_agents(policy, &known).await?;
    stage.begin(&policy.url);
    let mut telling =
        DemoProgress { policy, stage, people: &before, events: Vec::new(), last_warning: None };
    telling.show_accounts().await?;
    let mut asking = std::pin::pin!(reader.request_bulletin(&wings));
    let bulletin = loop {
        tokio::select! {
            // Reports sent before the end are shown before the end.
            biased;
            word = timeout(STEP_TIMEOUT, words.recv()) => match word {
                Ok(Some(word)) => telling.handle_update(word).await?,
                _ => return Err(timeout_error(&telling.next())),
            },
            bulletin = &mut asking => break bulletin.map_err(|error| agent_error(Role::Reader, &error))?,
        }
    };
    while let Ok(word) = words.try_recv() {
        telling.handle_update(word).await?;
    }
    let events = telling.events;
    let (after, books) = within("the hub's records are read", async {
        let after = demo_agent::fetch_agents(policy, &known).await?;
        let books = HubRecords::read(policy, &reader, &bulletin.job, &after).await?;
        Ok((after, books))
    })
    .await?;
    let Bulletin { job, text: bulletin } = bulletin;
    Ok(DemoReport { job, events, bulletin, before, after, records: books, breaches: Vec::new() })
}

/// The progress so far, and where it is shown.
struct DemoProgress<'a> {
    policy: &'a DemoHub,
    stage: &'a mut LiveDisplay,
    people: &'a DemoAgents,
    events: Vec<Event>,
    /// The last warning, if any.
    last_warning: Option<String>,
}

impl DemoProgress<'_> {
    /// The next expected step, and the likely reason why it is late.
    fn next(&self) -> String {
        let step = plan::next_step(&self.events).map_or("the end".to_owned(), plan::Step::describe);
        let why = self.last_warning.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        format!("{step}{why}")
    }

    async fn handle_update(&mut self, word: AgentUpdate) -> Result<(), CliError> {
        match word {
            AgentUpdate::Event(event) => {
                self.stage.show_event(&event);
                self.events.push(event);
                self.show_accounts().await?;
            }
            AgentUpdate::Activity(who, what) => self.stage.show_activity(who, &what),
            AgentUpdate::Warning(who, what) => {
                self.last_warning = Some(format!("{who} reports: {what}"))
            }
            AgentUpdate::Failed(who, why) => return Err(agent_error(who, &why)),
        }
        Ok(())
    }

    async fn show_accounts(&mut self) -> Result<(), CallError> {
        if self.stage.is_live() {
            self.stage.show_balances(&demo_agent::fetch_balances(self.policy, self.people).await?);
        }
        Ok(())
    }
}

/// Starts all agents and grants credits to those that pay.
async fn start_agents(
    policy: &DemoHub,
    wings: &mut AgentRunner,
) -> Result<(Reader, AgentIds), CallError> {
    let reader = Reader::register(wings).await?;
    let mut known = wings.start_all().await?;
    known.insert(Role::Reader, format!("registry:{}", reader.id));
    all_online(policy, &known).await?;
    for (who, person) in demo_agent::fetch_agents(policy, &known).await? {
        policy.grant(&person.owner, who.initial_credits()).await?;
    }
    Ok((reader, known))
}

/// Waits until the hub shows all workers as online.
async fn all_online(policy: &DemoHub, known: &AgentIds) -> Result<(), CallError> {
    loop {
        let people = demo_agent::fetch_agents(policy, known).await?;
        let works = |who: &Role| *who != Role::Reader;
        if people.iter().filter(|(who, _)| works(who)).all(|(_, person)| person.online) {
            return Ok(());
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Runs a step with a time limit.
async fn within<T>(
    step: &str,
    work: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CliError> {
    Ok(timeout(STEP_TIMEOUT, work).await.map_err(|_| timeout_error(step))??)
}

/// The error for a step that timed out.
fn timeout_error(step: &str) -> CliError {
    CliError {
        exit: Exit::TimedOut,
        code: None,
        message: format!("timed out after {} s waiting for: {step}", STEP_TIMEOUT.as_secs()),
        next: Some("try again when the machine is less busy".to_owned()),
    }
}

/// The error for an agent that cannot continue.
fn agent_error(who: Role, why: &impl std::fmt::Display) -> CliError {
    CliError {
        exit: Exit::Failed,
        code: None,
        message: format!("{who} ({}) failed: {why}", who.protocol()),
        next: Some("run `rialto demo --plain` to see the steps".to_owned()),
    }
}
