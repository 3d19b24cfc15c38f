//! Names of contexts and of their agents, which are also directory names.

use super::super::error::CliError;

/// The maximum length.
const CHARACTERS_MAX: usize = 64;

/// Whether a name is valid.
pub fn is_valid(name: &str) -> bool {
    let fits =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    (1..=CHARACTERS_MAX).contains(&name.len()) && name.bytes().all(fits)
}

/// The same, with an error for names from the command line.
pub fn check(name: &str) -> Result<(), CliError> {
    match is_valid(name) {
        true => Ok(()),
        false => {
            let message = format!("{name:?} is not a valid name");
            Err(CliError::usage(message, "write 1 to 64 of a-z, 0-9, - and _"))
        }
    }
}

/// Turns other text, such as a host, into a valid name.
pub fn slug(text: &str) -> String {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let plain = text.to_ascii_lowercase().replace(|c: char| !fine(c), "-");
    match plain.trim_matches('-') {
        "" => "hub".to_owned(),
        plain => plain.chars().take(CHARACTERS_MAX).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_lead_out_of_their_directory() {
        for fine in ["default", "a", "0", "my-hub_2", &"x".repeat(64)] {
            assert!(is_valid(fine), "{fine}");
        }
        for not in ["", ".", "..", "a/b", "A", "ä", "a b", "a\n", &"x".repeat(65)] {
            assert!(check(not).is_err(), "{not:?}");
        }
        assert_eq!(slug("Hub.Example:7425"), "hub-example-7425");
        assert_eq!(slug("[::1]:7425"), "1--7425");
        assert_eq!(slug("[::]"), "hub");
    }
}
