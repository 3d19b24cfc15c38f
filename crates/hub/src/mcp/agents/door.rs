//! What the address of an endpoint says: which agents, and on what conditions.

use rialto_core::id::AgentId;
use rialto_core::money::Credits;
use rialto_engine::Engine;
use rialto_protocols::kit::query::Query;

use super::pin::is_pin;
use crate::mcp::tools::names::find_agent;
use crate::v1::auth::is_registered;
use crate::v1::errors;
use crate::v1::problem::Problem;

/// How many agents one endpoint shows.
const AGENTS_MAX: usize = 16;
/// Decimals of `max_price`.
const DECIMALS: usize = 6;

/// The options of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    /// The most that one call may cost.
    pub max_price: Credits,
    /// The pin of the tools that the caller has reviewed.
    pub pin: Option<String>,
}

impl Door {
    /// Reads `?max_price=` and `?pin=`. A misspelt option would protect nothing, so others are
    /// refused.
    pub fn parse(query: &Query, default_max_price: Credits) -> Result<Self, Problem> {
        let mut names = query.names();
        if let Some(other) = names.find(|name| !["max_price", "pin"].contains(name)) {
            let what = "is not an option here; there are max_price and pin";
            return Err(Problem::invalid_field(&format!("?{other}"), what));
        }
        let pin = query.text("pin");
        if pin.is_some_and(|pin| !is_pin(pin)) {
            return Err(Problem::invalid_field("?pin", "pin must be 16 hex digits"));
        }
        let max_price = query.credits("max_price", DECIMALS)?;
        Ok(Self { max_price: max_price.unwrap_or(default_max_price), pin: pin.map(str::to_owned) })
    }
}

/// The agents that a path names, each once, in their order.
pub fn find_agents(engine: &Engine, names: &str) -> Result<Vec<AgentId>, Problem> {
    let names: Vec<&str> = names.split(',').collect();
    if names.len() > AGENTS_MAX {
        let what = format!("name at most {AGENTS_MAX} agents; these are {}", names.len());
        return Err(Problem::new(&errors::MALFORMED, what));
    }
    let mut agents = Vec::new();
    for name in names {
        let found = find_agent(engine, name).map_err(|error| {
            let kind = match error.code {
                "ambiguous" => &errors::MALFORMED,
                _ => &errors::NOT_FOUND,
            };
            Problem::new(kind, format!("{}; {}", error.what, error.fix))
        })?;
        if !engine.with_world(|world| is_registered(world, found)) {
            let what = format!("the agent {} has unregistered", found.0);
            return Err(Problem::new(&errors::NOT_FOUND, what));
        }
        if !agents.contains(&found) {
            agents.push(found);
        }
    }
    Ok(agents)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<(String, Option<String>), Option<String>> {
        let one = Credits::from_micros(1_000_000);
        let query = Query::read(query).expect("a query");
        let door = Door::parse(&query, one).map_err(|problem| problem.field)?;
        Ok((door.max_price.to_text(2), door.pin))
    }

    #[test]
    fn the_options_are_a_price_and_a_pin_and_no_others() {
        assert_eq!(parse(""), Ok(("1.00".to_owned(), None)));
        let pin = "0123456789abcdef".to_owned();
        assert_eq!(parse("max_price=0.5&pin=0123456789abcdef"), Ok(("0.50".to_owned(), Some(pin))));
        for (wrong, field) in [
            ("max_price=-1", "?max_price"),
            ("max_price=", "?max_price"),
            ("pin=", "?pin"),
            ("pin=0123456789ABCDEF", "?pin"),
            ("pins=0123456789abcdef", "?pins"),
        ] {
            assert_eq!(parse(wrong), Err(Some(field.to_owned())), "{wrong}");
        }
    }
}
