//! Registers an agent of the registry with its skills and prices.

use rialto_client::relay::{Key, WebhookSecret};
use rialto_client::{CallError, Hub, Method};
use rialto_core::money::Credits;
use serde_json::{Value, json};

use super::super::super::auto_register;
use super::super::super::error::CliError;
use super::super::super::hub_options::HubOptions;
use super::super::super::key_file::KeyFile;
use super::{Args, RegisteredAgent};

/// Decimals of a price.
const DECIMALS: usize = 2;

pub async fn register(
    access: &HubOptions,
    args: &Args,
    keys: Option<&KeyFile>,
) -> Result<RegisteredAgent, CliError> {
    let flags = [("--culture", args.culture.is_some()), ("--language", !args.language.is_empty())];
    args.reject_flags(&flags, "relay")?;
    let hub = Hub::new(access.hub_url(keys))?;
    // Names are not unique here: only the key file says which agent to update.
    let known = keys.filter(|_| access.key_file.is_some());
    let hub = known.map_or(hub.clone(), |known| hub.with_key(known.key.reveal()));
    let body = body(args, known.and_then(|known| known.agent_id.as_deref()))?;
    let (_, text) = hub.call_text(Method::POST, "/registry/register", Some(body)).await?;
    read(&text)
}

/// Built as text, so that no price passes through a float.
fn body(args: &Args, agent_id: Option<&str>) -> Result<String, CliError> {
    let skills: Result<Vec<String>, CliError> = args.skill.iter().map(|text| skill(text)).collect();
    let owner = match &args.owner {
        Some(owner) => owner.clone(),
        None => auto_register::generate_owner_name(&args.name)?,
    };
    let mut members = vec![
        ("agent_name", json!(args.name).to_string()),
        ("owner_id", json!(owner).to_string()),
        ("skills", format!("[{}]", skills?.join(","))),
    ];
    let texts = [("api_endpoint", args.endpoint.as_deref()), ("agent_id", agent_id)];
    members.extend(
        texts.into_iter().filter_map(|(name, text)| Some((name, json!(text?).to_string()))),
    );
    let members: Vec<String> =
        members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    Ok(format!("{{{}}}", members.join(",")))
}

fn skill(text: &str) -> Result<String, CliError> {
    let wrong = |why: String| {
        CliError::usage(format!("--skill {text} {why}"), "write it like --skill sum=0.05")
    };
    let (name, price) = text.rsplit_once('=').ok_or_else(|| wrong("has no price".to_owned()))?;
    let price = Credits::parse(price, DECIMALS)
        .map_err(|why| wrong(format!("has a price that {why}")))?
        .to_text(DECIMALS);
    Ok(format!(r#"{{"skill_name":{},"cost_per_call":{price}}}"#, json!(name)))
}

fn read(text: &str) -> Result<RegisteredAgent, CliError> {
    let unreadable = |why: String| CliError::from(CallError::Unreadable(why));
    let answer: Value =
        serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
    let member = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
    let id = member("agent_id").ok_or_else(|| unreadable("no agent_id".to_owned()))?;
    let key = member("api_key").ok_or_else(|| unreadable("no api_key".to_owned()))?;
    Ok(RegisteredAgent {
        document: json!({"agent_id": id}),
        id,
        key: Key::new(key),
        webhook_secret: member("webhook_secret").as_deref().and_then(WebhookSecret::read),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_keeps_its_digits_and_a_skill_may_have_any_name() {
        assert_eq!(skill("sum=0.1").expect("fine"), r#"{"skill_name":"sum","cost_per_call":0.10}"#);
        assert_eq!(skill("a=b=0").expect("fine"), r#"{"skill_name":"a=b","cost_per_call":0.00}"#);
        for wrong in ["sum", "sum=", "sum=0.005", "sum=-1", "sum=cheap"] {
            let cli_error = skill(wrong).expect_err(wrong);
            assert!(cli_error.next.is_some_and(|next| next.contains("sum=0.05")));
        }
    }
}
