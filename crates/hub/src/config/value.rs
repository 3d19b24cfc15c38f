//! What makes a type usable as a setting, and the plain types that are.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;
use toml::de::DeValue;

/// A value, and why it is not the one a setting needs.
#[derive(Debug, PartialEq, Eq)]
pub struct Misfit(pub String);

/// A type a setting can have.
pub trait Setting: Sized {
    /// What a value must be, as it follows "expected".
    fn expected() -> String;

    /// A value that fits, as it would be written on a command line.
    fn example() -> &'static str;

    /// Reads what a flag or an environment variable says, and our own defaults.
    fn from_text(text: &str) -> Result<Self, Misfit>;

    /// Reads what a file says: text, unless the type has a spelling of its own in TOML.
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Misfit> {
        let text = value.as_str().ok_or_else(|| Misfit::of_type(value))?;
        Self::from_text(text)
    }

    /// The value as a file would spell it.
    fn to_toml(&self) -> String;
}

impl Misfit {
    /// `found` is not what was wanted, because it `is_wrong`.
    pub fn new(found: impl Display, is_wrong: impl Display) -> Self {
        Self(format!("`{found}` {is_wrong}"))
    }

    /// The file has a value of a type that cannot be meant here.
    pub fn of_type(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Self(format!("`\"{text}\"` is text")),
            DeValue::Integer(number) => Self::new(number, "is a bare number"),
            DeValue::Float(number) => Self::new(number, "is a bare number"),
            DeValue::Boolean(truth) => Self::new(truth, "is a boolean"),
            DeValue::Datetime(moment) => Self::new(moment, "is a date"),
            DeValue::Array(_) => Self("is a list".to_owned()),
            DeValue::Table(_) => Self("is a table".to_owned()),
        }
    }
}

/// Text in the quotes and escapes of TOML.
pub fn quoted(text: impl Display) -> String {
    toml::Value::String(text.to_string()).to_string()
}

impl Setting for bool {
    fn expected() -> String {
        "true or false".to_owned()
    }

    fn example() -> &'static str {
        "true"
    }

    fn from_text(text: &str) -> Result<Self, Misfit> {
        text.parse().map_err(|_| Misfit::new(text, "is neither true nor false"))
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Misfit> {
        value.as_bool().ok_or_else(|| Misfit::of_type(value))
    }

    fn to_toml(&self) -> String {
        self.to_string()
    }
}

impl Setting for SocketAddr {
    fn expected() -> String {
        "an address and a port".to_owned()
    }

    fn example() -> &'static str {
        "127.0.0.1:7425"
    }

    fn from_text(text: &str) -> Result<Self, Misfit> {
        text.parse().map_err(|_| Misfit::new(text, "is not of the form address:port"))
    }

    fn to_toml(&self) -> String {
        quoted(self)
    }
}

impl Setting for IpNet {
    fn expected() -> String {
        "a network in CIDR form".to_owned()
    }

    fn example() -> &'static str {
        "10.1.0.0/16"
    }

    /// A bare address is the network of that one host.
    fn from_text(text: &str) -> Result<Self, Misfit> {
        let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(Self::from));
        network.map(|network| network.trunc()).map_err(|_| Misfit::new(text, "is not a network"))
    }

    fn to_toml(&self) -> String {
        quoted(self)
    }
}

impl Setting for PathBuf {
    fn expected() -> String {
        "a path".to_owned()
    }

    fn example() -> &'static str {
        "/var/lib/rialto"
    }

    fn from_text(text: &str) -> Result<Self, Misfit> {
        if text.is_empty() { Err(Misfit::new(text, "is empty")) } else { Ok(text.into()) }
    }

    fn to_toml(&self) -> String {
        quoted(self.display())
    }
}

/// Empty text is how a higher layer unsets what a lower one has set.
impl<T: Setting> Setting for Option<T> {
    fn expected() -> String {
        T::expected()
    }

    fn example() -> &'static str {
        T::example()
    }

    fn from_text(text: &str) -> Result<Self, Misfit> {
        if text.is_empty() { Ok(None) } else { T::from_text(text).map(Some) }
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Misfit> {
        if value.as_str() == Some("") { Ok(None) } else { T::from_toml(value).map(Some) }
    }

    fn to_toml(&self) -> String {
        self.as_ref().map_or_else(|| "unset".to_owned(), T::to_toml)
    }
}

/// In text a list is separated by commas, or written as in a file.
impl<T: Setting> Setting for Vec<T> {
    fn expected() -> String {
        format!("a list, each item {}", T::expected())
    }

    fn example() -> &'static str {
        T::example()
    }

    fn from_text(text: &str) -> Result<Self, Misfit> {
        match text.trim() {
            "" => Ok(Self::new()),
            list if list.starts_with('[') => from_inline(list),
            list => list.split(',').map(|item| T::from_text(item.trim())).collect(),
        }
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Misfit> {
        let items = value.as_array().ok_or_else(|| Misfit::of_type(value))?;
        items.iter().map(|item| T::from_toml(item.get_ref())).collect()
    }

    fn to_toml(&self) -> String {
        format!("[{}]", self.iter().map(T::to_toml).collect::<Vec<_>>().join(", "))
    }
}

/// Reads text that is written as in a file, for lists and tables in the environment.
pub fn from_inline<T: Setting>(text: &str) -> Result<T, Misfit> {
    let value = DeValue::parse(text).map_err(|_| Misfit::new(text, "is not valid TOML"))?;
    T::from_toml(value.get_ref())
}
