//! `rialto cluster status`.

use crate::commands::v1::{ClusterView, NodeView};
use crate::commands::{CliResult, Column, HubOptions, Table, operator, output};

/// Prints a line about the node that answers, and a table of all nodes.
pub async fn print(options: &HubOptions) -> CliResult {
    let answer = operator::client(options)?.cluster().await?;
    if options.json {
        return Ok(output::print_data(answer.text));
    }
    let ClusterView { node, role, epoch, seq, lag_ms, nodes } = answer.parse()?;
    let asked = format!("node {node} ({role}), epoch {epoch}, batch {seq}, {lag_ms} ms old");
    if output::print_line(&asked).is_err() {
        return Ok(crate::commands::Exit::Ok);
    }
    let mut table = Table::new([
        Column::text("NODE"),
        Column::text("ROLE"),
        Column::flexible("ADDRESS"),
        Column::number("BATCH").droppable(3),
        Column::text("VERSION").droppable(2),
        Column::time("SEEN").droppable(1),
    ]);
    for NodeView { node, address, role, version, applied, seen_at } in nodes {
        table.push_row([node, role, address, applied.to_string(), version, seen_at]);
    }
    Ok(table.print())
}
