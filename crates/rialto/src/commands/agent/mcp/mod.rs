//! `rialto agent run --mcp`: runs the tools of an MCP server as an agent.

mod plan;
mod shown;
mod words;

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::Url;
use rialto_client::agent::mcp::{CallJournal, McpServer, McpTool, OfferedTools};
use rialto_client::agent::record::JobRecords;
use rialto_client::agent::{Agent, Handlers, HandlersBuilder, Skill, slug};
use rialto_client::mcp::Tool;
use rialto_hub::shutdown::Shutdown;

pub use plan::{AgentEntry, McpEntry, McpPlan};
use shown::ToolPrinter;

use super::event_printer::EventPrinter;
use super::run::{self, Args};
use crate::commands::context::home;
use crate::commands::{CliError, CliResult, Exit, HubOptions};

/// The most skills that a hub takes of one agent.
const SKILLS_MAX: usize = 64;

/// Runs the agent until it is stopped, or its server is given up.
pub async fn run(options: &HubOptions, args: &Args, plan: McpPlan, stop: Shutdown) -> CliResult {
    let printer = Arc::new(EventPrinter::new(options.json));
    let log = {
        let printer = Arc::clone(&printer);
        Arc::new(move |line: &str| printer.print_server_line(line))
    };
    let source = plan.source(log)?;
    let on_event = {
        let printer = Arc::clone(&printer);
        move |event| printer.print_server_event(&event)
    };
    let opened = tokio::select! {
        opened = McpServer::open(source, on_event) => opened,
        () = stop.wait() => return Ok(Exit::Ok),
    };
    let server = opened.map_err(|error| {
        let message = format!("the MCP server {} cannot be used: {error}", plan.location.shown());
        CliError::failed(message, "run its command by itself to see why, or check its URL")
    })?;
    let result = run_opened(options, args, plan, &server, &printer, stop).await;
    server.close().await;
    result
}

/// Runs the agent of a server that is open.
async fn run_opened(
    options: &HubOptions,
    args: &Args,
    plan: McpPlan,
    server: &McpServer,
    printer: &Arc<EventPrinter>,
    stop: Shutdown,
) -> CliResult {
    // Peers need no hub, so with --direct a hub is used only if it is named.
    let hub = match args.direct.is_none() || options.hub.is_some() {
        true => Some(run::hub_url(options)?),
        false => None,
    };
    let is_local = hub.as_deref().is_none_or(is_loopback_url)
        && args.direct.is_none_or(|address: SocketAddr| address.ip().is_loopback());
    let (era, server_name) = server.about().unzip();
    let offered = server.offered();
    let choice = Choice::of(&plan, &offered, is_local);
    ToolPrinter { as_json: options.json, is_local }.print(
        &plan.location.shown(),
        era,
        &choice,
        &offered.left_out,
    );
    choice.check(&plan, &offered)?;

    let name = plan.agent.name.clone().or_else(|| server_name.flatten().map(|name| slug(&name)));
    let name = name.unwrap_or_else(|| "mcp".to_owned());
    let entry = &plan.agent;
    let folder = std::fs::canonicalize(&entry.folder)
        .map_err(|error| home::read_error(&entry.folder, &error))?;
    let state_dir = run::open_state_dir(options, &name, &folder, entry.state_name.as_deref())?;
    let records = state_dir.records().map_err(run::agent_error)?;
    let journal = CallJournal::open(&state_dir)
        .map_err(|error| home::write_error(state_dir.directory(), &error))?;
    let tools = ToolHandlers { server: server.clone(), journal, records };
    let handlers = tools.builder(choice.sold).concurrency(entry.concurrency).build();

    let mut agent = Agent::new(&name).handlers(handlers.clone()).state_dir(state_dir);
    if let Some(owner) = &entry.owner {
        agent = agent.owner(owner);
    }
    for media_type in &entry.accepts {
        agent = agent.accepts(media_type);
    }
    if let Some(address) = args.direct {
        agent = agent.listener(run::listen(address).await?);
    }
    if let Some(hub) = hub {
        agent = agent.hub(hub);
    }
    let agent = agent.on_event({
        let printer = Arc::clone(printer);
        move |event| printer.print_event(&event)
    });
    let supervise = tokio::spawn({
        let server = server.clone();
        async move {
            let choose =
                |offered: &OfferedTools| tools.builder(Choice::of(&plan, offered, is_local).sold);
            server.supervise(&handlers, choose).await;
        }
    });
    let stop = async {
        tokio::select! {
            () = stop.wait() => {}
            () = server.given_up() => {}
        }
    };
    let ran = agent.run(stop).await;
    server.close().await;
    let _ = supervise.await;
    ran.map_err(run::agent_error)?;
    match server.failure() {
        None => Ok(Exit::Ok),
        Some(why) => {
            let message = format!("the MCP server ends again and again: {why}");
            Err(CliError::failed(message, "run its command by itself to see why"))
        }
    }
}

