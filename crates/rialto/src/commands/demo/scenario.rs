//! The scenario: all agents start, the Reader posts its job, and the hub's records are read at the end.
//! On a terminal each agent has a line that is redrawn; elsewhere each event is one line.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::time::Duration;

use rialto_client::CallError;
use tokio::time::{sleep, timeout};

use super::DemoHub;
use super::agents::{AgentIds, AgentRunner, AgentUpdate};
use super::plan::{self, ALL, Event, Role};
use super::report::{self, DemoAgents, DemoReport, HubRecords, describe};
use super::requesters::{Bulletin, Reader};
use crate::commands::v1::Balance;
use crate::commands::{CliError, CliResult, Exit, escape_line, output};

/// Time limit for each step.
const STEP_TIMEOUT: Duration = Duration::from_secs(20);
/// How often to check whether all agents are online.
const POLL_INTERVAL: Duration = Duration::from_millis(25);
/// Lines are cut at the edge of the terminal instead of wrapping, because wrapped lines could not
/// be redrawn; and the reverse.
const CUT: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";
/// Clears everything below.
const CLEAR: &str = "\x1b[J";
const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Runs the scenario from the first registration to the last payment.
pub async fn run_scenario(hub: &DemoHub, display: &mut LiveDisplay) -> CliResult<DemoReport> {
    let (mut runner, mut updates) = AgentRunner::new(&hub.url);
    let (reader, ids) = within("all agents register", start_agents(hub, &mut runner)).await?;
    let before = report::fetch_agents(hub, &ids).await?;
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
        let after = report::fetch_agents(hub, &ids).await?;
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
            self.display.show_balances(&report::fetch_balances(self.hub, self.agents).await?);
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
    ids.insert(Role::Reader, format!("a2a:{}", reader.name));
    let agents = loop {
        let agents = report::fetch_agents(hub, &ids).await?;
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

/// How the demo is displayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayMode {
    /// One line per agent, redrawn on each change.
    Live,
    /// One line per event.
    Lines,
    /// Nothing until the end.
    Silent,
}

impl DisplayMode {
    /// The mode for this output.
    pub fn detect(json: bool, plain: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        match (json, plain || set("NO_COLOR") || dumb || !io::stdout().is_terminal()) {
            (true, _) => Self::Silent,
            (false, true) => Self::Lines,
            (false, false) => Self::Live,
        }
    }
}

/// The display.
pub struct LiveDisplay {
    mode: DisplayMode,
    rows: BTreeMap<Role, Row>,
    /// Lines that will be redrawn.
    drawn: usize,
}

/// An agent's current activity and balance.
#[derive(Clone, Debug, Default)]
struct Row {
    doing: String,
    balance: Balance,
}

impl LiveDisplay {
    pub fn new(mode: DisplayMode) -> Self {
        Self { mode, rows: BTreeMap::new(), drawn: 0 }
    }

    /// Whether balances are displayed.
    pub fn is_live(&self) -> bool {
        self.mode == DisplayMode::Live
    }

    /// All agents are registered.
    pub fn begin(&mut self, url: &str) {
        let count = ALL.len();
        let text =
            format!("A hub with all six protocols runs at {url}; {count} agents registered.\n\n");
        match self.mode {
            DisplayMode::Silent => {}
            DisplayMode::Lines => print_text(&text),
            DisplayMode::Live => {
                print_text(&format!("{CUT}{text}"));
                let ready = Row { doing: "is ready".to_owned(), ..Row::default() };
                self.rows = ALL.map(|role| (role, ready.clone())).into();
                self.draw("");
            }
        }
    }

    /// Shows an event.
    pub fn show_event(&mut self, event: &Event) {
        match self.mode {
            DisplayMode::Silent => {}
            DisplayMode::Lines => print_text(&line(event)),
            DisplayMode::Live => {
                self.rows.entry(event.role).or_default().doing = escape_line(&event.text);
                self.draw(&line(event));
            }
        }
    }

    /// Shows what an agent is doing.
    pub fn show_activity(&mut self, role: Role, activity: &str) {
        if self.is_live() {
            self.rows.entry(role).or_default().doing = escape_line(activity);
            self.draw("");
        }
    }

    /// Shows the current balances.
    pub fn show_balances(&mut self, balances: &BTreeMap<Role, Balance>) {
        for (role, balance) in balances {
            self.rows.entry(*role).or_default().balance = *balance;
        }
        if self.is_live() {
            self.draw("");
        }
    }

    /// Redraws all rows, below the new text.
    fn draw(&mut self, text: &str) {
        print_text(&self.frame(text));
        self.drawn = self.rows.len();
    }

    /// The new text in place of the rows drawn before, then the current rows.
    fn frame(&self, text: &str) -> String {
        let mut out = String::new();
        if self.drawn > 0 {
            out.push_str(&format!("\x1b[{}A\r{CLEAR}", self.drawn));
        }
        out.push_str(text);
        for (role, Row { doing, balance }) in &self.rows {
            let (protocol, balance) = (role.protocol(), describe(*balance));
            out.push_str(&format!(
                "{BOLD}{role:<9}{PLAIN}  {protocol:<8}  {balance:>20}  {DIM}{doing}{PLAIN}\n"
            ));
        }
        out
    }
}

impl Drop for LiveDisplay {
    fn drop(&mut self) {
        if self.is_live() {
            print_text(&format!("{PLAIN}{WRAP}"));
        }
    }
}

fn line(event: &Event) -> String {
    let Event { at_ms, role, protocol, text, .. } = event;
    let (seconds, hundredths) = (at_ms / 1_000, at_ms % 1_000 / 10);
    let text = escape_line(text);
    format!("{seconds:>2}.{hundredths:02} s  {role:<9}  {protocol:<8}  {text}\n")
}

/// A closed pipe is not an error: the reader has seen enough.
fn print_text(text: &str) {
    let _ = output::print_text(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::demo::plan::ActionKind;

    #[test]
    fn every_agent_has_one_line_that_is_redrawn() {
        let mut display = LiveDisplay::new(DisplayMode::Live);
        display.rows = ALL.map(|role| (role, Row::default())).into();
        let first = display.frame("said\n");
        assert!(first.starts_with("said\n") && !first.contains(CLEAR));
        assert_eq!(first.lines().count(), ALL.len() + 1);
        display.drawn = ALL.len();
        display.rows.entry(Role::Scout).or_default().doing = "scouts".to_owned();
        let second = display.frame("");
        assert!(second.starts_with(&format!("\x1b[{}A\r{CLEAR}", ALL.len())));
        let scout = second.lines().find(|line| line.contains("Scout")).expect("a line");
        assert!(scout.contains("agora") && scout.contains("0.00") && scout.contains("scouts"));
        display.mode = DisplayMode::Silent;
    }

    #[test]
    fn an_event_is_one_line_with_its_time() {
        let (role, kind, text) = (Role::Editor, ActionKind::Defers, "defers\n\x1b[2J".to_owned());
        let (protocol, with, amount) = (role.protocol(), None, None);
        let line = line(&Event { at_ms: 1_250, role, protocol, kind, with, amount, text });
        assert_eq!(line, " 1.25 s  Editor     openclaw  defers\\n\\u{1b}[2J\n");
    }
}
