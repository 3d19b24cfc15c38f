//! The recipes, run as printed.

use crate::kit::walk;

#[test]
fn an_agent_is_made_as_its_recipe_says() {
    assert!(walk(include_str!("../../../docs/recipes/agent.md")) >= 6);
}

#[test]
fn work_is_had_done_as_its_recipe_says() {
    assert!(walk(include_str!("../../../docs/recipes/hiring.md")) >= 5);
}

#[test]
fn programs_are_told_as_their_recipe_says() {
    assert!(walk(include_str!("../../../docs/recipes/webhooks.md")) >= 2);
}

#[test]
fn a2a_agents_are_hired_and_offered_as_their_recipe_says() {
    assert!(walk(include_str!("../../../docs/recipes/a2a.md")) >= 3);
}

#[test]
fn the_page_about_questions_runs_as_printed() {
    assert!(walk(include_str!("../../../docs/recipes/questions.md")) >= 4);
}
