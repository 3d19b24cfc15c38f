//! `rialto webhook`: lists, tests and resends webhook deliveries, and rotates their secret.

use clap::Subcommand;
use rialto_client::CallError;
use rialto_client::relay::WebhookSecret;
use serde_json::json;

use super::v1::DeliveryView;
use super::{Answer, CliError, CliResult, Column, Exit, HubOptions, KeyFile, Table, output};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    options: HubOptions,
}

#[derive(Subcommand)]
enum Verb {
    /// List pending and failed deliveries, or delivered ones
    Ls {
        /// Maximum number of deliveries
        #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        /// Successful deliveries, newest first
        #[arg(long)]
        delivered: bool,
    },
    /// Send a test delivery to your endpoint
    Test,
    /// Retry a delivery now
    Resend {
        /// Id of the delivery in `rialto webhook ls`
        id: u64,
    },
    /// Get a new secret for signing deliveries
    Rotate,
}

pub fn run(args: &Args) -> Exit {
    let options = &args.options;
    match args.verb {
        Verb::Ls { limit, delivered } => options.run(list(options, limit, delivered)),
        Verb::Test => options.run(test(options)),
        Verb::Resend { id } => options.run(resend(options, id)),
        Verb::Rotate => options.run(rotate(options)),
    }
}

async fn list(options: &HubOptions, limit: u32, delivered: bool) -> CliResult {
    let (api, _) = options.client_with_key()?;
    let deliveries = api.deliveries(delivered.then_some("delivered")).take(limit).await?;
    if options.json {
        return Ok(output::print_list(deliveries.iter().map(|item| item.text.as_str())));
    }
    Ok(table(&deliveries, delivered)?.print())
}

fn table(deliveries: &[Answer<DeliveryView>], delivered: bool) -> Result<Table, CallError> {
    let mut table = Table::new([
        Column::number("ID"),
        Column::text("STATE"),
        Column::text("KIND"),
        Column::number("TRIES"),
        Column::time(if delivered { "ARRIVED" } else { "NEXT" }),
        Column::flexible("ERROR"),
        Column::flexible("URL"),
    ]);
    for delivery in deliveries {
        let DeliveryView { id, state, kind, url, tries, next_try, error, delivered_at } =
            delivery.parse()?;
        let (id, tries) = (id.to_string(), tries.to_string());
        let at = delivered_at.or(next_try).unwrap_or_default();
        table.push_row([id, state, kind, tries, at, error.unwrap_or_default(), url]);
    }
    Ok(table)
}

async fn test(options: &HubOptions) -> CliResult {
    let (api, _) = options.client_with_key()?;
    let answer = api.test_delivery().await.map_err(|error| {
        let next = "`rialto agent register NAME --endpoint URL` registers an agent with an endpoint; `rialto listen` needs none";
        CliError::from(error).with_hint_on(Exit::Conflict, next)
    })?;
    let test = answer.parse()?;
    let status = test.status.map(|status| format!("answered {status}"));
    if options.json {
        output::print_data(&answer.text);
        return Ok(if test.delivered { Exit::Ok } else { Exit::Failed });
    }
    if !test.delivered {
        let why = test.why.or(status).unwrap_or_else(|| "the hub does not say why".to_owned());
        let next = "check that your program is running and that the hub can reach it; `rialto listen` forwards notices to programs it cannot reach";
        return Err(CliError::failed(format!("not delivered: {why}"), next));
    }
    let _ =
        output::print_line(&format!("delivered, {}", status.as_deref().unwrap_or("and accepted")));
    Ok(Exit::Ok)
}

async fn resend(options: &HubOptions, id: u64) -> CliResult {
    let (api, _) = options.client_with_key()?;
    let answer = api.resend(id).await.map_err(|error| {
        let next =
            "`rialto webhook ls` lists pending and failed deliveries, with --delivered successful ones";
        CliError::from(error).with_hint_on(Exit::NotFound, next)
    })?;
    Ok(output::print(options.json, answer.text, || format!("{id} is being resent")))
}

async fn rotate(options: &HubOptions) -> CliResult {
    let (api, keys) = options.client_with_key()?;
    let origin = options.key_origin()?;
    // Overwrites the file with the same key: do not request a secret that cannot be saved.
    origin.save_key(&keys)?;
    let rotated = api.rotate_webhook_secret().await?;
    let secret = rotated.webhook_secret.as_deref().ok_or_else(|| {
        let next = "rotate again; the current secrets stay valid for a day";
        CliError::failed("the hub made a new secret but did not return it", next)
    })?;
    let keys = KeyFile { webhook_secret: WebhookSecret::read(secret), ..keys };
    let saved_in = origin.save_key(&keys).map_err(|error| {
        // The secret cannot be shown again later.
        CliError { next: Some(format!("save the new secret yourself: {secret}")), ..error }
    })?;
    let document = json!({"webhook_secret": secret, "others_until": rotated.others_until, "kept_in": saved_in});
    Ok(output::print(options.json, document, || {
        let saved = saved_in.map(|place| format!("saved in {place}; ")).unwrap_or_default();
        let until = rotated.others_until.as_deref().unwrap_or("now");
        format!("{secret}\n{saved}the old secret is valid until {until}")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::table::assert_fits;

    #[test]
    fn calls_fit_a_terminal() {
        let text = r#"{"id":123456,"state":"given_up","kind":"offers_wanted","url":"https://hooks.example/agents/notify",
            "tries":10,"next_try":"2026-02-11T14:15:09.123Z","error":"the endpoint answered with HTTP 500"}"#;
        let table = table(&[Answer::new(text.to_owned())], false).expect("a table");
        assert_fits(&table, "ID STATE KIND TRIES NEXT ERROR URL");
    }
}
