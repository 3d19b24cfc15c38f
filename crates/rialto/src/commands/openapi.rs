//! `rialto openapi`: prints the API document without a hub.

use super::output;
use crate::exit::Exit;

pub fn run() -> Exit {
    let document = rialto_hub::app::openapi::openapi_document();
    // A closed pipe is not an error: the reader has seen enough.
    let _ = output::print_line(&serde_json::to_string_pretty(&document).unwrap_or_default());
    Exit::Ok
}
