//! `rialto openapi` and `rialto completions`: print the API document and shell completions.

use clap_complete::Shell;

use super::{Exit, output};

#[derive(clap::Args)]
pub struct CompletionsArgs {
    /// Shell to print completions for
    shell: Shell,
}

pub fn print_completions(args: &CompletionsArgs) -> Exit {
    let mut line = super::command();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut line, "rialto", &mut script);
    // A closed pipe is not an error: the reader has seen enough.
    let _ = output::print_text(&String::from_utf8_lossy(&script));
    Exit::Ok
}

/// Prints the API document, without a hub.
pub fn print_openapi() -> Exit {
    let document = rialto_hub::app::openapi::openapi_document();
    let document = serde_json::to_string_pretty(&document).unwrap_or_default();
    output::print_data(document)
}