fn is_loopback_url(url: &str) -> bool {
    let host = Url::parse(url).ok();
    match host.as_ref().and_then(Url::host_str) {
        Some("localhost") => true,
        Some(host) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

/// Makes the handlers of tools.
struct ToolHandlers {
    server: McpServer,
    journal: CallJournal,
    records: JobRecords,
}

impl ToolHandlers {
    fn builder(&self, sold: Vec<(Skill, Tool)>) -> HandlersBuilder {
        sold.into_iter().fold(Handlers::builder(), |all, (skill, tool)| {
            let (journal, records) = (self.journal.clone(), self.records.clone());
            all.skill(skill, McpTool::new(self.server.clone(), tool, journal, records))
        })
    }
}

/// What is sold of a server's tools, and why the rest is not.
#[derive(Default)]
struct Choice {
    sold: Vec<(Skill, Tool)>,
    /// They may change something, and the hub is not on this machine.
    withheld: Vec<Tool>,
    without_price: Vec<String>,
    /// Why tools cannot be skills.
    unfit: Vec<String>,
}

impl Choice {
    fn of(plan: &McpPlan, offered: &OfferedTools, is_local: bool) -> Self {
        let mut choice = Self::default();
        for tool in &offered.tools {
            if !plan.selection.includes(tool, is_local) {
                choice.withheld.push(tool.clone());
                continue;
            }
            match plan.skill(tool) {
                Some(Ok(skill)) => choice.sold.push((skill, tool.clone())),
                Some(Err(why)) => choice.unfit.push(format!("tool {}: {why}", tool.name)),
                None => choice.without_price.push(tool.name.clone()),
            }
        }
        choice
    }

    /// Whether this can be sold at all. Asked once: a list that changes later is taken as it is.
    fn check(&self, plan: &McpPlan, offered: &OfferedTools) -> CliResult<()> {
        let names: Vec<&str> = offered.tools.iter().map(|tool| tool.name.as_str()).collect();
        if let Some(unknown) = plan.find_unknown_tool(&offered.tools) {
            let message = format!("the server has no tool {unknown}");
            return Err(CliError::usage(message, format!("its tools are {}", names.join(", "))));
        }
        if let Some(name) = self.without_price.first() {
            let next = format!("add --price 0.05 for all tools, or --price {name}=0.05");
            return Err(CliError::usage(format!("tool {name} has no price"), next));
        }
        if self.sold.len() > SKILLS_MAX {
            let message = format!(
                "the server has {} tools, and a hub takes {SKILLS_MAX} skills",
                self.sold.len()
            );
            return Err(CliError::usage(message, "choose with --tools, like --tools 'read_*'"));
        }
        if self.sold.is_empty() && !self.withheld.is_empty() {
            let message = "none of the server's tools says that it changes nothing, and the hub is not on this machine";
            let next = "name those to sell with --tools, or pass --all-tools";
            return Err(CliError::usage(message, next));
        }
        if self.sold.is_empty() {
            let message = "the server has no tool that can be sold";
            return Err(CliError::usage(message, "choose another server"));
        }
        Ok(())
    }
}
