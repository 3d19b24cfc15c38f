//! `rialto openapi`: the API document without a hub.

use crate::exit::Exit;

pub fn run() -> Exit {
    let document = rialto_hub::app::openapi::document();
    println!("{}", serde_json::to_string_pretty(&document).unwrap_or_default());
    Exit::Ok
}
