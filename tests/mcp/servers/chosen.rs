//! Which tools are sold, and what is shown of them first.

use serde_json::{Value, json};

use super::kit::{fixture, place, skills, sold};
use super::runtime::{Place, Runtime};
use crate::kit::TestHub;

/// The tools as they were shown.
fn shown(runtime: &Runtime) -> Value {
    let events = runtime.events();
    let at = |kind: &str| events.iter().position(|event| event["event"] == kind);
    let tools = at("tools").expect("the tools are shown");
    assert!(at("at_work").is_none_or(|work| tools < work), "first");
    events[tools].clone()
}

fn names(tools: &Value) -> Vec<&str> {
    let all = tools.as_array().expect("tools").iter();
    all.map(|tool| tool["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn tools_prices_and_hints_are_shown_first() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let runtime = sold(&place, &hub, "", &["--price", "append=0.10"]).await;
    let shown = shown(&runtime);
    let tool = |name: &str| {
        let all = shown["tools"].as_array().expect("tools");
        all.iter().find(|tool| tool["name"] == name).expect("it is sold").clone()
    };
    let (echo, append) = (tool("echo"), tool("append"));
    assert_eq!((&echo["price"], &append["price"]), (&json!("0.05"), &json!("0.10")));
    assert_eq!(echo["hints"]["readOnlyHint"], true);
    assert_eq!(append["hints"]["destructiveHint"], true);
    assert_eq!(append["hints"]["openWorldHint"], Value::Null);
    assert_eq!((&shown["era"], &shown["not_sold"]), (&json!("new"), &json!([])));
    let left_out = shown["left_out"].to_string();
    assert!(left_out.contains("unsellable") && left_out.contains("pattern"), "{left_out}");
    // All pages of the list were read.
    assert_eq!(names(&shown["tools"]).len(), 21, "{shown}");
    assert_eq!(skills(&hub, &runtime).await.len(), 21);
}

#[tokio::test]
async fn people_read_the_same_as_lines() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let mut command = place.rialto();
    command.args(["agent", "run", "--hub", &hub.url, "--mcp", &fixture(""), "--price", "0.05"]);
    command.args(["--tools", "echo,append,nothing"]);
    let ran = crate::kit::output(&mut command).expect("it runs");
    let text = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{text}");
    assert!(text.contains("  echo  0.05  read-only  Says it again."), "{text}");
    assert!(text.contains("  append  0.05  writes, destructive  Writes a line"), "{text}");
    assert!(text.contains("the server has no tool nothing"), "{text}");
    assert!(text.contains("its tools are echo, digits"), "{text}");
}

#[tokio::test]
async fn patterns_choose_tools() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    let runtime = sold(&place, &hub, "", &["--tools", "p*t,echo"]).await;
    assert_eq!(skills(&hub, &runtime).await, ["echo", "put"]);
}

/// Runs an agent for a hub beyond loopback, which cannot be reached, and returns what it shows.
async fn for_a_hub_elsewhere(place: &Place, flags: &[&str]) -> Runtime {
    let command = fixture("--only echo,append");
    let arguments =
        [&["--hub", "http://192.0.2.1:7425", "--mcp", &command, "--price", "0.05"], flags].concat();
    let runtime = place.run("said", &arguments);
    crate::kit::eventually(async || runtime.said("tools").is_some()).await;
    runtime
}

#[tokio::test]
async fn elsewhere_only_tools_that_say_they_change_nothing_are_sold_unasked() {
    let at = place();
    let runtime = for_a_hub_elsewhere(&at, &[]).await;
    let tools = shown(&runtime);
    assert_eq!((names(&tools["tools"]), names(&tools["not_sold"])), (vec!["echo"], vec!["append"]));
    for flags in [vec!["--tools", "echo,append"], vec!["--all-tools"]] {
        let at = place();
        let runtime = for_a_hub_elsewhere(&at, &flags).await;
        let tools = shown(&runtime);
        assert_eq!(names(&tools["tools"]), ["echo", "append"], "{flags:?}");
    }
}

#[tokio::test]
async fn elsewhere_a_server_that_only_writes_needs_to_be_named() {
    let at = place();
    let command = fixture("--only append");
    let flags = ["--hub", "http://192.0.2.1:7425", "--mcp", &command, "--price", "0.05"];
    let mut runtime = at.run("said", &flags);
    assert_eq!(runtime.ended().await.code(), Some(2));
    let said = at.text("said");
    assert!(said.contains("--tools") && said.contains("--all-tools"), "{said}");
}

#[tokio::test]
async fn a_file_says_the_same_as_flags() {
    let (hub, place) = (TestHub::open(&[]).await, place());
    std::fs::create_dir(place.path("seller")).expect("made");
    std::fs::rename(place.path("fixture.py"), place.path("seller/fixture.py")).expect("moved");
    let file = "name = \"seller\"\nconcurrency = 2\n\n[mcp]\nserver = \"python3 fixture.py --era old\"\nprice = \"0.05\"\nprices = { echo = \"0.07\" }\ntools = [\"echo\", \"d*\"]\ntimeout = \"20s\"\n";
    place.file("seller/agent.toml", file);
    let runtime = place.at_work(&hub, "said", &["--file", "seller/agent.toml"]).await;
    assert_eq!(skills(&hub, &runtime).await, ["echo", "digits", "die"]);
    let view = super::kit::agent(&hub, &runtime).await;
    assert_eq!(
        (&view["name"], view["skills"][0]["price"].to_string()),
        (&json!("seller"), "0.07".to_owned())
    );
    assert!(place.path("seller/.rialto").exists(), "its key is beside its file");
}

#[tokio::test]
async fn what_cannot_be_sold_is_an_error_with_a_way_out() {
    let place = place();
    let command = fixture("--only echo");
    for (flags, why) in [
        (vec!["--mcp", &command], "--price echo=0.05"),
        (vec!["--mcp", &command, "--price", "cheap"], "write the price like 0.05"),
        (vec!["--mcp", &command, "--price", "0.05", "--price", "0.06"], "has two prices"),
        (
            vec!["--mcp", &command, "--price", "0.05", "--price", "other=1"],
            "the server has no tool other",
        ),
        (vec!["--mcp", "python3 'x", "--price", "0"], "a quote ' is not closed"),
        (
            vec!["--mcp", &command, "--price", "0", "--mcp-header", "A: b"],
            "a command gets no header A",
        ),
        (
            vec![
                "--mcp",
                "http://127.0.0.1:1/",
                "--price",
                "0",
                "--mcp-header",
                "Authorization: Bearer x",
            ],
            "is a credential",
        ),
        (
            vec![
                "--mcp",
                "http://127.0.0.1:1/",
                "--price",
                "0",
                "--mcp-header",
                "X-A: env:RIALTO_KEY",
            ],
            "must not pass on RIALTO_KEY",
        ),
        (vec!["--mcp", &command, "--price", "0", "--env", "A"], "cannot be used with"),
        (vec!["--price", "0.05"], "required"),
        (vec!["--tools", "a"], "--mcp"),
    ] {
        let mut line = place.rialto();
        line.args(["agent", "run", "--hub", "http://127.0.0.1:1"]).args(&flags);
        let ran = crate::kit::output(line.env("RIALTO_KEY", "rk_x")).expect("it runs");
        let text = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{flags:?}: {text}");
        assert!(text.contains(why), "{flags:?}: {text}");
    }
}
