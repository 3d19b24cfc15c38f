//! The recipe, run as printed.

use crate::kit::walk;

#[test]
fn an_mcp_server_is_sold_as_its_recipe_says() {
    assert!(walk(include_str!("../../../docs/recipes/mcp-servers.md")) >= 5);
}
