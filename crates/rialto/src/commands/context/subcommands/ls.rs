//! `rialto context ls`: lists the contexts.

use super::super::super::error::CliError;
use super::super::super::output;
use super::super::super::table::{Column, Table};
use super::super::{Context, Home};
use crate::exit::Exit;

pub fn run(json: bool) -> Result<Exit, CliError> {
    let home = Home::find();
    let mut contexts = home.as_ref().map(Home::contexts).transpose()?.unwrap_or_default();
    let chosen = home.as_ref().map(Home::current).transpose()?.flatten();
    let current = chosen.unwrap_or_else(|| super::super::DEFAULT.to_owned());
    if !contexts.iter().any(|one| one.name() == current) {
        // A removed context is left out; the implied default is included.
        contexts.extend(Context::current(Some(&current)).ok());
    }
    if json {
        let all: Result<Vec<_>, CliError> =
            contexts.iter().map(|one| super::context_json(one, one.name() == current)).collect();
        let _ = output::print_line(&serde_json::Value::from(all?).to_string());
        return Ok(Exit::Ok);
    }
    let mut table = table();
    for one in &contexts {
        let mark = if one.name() == current { "*" } else { " " };
        let key = if one.load_key()?.is_some() { "yes" } else { "none" };
        table.push_row([mark, one.name(), one.hub(), key]);
    }
    table.print();
    Ok(Exit::Ok)
}

fn table() -> Table {
    Table::new([
        Column::text(""),
        Column::flexible("NAME"),
        Column::flexible("HUB"),
        Column::text("KEY"),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::super::super::table::assert_fits;
    use super::*;

    #[test]
    fn contexts_fit_a_terminal() {
        let mut table = table();
        let hub = "https://a-hub-behind-a-very-long-name.europe.example:7425/with/a/path";
        table.push_row(["*", &"x".repeat(64), hub, "none"]);
        assert_fits(&table, "NAME HUB KEY");
    }
}
