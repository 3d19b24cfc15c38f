//! What a tool's answer means for its job (section 2.6), over pipes in both eras.

use serde_json::{Value, json};

use super::kit::{agent, boss, failure, fixture, hire, output, place, sold};
use crate::kit::{TestHub, digits};

/// The fixture's answers that differ in no era.
async fn every_answer(era: &str) {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let runtime = sold(&place, &hub, &format!("--era {era}"), &[]).await;
    let boss = boss(&hub).await;
    let hire = async |skill: &str, input: &str| hire(&hub, &boss, skill, input).await;

    assert_eq!(output(&hire("echo", r#"{"text":"hé\n"}"#).await), &json!({"text": "hé\n"}));
    assert_eq!(output(&hire("lines", "{}").await), &json!({"text": "one\ntwo"}));
    let picture = hire("picture", "{}").await;
    assert_eq!(output(&picture)["text"], "a dot");
    let blocks = r#"[{"type":"text","text":"a dot"},{"type":"image","data":"AA==","mimeType":"image/png","n":1.50}]"#;
    assert!(picture["raw"].as_str().is_some_and(|raw| raw.contains(blocks)), "{picture}");

    for number in ["1.50", "100000000000000000000000001", "-0.10", "1e-7"] {
        let job = hire("digits", &format!(r#"{{"value":{number}}}"#)).await;
        output(&job);
        let raw = job["raw"].as_str().expect("text");
        let result = &raw[raw.find("\"result\"").expect("a result")..];
        assert_eq!(digits(result, "value"), number, "{result}");
    }

    let job = hire("fail", "{}").await;
    let (cause, text) = failure(&job);
    assert_eq!((cause, text.chars().count()), ("execution", 2_000), "{job}");
    assert!(text.starts_with("it broke: xx"), "{text}");
    let job = hire("picky", "{}").await;
    assert_eq!(failure(&job), ("policy", "the text must rhyme"));
    let job = hire("broken", "{}").await;
    assert_eq!(failure(&job), ("execution", "a wheel came off (-32603)"));
    for tool in ["wrong", "unstructured"] {
        let job = hire(tool, "{}").await;
        let (cause, text) = failure(&job);
        assert_eq!(cause, "execution");
        assert!(text.contains("schema"), "{text}");
    }
    let job = hire("ask", "{}").await;
    let (cause, text) = failure(&job);
    assert!(cause == "execution" && text.contains("asks for input"), "{text}");

    let job = hire("big", r#"{"bytes":1048576}"#).await;
    let (cause, text) = failure(&job);
    assert!(cause == "execution" && text.contains("longer than 983040 bytes"), "{text}");
    assert_eq!(
        output(&hire("big", r#"{"bytes":900000}"#).await)["text"].as_str().map(str::len),
        Some(900_000)
    );

    // The tool is not called with what its schema refuses, and no score suffers.
    let before = agent(&hub, &runtime).await["score"].clone();
    let job = hire("echo", r#"{"text":5}"#).await;
    let (cause, text) = failure(&job);
    assert!(cause == "policy" && text.contains("text"), "{text}");
    assert_eq!(agent(&hub, &runtime).await["score"], before);
}

#[tokio::test]
async fn every_answer_of_a_tool_of_the_new_era_has_its_outcome() {
    every_answer("new").await;
}

#[tokio::test]
async fn every_answer_of_a_tool_of_the_old_era_has_its_outcome() {
    every_answer("old").await;
}

#[tokio::test]
async fn a_skill_has_the_name_the_schemas_and_the_description_of_its_tool() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let flags = ["--price", "echo=0.07", "--tools", "echo,digits"];
    let runtime = sold(&place, &hub, "", &flags).await;
    let view = agent(&hub, &runtime).await;
    let skill = |name: &str| {
        let all = view["skills"].as_array().expect("skills");
        all.iter().find(|skill| skill["name"] == name).expect("a skill").clone()
    };
    let text =
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let value = json!({"type": "object", "properties": {"value": {"type": "number"}}, "required": ["value"]});
    let textual = json!({"type": "object", "required": ["text"],
        "properties": {"text": {"type": "string"}, "content": {"type": "array"}}});
    let (echo, digits) = (skill("echo"), skill("digits"));
    assert_eq!((&echo["input_schema"], &echo["output_schema"]), (&text, &textual));
    assert_eq!((&digits["input_schema"], &digits["output_schema"]), (&value, &value));
    assert_eq!(
        (echo["price"].to_string(), digits["price"].to_string()),
        ("0.07".into(), "0.05".into())
    );
    let description = echo["description"].as_str().expect("a description");
    assert_eq!(description.chars().count(), 1_000);
    assert!(description.starts_with("Says it again. xxx"), "{description}");
    // The agent is named after the server.
    assert_eq!(view["name"], "fixture");
    let capabilities: Vec<Value> = super::kit::lines(&place, "capabilities")
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let offered = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    assert!(!capabilities.is_empty() && capabilities.iter().all(|all| *all == offered));
}

#[tokio::test]
async fn a_task_is_asked_for_until_it_has_ended() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let flags = ["--tools", "later,asking_task", "--timeout", "5s"];
    let _runtime = sold(&place, &hub, "", &flags).await;
    let boss = boss(&hub).await;
    let job = hire(&hub, &boss, "later", r#"{"ms":700}"#).await;
    assert_eq!(output(&job), &json!({"text": "thought"}));
    // What the task does was told.
    assert_eq!(job["progress"]["text"], "thinking", "{job}");
    let job = hire(&hub, &boss, "asking_task", "{}").await;
    let (_, text) = failure(&job);
    assert!(text.contains("asks for input"), "{text}");
    assert_eq!(super::kit::lines(&place, "cancelled").len(), 1, "the task is cancelled");
}

#[tokio::test]
async fn progress_of_a_tool_reaches_its_requester() {
    for era in ["new", "old"] {
        let (hub, place) = (TestHub::open(&[]).await, place());
        let _runtime = sold(&place, &hub, &format!("--era {era}"), &["--tools", "slow"]).await;
        let boss = boss(&hub).await;
        let job = hire(&hub, &boss, "slow", r#"{"ms":2000,"progress":true}"#).await;
        output(&job);
        let text = job["progress"]["text"].as_str().unwrap_or_default();
        assert!(text.starts_with("step "), "{era}: {job}");
    }
}

#[tokio::test]
async fn a_command_is_split_as_by_a_shell_and_run_by_none() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    std::fs::rename(place.path("fixture.py"), place.path("a fixture; touch x.py"))
        .expect("renamed");
    let command = fixture("").replace("fixture.py", "'a fixture; touch x.py'");
    let flags = ["--mcp", &command, "--price", "0", "--name", "shell less"];
    let runtime = place.at_work(&hub, "said", &flags).await;
    assert_eq!(agent(&hub, &runtime).await["name"], "shell less");
    assert!(!place.path("x.py").exists());
}
