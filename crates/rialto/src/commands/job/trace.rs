//! `rialto job trace`: shows how a job and each of its fields was translated.

use super::{HINT_OWN, describe_money, job_error};
use crate::commands::v1::{Evidence, Party, Trace};
use crate::commands::{CliResult, HubOptions, escape_line, notes, output};

pub async fn run(options: &HubOptions, id: &str) -> CliResult {
    let (api, _) = options.client_from(&["RIALTO_KEY", "RIALTO_OPERATOR_KEY"])?;
    let answer = api.trace(id).await.map_err(|error| job_error(error, HINT_OWN))?;
    output::print_answer(options.json, &answer, describe)
}

/// A trace as text.
fn describe(trace: Trace) -> String {
    let party = |party: &Party| format!("{} {}", party.protocol, escape_line(&party.id));
    let money = &trace.money;
    let mut lines = vec![
        format!("job        {} {} ({})", trace.job, trace.state, escape_line(&trace.skill)),
        format!("requester  {}", party(&trace.requester)),
        format!("worker     {}", trace.worker.as_ref().map_or("none".to_owned(), party)),
        format!("money      {}", describe_money([&money.budget, &money.price, &money.paid])),
    ];
    for hop in &trace.hops {
        lines.push(format!("\n{}  {} → {}  {}", hop.what, hop.from, hop.to, hop.at));
        let messages = [("asked", &hop.asked), ("given", &hop.given)];
        let messages = messages.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
        lines.extend(messages.map(|(name, text)| format!("  {name}  {}", escape_line(text))));
        lines.push(notes::table(&hop.notes));
    }
    for Evidence { protocol, of, text } in &trace.evidence {
        lines.push(format!("\nevidence  {protocol} {of}\n  {}", escape_line(text)));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::v1::parse_json;

    #[test]
    fn a_trace_is_told_with_the_digits_it_came_with() {
        let answer = r#"{"job":"j","state":"completed","skill":"sum","requester":{"protocol":"registry","id":"a"},
            "worker":null,"money":{"budget":1.50,"price":null,"paid":0.10},"hops":[{"what":"request","from":"registry",
            "to":"agora","at":"t","notes":[{"field":"/x","part":"extra","fate":"kept","value":1}],"asked":"{\n}","given":"{}"}],
            "evidence":[{"protocol":"agora","of":"request","text":"{}"}]}"#;
        let text = describe(parse_json(answer).expect("a trace"));
        for line in [
            "job        j completed (sum)",
            "requester  registry a",
            "worker     none",
            "money      budget 1.50, paid 0.10",
            "request  registry → agora  t",
            "  asked  {\\n}",
            "  /x  kept  1",
            "evidence  agora request",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
        }
    }
}
