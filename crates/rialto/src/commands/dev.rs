//! `rialto dev`: a throw-away hub, with two agents to try and a word on what to do next.

use std::net::SocketAddr;
use std::path::PathBuf;

use rialto_hub::config::Posture;

use super::context::OWN_HUB;
use super::{complain, demo_agents, init, serve};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto dev\n  rialto dev --listen 127.0.0.1:0 --data ./scratch"
)]
pub struct Args {
    /// Address and port to listen on
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// Keep the data here instead of throwing it away
    #[arg(long)]
    data: Option<PathBuf>,
    /// Any other setting, as key=value
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

pub fn run(args: Args) -> Exit {
    // Removed when the command ends, unless the data is to be kept.
    let scratch = match tempfile::Builder::new().prefix("rialto-dev-").tempdir() {
        Ok(scratch) => scratch,
        Err(error) => return complain(error),
    };
    let data = args.data.unwrap_or_else(|| scratch.path().to_owned());
    let flags = match serve::flags(args.listen, Some(&data), &args.set) {
        Ok(flags) => flags,
        Err(error) => {
            complain(error);
            return Exit::Usage;
        }
    };
    let loaded = match serve::load(Posture::Dev, None, &flags) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    serve::hub(loaded, |hub| {
        let (url, address) = (hub.url.clone(), hub.address);
        println!("rialto {} dev hub at {url}", env!("CARGO_PKG_VERSION"));
        let protocols: Vec<_> = rialto_protocols::ALL
            .iter()
            .map(|face| format!("{0} at {url}/{0}", face.id()))
            .collect();
        println!("protocols: {}, and at the root", protocols.join(", "));
        println!("our own API: {url}/v1");
        match &hub.new_operator_key {
            Some(key) => println!("operator key, shown only now: {key}"),
            None => println!("operator key: the one shown at the first start, or yours"),
        }
        println!("two agents are at work: word-counter (count_words, 0.05) and echo (echo, free)");
        println!("\ntry:\n  curl '{url}/discover?skill=count_words'");
        println!(
            "  curl -d '{{\"agent_name\":\"me\",\"owner_id\":\"me\",\"skills\":[]}}' {url}/registry/register"
        );
        println!(
            "  curl -d '{{\"orchestrator_id\":\"anybody\",\"skill_name\":\"echo\",\"input_data\":{{\"hello\":\"world\"}},\"budget\":0}}' {url}/jobs"
        );
        println!("\nan agent of your own, in an empty folder:");
        if url != OWN_HUB {
            println!("  export RIALTO_HUB={url}");
        }
        println!("  rialto init agent --lang python");
        println!("  rialto agent run");
        println!("  {}", init::POST);
        tokio::spawn(demo_agents::work(format!("http://{address}"), data.clone()));
    })
}
