//! `rialto serve`: a hub to keep.

use std::net::SocketAddr;
use std::path::PathBuf;

use rialto_hub::app::{Hub, Options};
use rialto_hub::config::{Loaded, Posture};
use rialto_hub::shutdown::Shutdown;
use rialto_hub::telemetry;

use super::{complain, runtime, say};
use crate::exit::Exit;

/// Where the operator key comes from when it is not made by the hub.
const OPERATOR_KEY: &str = "RIALTO_OPERATOR_KEY";
/// Where the hub secret comes from when it is not in the data directory.
const HUB_SECRET: &str = "RIALTO_HUB_SECRET";

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto serve\n  rialto serve --listen 0.0.0.0:7425 --data /var/lib/rialto\n  RIALTO_LEDGER__WELCOME_GRANT=10.00 rialto serve --config rialto.toml"
)]
pub struct Args {
    /// Configuration file; ./rialto.toml is read if it is there
    #[arg(long)]
    config: Option<PathBuf>,
    /// Address and port to listen on
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// Data directory
    #[arg(long)]
    data: Option<PathBuf>,
    /// Any other setting, as key=value
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

pub fn run(args: Args) -> Exit {
    let flags = match flags(args.listen, args.data.as_ref(), &args.set) {
        Ok(flags) => flags,
        Err(error) => {
            complain(error);
            return Exit::Usage;
        }
    };
    let loaded = match load(Posture::Serve, args.config.as_deref(), &flags) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    hub(loaded, |hub| {
        let mut told = format!("rialto {} listens on {}", env!("CARGO_PKG_VERSION"), hub.url);
        if let Some(key) = &hub.new_operator_key {
            told.push_str(&format!("\noperator key, shown only now: {key}"));
        }
        // A hub works on, whoever reads what it says.
        let _ = say::line(&told);
    })
}

/// Flags as settings.
pub fn flags(
    listen: Option<SocketAddr>,
    data: Option<&PathBuf>,
    set: &[String],
) -> Result<Vec<(String, String)>, String> {
    let mut flags = Vec::new();
    flags.extend(listen.map(|address| ("http.listen".to_owned(), address.to_string())));
    flags.extend(data.map(|dir| ("data.dir".to_owned(), dir.display().to_string())));
    for pair in set {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(format!(
                "--set takes key=value, like --set limits.writes_per_minute=0, not {pair}"
            ));
        };
        flags.push((key.to_owned(), value.to_owned()));
    }
    Ok(flags)
}

/// The configuration, with logs started; problems are told.
pub fn load(
    posture: Posture,
    file: Option<&std::path::Path>,
    flags: &[(String, String)],
) -> Result<Loaded, Exit> {
    let flags: Vec<(&str, String)> =
        flags.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    let loaded = Loaded::load(posture, file, std::env::vars(), &flags).map_err(|problem| {
        complain(problem);
        Exit::Usage
    })?;
    let filter = std::env::var(telemetry::FILTER_VARIABLE).ok();
    telemetry::start(&loaded.config.log, filter.as_deref()).map_err(|problem| {
        complain(problem);
        Exit::Usage
    })?;
    Ok(loaded)
}

/// Runs a hub until it is told to stop; `greet` says that it is there.
pub fn hub(loaded: Loaded, greet: impl FnOnce(&Hub)) -> Exit {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return complain(error),
    };
    let options = Options {
        operator_key: std::env::var(OPERATOR_KEY).ok(),
        hub_secret: std::env::var(HUB_SECRET).ok(),
        ..Options::default()
    };
    let ended = runtime.block_on(async {
        let shutdown = Shutdown::on_signals().map_err(|error| error.to_string())?;
        let hub = Hub::start(&loaded.config, options, shutdown.clone()).await;
        let hub = hub.map_err(|error| error.to_string())?;
        greet(&hub);
        hub.run(&shutdown).await
    });
    // Streams and pushes that still run have nothing left to say.
    runtime.shutdown_background();
    match ended {
        Ok(()) => Exit::Ok,
        Err(error) => complain(error),
    }
}
