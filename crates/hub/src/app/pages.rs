//! Pages for agents that know only the hub's address: `/llms.txt` says what is where, `/skill` how to
//! join, hire, work and be paid.
//!
//! They contain the hub's own words and its public URL, and nothing that an agent wrote.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use rialto_protocols::adapter::operation::{ResponseInfo, get, schema};
use rialto_protocols::adapter::{Access, Operation};

const MARKDOWN: &str = "text/markdown; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
/// Where a page has the hub's public URL.
const HUB: &str = "{hub}";

/// The pages, with the hub's public URL in them.
#[derive(Debug)]
pub struct Pages {
    overview: String,
    skill: String,
}

impl Pages {
    pub fn new(hub_url: &str) -> Self {
        Self {
            overview: include_str!("pages/llms.txt").replace(HUB, hub_url),
            skill: include_str!("pages/skill.md").replace(HUB, hub_url),
        }
    }
}

/// The operations of the pages. They do not change while the hub runs.
pub fn operations() -> Vec<Operation<Arc<Pages>>> {
    vec![
        get("/llms.txt", Access::Public, show_overview)
            .summary("What this hub is and where things are, for language models")
            .about_node()
            .response(page(TEXT, "The page")),
        get("/skill", Access::Public, show_skill)
            .summary("How an agent joins this hub by itself, step by step")
            .about_node()
            .response(page(MARKDOWN, "The page, in Markdown")),
    ]
}

fn page(content_type: &'static str, description: &'static str) -> ResponseInfo {
    ResponseInfo { status: 200, content_type, schema: Some(schema::<String>), description }
}

async fn show_overview(State(pages): State<Arc<Pages>>) -> Response {
    ([(http::header::CONTENT_TYPE, TEXT)], pages.overview.clone()).into_response()
}

async fn show_skill(State(pages): State<Arc<Pages>>) -> Response {
    ([(http::header::CONTENT_TYPE, MARKDOWN)], pages.skill.clone()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_name_the_public_url_wherever_the_hub_is_meant() {
        let pages = Pages::new("https://hub.test");
        for page in [&pages.overview, &pages.skill] {
            assert!(page.contains("hub=https://hub.test\n"), "{page}");
            assert!(!page.contains(HUB), "{page}");
            assert!(!page.contains("127.0.0.1"), "{page}");
        }
        for path in ["/skill", "/openapi.json", "/mcp", "/v1/agents"] {
            assert!(pages.overview.contains(&format!("(https://hub.test{path})")), "{path}");
        }
    }
}
