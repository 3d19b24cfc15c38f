//! Which endpoint of the hub the bridge calls: all tools, some groups, or the skills of agents.

use rialto_core::money::Credits;
use rialto_hub::mcp::tools::{ToolGroups, group_names};

use crate::commands::v1::encode_part;
use crate::commands::{CliError, CliResult};

/// Decimals of the smallest amounts.
const DECIMALS: usize = 6;

#[derive(Clone, Debug, Default, clap::Args)]
pub struct DoorArgs {
    /// Offer the skills of these agents as tools, instead of the tools of the hub
    #[arg(long, value_name = "AGENT[,AGENT]", conflicts_with = "tools")]
    agent: Option<String>,
    /// Offer only these groups of tools: buy, talk, work, money
    #[arg(long, value_name = "GROUP[,GROUP]")]
    tools: Option<String>,
    /// Leave out skills that cost more than this
    #[arg(long, value_name = "CREDITS", requires = "agent")]
    max_price: Option<String>,
}

impl DoorArgs {
    /// Whether the tools are skills of agents.
    pub fn is_for_agents(&self) -> bool {
        self.agent.is_some()
    }

    /// The groups of tools, if they all exist.
    pub fn tool_groups(&self) -> CliResult<ToolGroups> {
        ToolGroups::parse(self.tools.as_deref()).map_err(|unknown| {
            let groups = group_names().collect::<Vec<_>>().join(", ");
            CliError::usage(format!("--tools has no group {unknown:?}"), format!("write {groups}"))
        })
    }

    /// The path and the query.
    pub fn path(&self) -> CliResult<String> {
        if let Some(price) = &self.max_price {
            Credits::parse(price, DECIMALS).map_err(|error| {
                let message = format!("--max-price {price} is not an amount: {error}");
                CliError::usage(message, "write it like --max-price 0.10")
            })?;
        }
        self.tool_groups()?;
        Ok(match (&self.agent, &self.tools) {
            (Some(agents), _) => {
                let names: Vec<String> = agents.split(',').map(encode_part).collect();
                let price = self.max_price.as_ref();
                let query = price.map(|price| format!("?max_price={price}")).unwrap_or_default();
                format!("/mcp/agents/{}{query}", names.join(","))
            }
            (None, Some(tools)) => format!("/mcp?tools={tools}"),
            (None, None) => "/mcp".to_owned(),
        })
    }

    /// The same choice as arguments of `rialto mcp`.
    pub fn arguments(&self) -> Vec<String> {
        let all =
            [("--agent", &self.agent), ("--tools", &self.tools), ("--max-price", &self.max_price)];
        let given = all.into_iter().filter_map(|(flag, value)| Some((flag, value.clone()?)));
        given.flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(agent: Option<&str>, tools: Option<&str>, max_price: Option<&str>) -> DoorArgs {
        let own = |text: Option<&str>| text.map(str::to_owned);
        DoorArgs { agent: own(agent), tools: own(tools), max_price: own(max_price) }
    }

    #[test]
    fn the_flags_choose_the_endpoint() {
        let path = |door: DoorArgs| door.path().expect("fine");
        assert_eq!(path(DoorArgs::default()), "/mcp");
        assert_eq!(path(door(None, Some("buy,talk"), None)), "/mcp?tools=buy,talk");
        assert_eq!(path(door(Some("echo"), None, None)), "/mcp/agents/echo");
        let two = door(Some("a b/c,d"), None, Some("0.10"));
        assert_eq!(path(two.clone()), "/mcp/agents/a%20b%2Fc,d?max_price=0.10");
        assert_eq!(two.arguments(), ["--agent", "a b/c,d", "--max-price", "0.10"]);
    }

    #[test]
    fn unknown_groups_and_bad_amounts_are_told_before_anything_is_served() {
        let unknown = door(None, Some("buy,sell"), None).path().expect_err("unknown");
        assert!(unknown.message.contains("\"sell\""), "{unknown:?}");
        assert!(unknown.next.is_some_and(|next| next.contains("buy, money, talk, work")));
        for price in ["-1", "ten", "0.0000001", "1&x"] {
            assert!(door(Some("echo"), None, Some(price)).path().is_err(), "{price}");
        }
    }
}
