//! Content blocks that a worker delivers for a tool of another MCP server.

use rialto_protocols::kit::ijson::{Json, JsonValue};

use crate::mcp::wire::result::as_text;

/// Whether a value is a list of blocks that clients can read. Blocks are passed on as they are, so one
/// that is malformed would cost the client the whole result.
pub fn are_blocks(json: &Json<'_>) -> bool {
    matches!(json.value(), JsonValue::Array(items) if items.iter().all(is_block))
}

fn is_block(block: &Json<'_>) -> bool {
    let has = |name: &str| as_text(block.get(name)).is_some();
    match as_text(block.get("type")) {
        Some("text") => has("text"),
        Some("image" | "audio") => has("data") && has("mimeType"),
        Some("resource_link") => has("uri") && has("name"),
        Some("resource") => block.get("resource").is_some_and(|resource| {
            let has = |name: &str| as_text(resource.get(name)).is_some();
            has("uri") && (has("text") || has("blob"))
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rialto_protocols::kit::ijson;

    use super::*;

    fn accepts(text: &str) -> bool {
        are_blocks(&ijson::read(text.as_bytes()).expect("JSON"))
    }

    #[test]
    fn only_blocks_that_clients_can_read_are_passed_on() {
        for good in [
            "[]",
            r#"[{"type":"text","text":""},{"type":"image","data":"aQ==","mimeType":"image/png"}]"#,
            r#"[{"type":"audio","data":"aQ==","mimeType":"audio/wav","annotations":{}}]"#,
            r#"[{"type":"resource","resource":{"uri":"test://x","blob":"aQ=="}}]"#,
            r#"[{"type":"resource_link","uri":"test://x","name":"x"}]"#,
        ] {
            assert!(accepts(good), "{good}");
        }
        for bad in [
            "{}",
            "[5]",
            r#"[{"type":"text"}]"#,
            r#"[{"type":"text","text":5}]"#,
            r#"[{"type":"image","data":"aQ=="}]"#,
            r#"[{"type":"resource","resource":{"uri":"test://x"}}]"#,
            r#"[{"type":"script","text":"x"}]"#,
        ] {
            assert!(!accepts(bad), "{bad}");
        }
    }
}
