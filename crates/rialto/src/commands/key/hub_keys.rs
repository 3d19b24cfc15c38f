//! `rialto key ls`, `issue` and `revoke`: the keys with which an agent calls the hub.

use rialto_client::CallError;
use rialto_core::money::Credits;
use serde::Serialize;

use crate::commands::v1::{Amount, KeyView};
use crate::commands::{
    Answer, CliError, CliResult, Column, Exit, HubOptions, Table, escape_line, output,
};

#[derive(clap::Args)]
pub struct IssueArgs {
    /// What the key is for, as it is shown by `rialto key ls`
    #[arg(long)]
    label: String,
    /// Most credits for one job or transfer [default: no limit]
    #[arg(long, value_name = "CREDITS", value_parser = parse_limit)]
    per_job: Option<Credits>,
    /// Most credits for one day (UTC) [default: no limit]
    #[arg(long, value_name = "CREDITS", value_parser = parse_limit)]
    per_day: Option<Credits>,
    /// Do not let the key transfer credits
    #[arg(long)]
    no_transfers: bool,
    #[command(flatten)]
    pub options: HubOptions,
}

#[derive(clap::Args)]
pub struct RevokeArgs {
    /// Id of the key in `rialto key ls`
    id: u64,
    /// Revoke it even if it is the key of this command
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    pub options: HubOptions,
}

/// `POST /v1/keys`.
#[derive(Serialize)]
struct KeyRequest<'a> {
    label: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_job: Option<Amount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_day: Option<Amount>,
    transfers: bool,
}

fn parse_limit(text: &str) -> Result<Credits, String> {
    Credits::parse(text, 6).map_err(|_| "write an amount like 1.00".to_owned())
}

pub async fn list(options: &HubOptions) -> CliResult {
    let (api, _) = options.client_with_key()?;
    let keys = api.keys().await?;
    if options.json {
        return Ok(output::print_list(keys.iter().map(|key| key.text.as_str())));
    }
    Ok(table(&keys)?.print())
}

fn table(keys: &[Answer<KeyView>]) -> Result<Table, CallError> {
    let mut table = Table::new([
        Column::number("ID"),
        Column::flexible("LABEL"),
        Column::number("PER JOB"),
        Column::number("PER DAY"),
        Column::number("TODAY"),
        Column::text("TRANSFERS"),
        Column::time("USED"),
        Column::time("EXPIRES").droppable(1),
    ]);
    for key in keys {
        let key = key.parse()?;
        let label = key.label.as_deref().unwrap_or_default();
        let label = if key.is_current { format!("{label} (this key)") } else { label.to_owned() };
        let limit = |limit: Option<&str>| limit.unwrap_or_default().to_owned();
        table.push_row([
            key.id.to_string(),
            label.trim().to_owned(),
            limit(key.per_job()),
            limit(key.per_day()),
            key.spent_today.get().to_owned(),
            if key.transfers { "yes" } else { "no" }.to_owned(),
            key.last_used.unwrap_or_default(),
            key.valid_until.unwrap_or_default(),
        ]);
    }
    Ok(table)
}

/// Issues a key of the caller's agent. It is printed alone, so that it can be sent to a file.
pub async fn issue(args: &IssueArgs) -> CliResult {
    let (api, _) = args.options.client_or_register().await?;
    let request = KeyRequest {
        label: &args.label,
        per_job: args.per_job.map(Amount),
        per_day: args.per_day.map(Amount),
        transfers: !args.no_transfers,
    };
    let answer = api.make_key(&request).await?;
    if args.options.json {
        return Ok(output::print_data(&answer.text));
    }
    let made = answer.parse()?;
    let printed = output::print_data(&made.key);
    let id = made.id;
    output::print_stderr(&format!(
        "key {id} is shown only this once; `rialto key revoke {id}` revokes it"
    ));
    Ok(printed)
}

pub async fn revoke(args: &RevokeArgs) -> CliResult {
    let RevokeArgs { id, force, options } = args;
    let (api, _) = options.client_with_key()?;
    let mut label = None;
    for key in api.keys().await? {
        let key = key.parse()?;
        if key.id != *id {
            continue;
        }
        if key.is_current && !force {
            let next = "`rialto agent rekey` replaces it; --force revokes it without another";
            return Err(CliError::conflict(format!("{id} is the key of this command"), next));
        }
        label = key.label;
    }
    api.revoke_key(&id.to_string()).await.map_err(|error| {
        CliError::from(error).with_hint_on(Exit::NotFound, "`rialto key ls` lists your keys")
    })?;
    let document = serde_json::json!({"revoked": id, "label": label});
    Ok(output::print(options.json, document, || {
        let label = label.map(|label| format!(" ({})", escape_line(&label))).unwrap_or_default();
        format!("key {id}{label} is revoked")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::table::assert_fits;

    #[test]
    fn keys_fit_a_terminal() {
        let text = r#"{"id":123456,"label":"rialto mcp-openai-agents of the laptop","per_job":100.00,
            "per_day":1000.00,"transfers":false,"spent_today":999.999999,"left_today":0.000001,
            "issued_at":"2026-02-11T14:15:09.123Z","last_used":"2026-02-11T14:15:00.000Z","current":true}"#;
        let table = table(&[Answer::new(text.to_owned())]).expect("a table");
        assert_fits(&table, "ID LABEL PER JOB PER DAY TODAY TRANSFERS USED");
    }
}
