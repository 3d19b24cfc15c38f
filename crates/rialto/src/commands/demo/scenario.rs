//! The scenario: all agents start, the Reader posts its job, and the hub's records are read at the
//! end.

use std::time::Duration;

use rialto_client::CallError;
use tokio::time::{sleep, timeout};

use super::DemoHub;
use super::agents::{AgentIds, AgentRunner, AgentUpdate};
use super::display::LiveDisplay;
use super::plan::{self, Event, Role};
use super::records::{self, DemoAgents, HubRecords};
use super::report::DemoReport;
use super::requesters::{Bulletin, Reader};
use crate::commands::{CliError, CliResult, Exit};

/// Time limit for each step.
const STEP_TIMEOUT: Duration = Duration::from_secs(20);
/// How often to check whether all agents are online.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Runs the scenario from the first registration to the last payment.
pub async fn run_scenario(hub: &DemoHub, display: &mut LiveDisplay) -> CliResult<DemoReport> {
    let (mut runner, mut updates) = AgentRunner::new(&hub.url);
    let (reader, ids) = within("all agents register", start_agents(hub, &mut runner)).await?;
    let before = records::fetch_agents(hub, &ids).await?;
    display.begin(&hub.url);
    let mut progress =
        DemoProgress { hub, display, agents: &before, events: Vec::new(), last_warning: None };
    progress.show_balances().await?;
    let mut request = std::pin::pin!(reader.request_bulletin(&runner));
    let bulletin = loop {
        tokio::select! {
            // Reports sent before the end are shown before the end.
            biased;
            update = timeout(STEP_TIMEOUT, updates.recv()) => match update {
                Ok(Some(update)) => progress.handle_update(update).await?,
                _ => return Err(timeout_error(&progress.next_step())),
            },
            bulletin = &mut request => break bulletin.map_err(|error| agent_error(Role::Reader, &error))?,
        }
    };
    while let Ok(update) = updates.try_recv() {
        progress.handle_update(update).await?;
    }
    let events = progress.events;
    let Bulletin { job, text: bulletin } = bulletin;
    let (after, records) = within("the hub's records are read", async {
        let after = records::fetch_agents(hub, &ids).await?;
        let records = HubRecords::read(hub, &reader, &job, &after).await?;
        Ok((after, records))
    })
    .await?;
    Ok(DemoReport { job, events, bulletin, before, after, records, breaches: Vec::new() })
}

/// The progress so far, and where it is shown.
struct DemoProgress<'a> {
    hub: &'a DemoHub,
    display: &'a mut LiveDisplay,
    agents: &'a DemoAgents,
    events: Vec<Event>,
    last_warning: Option<String>,
}

impl DemoProgress<'_> {
    /// The next expected step, and the likely reason why it is late.
    fn next_step(&self) -> String {
        let step = plan::next_step(&self.events).map_or("the end".to_owned(), plan::Step::describe);
        let why = self.last_warning.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        format!("{step}{why}")
    }

    async fn handle_update(&mut self, update: AgentUpdate) -> CliResult<()> {
        match update {
            AgentUpdate::Event(event) => {
                self.display.show_event(&event);
                self.events.push(event);
                self.show_balances().await?;
            }
            AgentUpdate::Activity(role, activity) => self.display.show_activity(role, &activity),
            AgentUpdate::Warning(role, why) => {
                self.last_warning = Some(format!("{role} reports: {why}"));
            }
            AgentUpdate::Failed(role, why) => return Err(agent_error(role, &why)),
        }
        Ok(())
    }

    async fn show_balances(&mut self) -> Result<(), CallError> {
        if self.display.is_live() {
            self.display.show_balances(&records::fetch_balances(self.hub, self.agents).await?);
        }
        Ok(())
    }
}

/// Starts all agents, waits until the hub shows them as online, and grants credits to those that pay.
async fn start_agents(
    hub: &DemoHub,
    runner: &mut AgentRunner,
) -> Result<(Reader, AgentIds), CallError> {
    let reader = Reader::register(runner).await?;
    let mut ids = runner.start_all().await?;
    ids.insert(Role::Reader, format!("registry:{}", reader.id));
    let agents = loop {
        let agents = records::fetch_agents(hub, &ids).await?;
        // The Reader does not work.
        if agents.iter().all(|(role, agent)| agent.online || *role == Role::Reader) {
            break agents;
        }
        sleep(POLL_INTERVAL).await;
    };
    for (role, agent) in agents.iter().filter(|(role, _)| !role.initial_credits().is_zero()) {
        hub.operator.grant(&agent.owner, role.initial_credits(), true).await?;
    }
    Ok((reader, ids))
}

/// Runs a step with a time limit.
async fn within<T>(step: &str, work: impl Future<Output = Result<T, CallError>>) -> CliResult<T> {
    Ok(timeout(STEP_TIMEOUT, work).await.map_err(|_| timeout_error(step))??)
}

/// The error for a step that timed out.
fn timeout_error(step: &str) -> CliError {
    let message = format!("timed out after {} s waiting for: {step}", STEP_TIMEOUT.as_secs());
    let next = "try again when the machine is less busy";
    CliError { exit: Exit::TimedOut, ..CliError::failed(message, next) }
}

/// The error for an agent that cannot continue.
fn agent_error(role: Role, why: &impl std::fmt::Display) -> CliError {
    let message = format!("{role} ({}) failed: {why}", role.protocol());
    CliError::failed(message, "run `rialto demo --plain` to see the steps")
}
