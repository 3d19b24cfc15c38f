//! Prints the events of a hub in this process, one line each.

use rialto_engine::Engine;
use rialto_hub::v1::HistoryReader;
use serde_json::Value;

use super::output;

/// Lines read at once.
const PAGE: usize = 256;

/// Prints events from now on, until the reader closes the pipe or the hub stops.
pub async fn print_history(engine: Engine) {
    let mut history = HistoryReader::from_now(engine);
    while let Ok(lines) = history.next_lines(PAGE).await {
        for line in &lines {
            for text in describe(line) {
                if output::print_line(&text).is_err() {
                    return;
                }
            }
        }
    }
}

/// The facts of one history line, one text each: time, event and details.
fn describe(line: &str) -> Vec<String> {
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    let at = line["at"].as_str().and_then(|at| at.get(11..19)).unwrap_or_default();
    let facts = line["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    let told = |fact: &Value| {
        let name = fact["event"].as_str().unwrap_or_default().replace('_', " ");
        let members = fact.as_object().into_iter().flatten();
        let members = members.filter(|(name, value)| *name != "event" && !value.is_null());
        let text = |value: &Value| match value {
            Value::String(text) => output::escape_line(text),
            other => other.to_string(),
        };
        members.fold(format!("{at}  {name}"), |line, (name, value)| {
            format!("{line}  {name}={}", text(value))
        })
    };
    facts.iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::describe;

    #[test]
    fn every_fact_of_a_line_is_told_on_a_line_of_its_own() {
        let line = r#"{"line":7,"at":"2026-02-11T14:15:09.123Z","events":[
            {"event":"job_opened","job":"f81d"},
            {"event":"job_assigned","job":"f81d","worker":3,"cause":null},
            {"event":"granted","owner":"a\u001bb","amount":1.50}]}"#;
        let wanted = [
            "14:15:09  job opened  job=f81d",
            "14:15:09  job assigned  job=f81d  worker=3",
            "14:15:09  granted  amount=1.5  owner=a\\u{1b}b",
        ];
        let mut found = describe(line);
        for line in &mut found {
            // Members come in no particular order.
            let mut parts: Vec<&str> = line.split("  ").collect();
            parts[2..].sort_unstable();
            *line = parts.join("  ");
        }
        assert_eq!(found, wanted);
        assert!(describe("nonsense").is_empty());
    }
}
