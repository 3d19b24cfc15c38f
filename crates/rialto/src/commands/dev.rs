//! `rialto dev`: a temporary hub for development, with two demo agents and hints what to do next.

use std::net::SocketAddr;
use std::path::PathBuf;

use rialto_hub::config::Profile;

use super::context::DEFAULT_HUB;
use super::{demo_agents, history_printer, init, output, print_error, serve};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto dev\n  rialto dev --listen 127.0.0.1:0 --data ./scratch\n  rialto dev --quiet\n\nPrints one line per event until it is stopped."
)]
pub struct Args {
    /// Address and port to listen on
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// Public URL of the hub, if it differs from that address
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Do not print events
    #[arg(long, short)]
    quiet: bool,
    /// Keep the data in this directory instead of removing it
    #[arg(long)]
    data: Option<PathBuf>,
    /// Other settings, as key=value
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

pub fn run(args: Args) -> Exit {
    // Removed when the command ends, unless --data is given.
    let scratch = match tempfile::Builder::new().prefix("rialto-dev-").tempdir() {
        Ok(scratch) => scratch,
        Err(error) => return print_error(error),
    };
    let own = args.data.is_none().then(|| scratch.path().to_owned());
    let address = (args.listen, args.public_url);
    let flags = match serve::settings_from_flags(address, args.data.as_ref(), &args.set) {
        Ok(flags) => flags,
        Err(error) => {
            print_error(error);
            return Exit::Usage;
        }
    };
    let data = args.data.or_else(|| own.clone()).unwrap_or_default();
    let source = serve::ConfigSource { posture: Profile::Dev, file: None, flags, scratch: own };
    serve::run_hub(&source, |hub| {
        let (url, address) = (hub.url.clone(), hub.address);
        // The hub keeps running if standard output is closed.
        let _ = output::print_line(&greeting(&url, hub.new_operator_key.as_deref()));
        if !args.quiet {
            tokio::spawn(history_printer::print_history(hub.engine.clone()));
        }
        tokio::spawn(demo_agents::run_demo_agents(format!("http://{address}"), data.clone()));
    })
}

/// The addresses, and what to do next.
fn greeting(url: &str, new_operator_key: Option<&str>) -> String {
    let protocols: Vec<_> = rialto_protocols::ALL
        .iter()
        .map(|adapter| format!("{0} at {url}/{0}", adapter.id()))
        .collect();
    let mut lines = vec![
        format!("rialto {} dev hub at {url}", env!("CARGO_PKG_VERSION")),
        format!("protocols: {}, and at the root", protocols.join(", ")),
        format!("Rialto API: {url}/v1"),
        match new_operator_key {
            Some(key) => format!("operator key (shown only once): {key}"),
            None => "operator key: the one shown at the first start, or yours".to_owned(),
        },
        "two demo agents are running: word-counter (count_words, 0.05) and echo (echo, free)"
            .to_owned(),
        format!("\ntry:\n  curl '{url}/discover?skill=count_words'"),
        format!(
            "  curl -d '{{\"agent_name\":\"me\",\"owner_id\":\"me\",\"skills\":[]}}' {url}/registry/register"
        ),
        format!(
            "  curl -d '{{\"orchestrator_id\":\"guest\",\"skill_name\":\"echo\",\"input_data\":{{\"hello\":\"world\"}},\"budget\":0}}' {url}/jobs"
        ),
        "\nrun your own agent, in an empty folder:".to_owned(),
    ];
    if url != DEFAULT_HUB {
        lines.push(format!("  export RIALTO_HUB={url}"));
    }
    lines.extend(
        ["rialto init agent --lang python", "rialto agent run", init::POST_JOB_EXAMPLE]
            .map(|line| format!("  {line}")),
    );
    lines.join("\n")
}
