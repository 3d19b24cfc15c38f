//! Which endpoint of the hub the bridge calls: all tools, some groups, or the skills of agents.

use rialto_core::money::Credits;
use rialto_hub::mcp::is_pin;
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
    /// Refuse all calls once the tools differ from those of this pin
    #[arg(long, value_name = "PIN", requires = "agent")]
    pin: Option<String>,
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
        if let Some(pin) = self.pin.as_ref().filter(|pin| !is_pin(pin)) {
            let message = format!("--pin {pin:?} is not a pin: it must be 16 hex digits");
            return Err(CliError::usage(message, "write it like --pin 0123456789abcdef"));
        }
        self.tool_groups()?;
        Ok(match (&self.agent, &self.tools) {
            (Some(agents), _) => {
                let names: Vec<String> = agents.split(',').map(encode_part).collect();
                let options = [("max_price", &self.max_price), ("pin", &self.pin)];
                let options: Vec<String> = options
                    .into_iter()
                    .filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)))
                    .collect();
                let query = if options.is_empty() { "" } else { "?" };
                format!("/mcp/agents/{}{query}{}", names.join(","), options.join("&"))
            }
            (None, Some(tools)) => format!("/mcp?tools={tools}"),
            (None, None) => "/mcp".to_owned(),
        })
    }

    /// The same choice as arguments of `rialto mcp`.
    pub fn arguments(&self) -> Vec<String> {
        let all = [
            ("--agent", &self.agent),
            ("--tools", &self.tools),
            ("--max-price", &self.max_price),
            ("--pin", &self.pin),
        ];
        let given = all.into_iter().filter_map(|(flag, value)| Some((flag, value.clone()?)));
        given.flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(agent: Option<&str>, tools: Option<&str>, max_price: Option<&str>) -> DoorArgs {
        let own = |text: Option<&str>| text.map(str::to_owned);
        DoorArgs { agent: own(agent), tools: own(tools), max_price: own(max_price), pin: None }
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
        let pin = Some("0123456789abcdef".to_owned());
        let pinned = DoorArgs { pin, ..two };
        let query = "?max_price=0.10&pin=0123456789abcdef";
        assert_eq!(path(pinned.clone()), format!("/mcp/agents/a%20b%2Fc,d{query}"));
        assert_eq!(pinned.arguments()[4..], ["--pin", "0123456789abcdef"]);
    }

    #[test]
    fn unknown_groups_bad_amounts_and_bad_pins_are_told_before_anything_is_served() {
        let unknown = door(None, Some("buy,sell"), None).path().expect_err("unknown");
        assert!(unknown.message.contains("\"sell\""), "{unknown:?}");
        assert!(unknown.next.is_some_and(|next| next.contains("buy, money, talk, work")));
        for price in ["-1", "ten", "0.0000001", "1&x"] {
            assert!(door(Some("echo"), None, Some(price)).path().is_err(), "{price}");
        }
        for pin in ["", "0123456789abcde", "0123456789ABCDEF", "0123456789abcde&"] {
            let pin = Some(pin.to_owned());
            let refused = DoorArgs { pin, ..door(Some("echo"), None, None) }.path();
            assert!(refused.is_err_and(|error| error.message.contains("16 hex digits")));
        }
    }
}
