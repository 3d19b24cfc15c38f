//! Shows the tools of a server before they are sold.

use rialto_client::agent::Skill;
use rialto_client::mcp::{Era, Tool, ToolHints};
use serde_json::{Value, json};

use super::Choice;
use crate::commands::output;

/// How much of a description is shown.
const DESCRIPTION_SHOWN: usize = 80;

/// Prints tools as lines or as JSON.
pub struct ToolPrinter {
    pub as_json: bool,
    pub is_local: bool,
}

impl ToolPrinter {
    pub fn print(&self, server: &str, era: Option<Era>, choice: &Choice, left_out: &[String]) {
        let left_out: Vec<&String> = left_out.iter().chain(&choice.unfit).collect();
        if self.as_json {
            let sold: Vec<Value> =
                choice.sold.iter().map(|(skill, tool)| document(Some(skill), tool)).collect();
            let withheld: Vec<Value> =
                choice.withheld.iter().map(|tool| document(None, tool)).collect();
            output::print_data(json!({
                "event": "tools",
                "server": server,
                "era": era.map_or("unknown", Era::as_str),
                "tools": sold,
                "not_sold": withheld,
                "left_out": left_out,
            }));
            return;
        }
        let speaks = match era {
            Some(Era::Old) => " (speaks MCP 2025-11-25 or older)",
            Some(Era::New) => " (speaks MCP 2026-07-28)",
            None => "",
        };
        let mut lines = vec![format!("{server}{speaks}, tools for sale: {}", choice.sold.len())];
        lines.extend(choice.sold.iter().map(|(skill, tool)| {
            format!(
                "  {}  {}  {}{}",
                tool.name,
                skill.price.to_text(2),
                hints(tool.hints),
                about(tool)
            )
        }));
        for tool in &choice.withheld {
            let why = match self.is_local {
                true => "not chosen",
                false => {
                    "not sold: it may change something, and the hub is not on this machine; name it with --tools, or pass --all-tools"
                }
            };
            lines.push(format!("  {}  {}  {why}", tool.name, hints(tool.hints)));
        }
        lines.extend(left_out.into_iter().map(|why| format!("  left out: {why}")));
        for line in lines {
            eprintln!("{}", output::escape_line(&line));
        }
    }
}

fn about(tool: &Tool) -> String {
    let about = tool.description.as_ref().or(tool.title.as_ref());
    let line = about.and_then(|about| about.trim().lines().next());
    line.map(|line| format!("  {}", output::shorten(line, DESCRIPTION_SHOWN))).unwrap_or_default()
}

/// What the server says of a tool's effects, in the words of the protocol.
fn hints(hints: ToolHints) -> String {
    let words = [
        (hints.read_only, "read-only", "writes"),
        (hints.destructive, "destructive", "not destructive"),
        (hints.idempotent, "idempotent", "not idempotent"),
        (hints.open_world, "open world", "closed world"),
    ];
    let said = words.into_iter().filter_map(|(hint, yes, no)| Some(if hint? { yes } else { no }));
    let said: Vec<&str> = said.collect();
    if said.is_empty() { "no hints".to_owned() } else { said.join(", ") }
}

fn document(skill: Option<&Skill>, tool: &Tool) -> Value {
    let ToolHints { read_only, destructive, idempotent, open_world } = tool.hints;
    json!({
        "name": tool.name,
        "description": tool.description.as_ref().or(tool.title.as_ref()),
        "price": skill.map(|skill| skill.price.to_text(2)),
        "hints": {
            "readOnlyHint": read_only,
            "destructiveHint": destructive,
            "idempotentHint": idempotent,
            "openWorldHint": open_world,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hints_that_were_given_are_shown() {
        let given =
            ToolHints { read_only: Some(true), open_world: Some(false), ..ToolHints::default() };
        assert_eq!(hints(given), "read-only, closed world");
        assert_eq!(hints(ToolHints::default()), "no hints");
    }
}
