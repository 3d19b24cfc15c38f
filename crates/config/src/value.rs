//! The `Setting` trait, and its implementations for standard types.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;
use toml::de::DeValue;

/// A value, and why it is invalid for a setting.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidValue(pub String);

/// A type a setting can have.
pub trait Setting: Sized {
    /// A valid value as it is written on a command line.
    const EXAMPLE: &'static str;

    /// What a valid value is; follows the word "expected".
    fn expected() -> String;

    /// Parses the text of a flag, an environment variable or a default.
    fn from_text(text: &str) -> Result<Self, InvalidValue>;

    /// Parses a value of a file: text, unless the type has its own form in TOML.
    fn from_toml(value: &DeValue<'_>) -> Result<Self, InvalidValue> {
        let text = value.as_str().ok_or_else(|| InvalidValue::wrong_type(value))?;
        Self::from_text(text)
    }

    /// The value as it is written in a file.
    fn to_toml(&self) -> String;
}

impl InvalidValue {
    /// `found` is invalid, because it `is_wrong`.
    pub fn new(found: impl Display, is_wrong: impl Display) -> Self {
        Self(format!("`{found}` {is_wrong}"))
    }

    /// The value in the file has the wrong type.
    pub fn wrong_type(value: &DeValue<'_>) -> Self {
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
pub fn quote_toml(text: impl Display) -> String {
    toml::Value::String(text.to_string()).to_string()
}

impl Setting for bool {
    const EXAMPLE: &'static str = "true";

    fn expected() -> String {
        "true or false".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        text.parse().map_err(|_| InvalidValue::new(text, "is neither true nor false"))
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, InvalidValue> {
        value.as_bool().ok_or_else(|| InvalidValue::wrong_type(value))
    }

    fn to_toml(&self) -> String {
        self.to_string()
    }
}

impl Setting for SocketAddr {
    const EXAMPLE: &'static str = "127.0.0.1:7425";

    fn expected() -> String {
        "an address and a port".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        text.parse().map_err(|_| InvalidValue::new(text, "is not of the form address:port"))
    }

    fn to_toml(&self) -> String {
        quote_toml(self)
    }
}

impl Setting for IpNet {
    const EXAMPLE: &'static str = "10.1.0.0/16";

    fn expected() -> String {
        "a network in CIDR form".to_owned()
    }

    /// A bare address is a network of that one host.
    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(Self::from));
        network
            .map(|network| network.trunc())
            .map_err(|_| InvalidValue::new(text, "is not a network"))
    }

    fn to_toml(&self) -> String {
        quote_toml(self)
    }
}

impl Setting for PathBuf {
    const EXAMPLE: &'static str = "/var/lib/rialto";

    fn expected() -> String {
        "a path".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        if text.is_empty() { Err(InvalidValue::new(text, "is empty")) } else { Ok(text.into()) }
    }

    fn to_toml(&self) -> String {
        quote_toml(self.display())
    }
}

/// Empty text lets a higher layer unset a value of a lower one.
impl<T: Setting> Setting for Option<T> {
    const EXAMPLE: &'static str = T::EXAMPLE;

    fn expected() -> String {
        T::expected()
    }

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        if text.is_empty() { Ok(None) } else { T::from_text(text).map(Some) }
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, InvalidValue> {
        if value.as_str() == Some("") { Ok(None) } else { T::from_toml(value).map(Some) }
    }

    fn to_toml(&self) -> String {
        self.as_ref().map_or_else(|| "unset".to_owned(), T::to_toml)
    }
}

/// In text a list is separated by commas, or written as inline TOML.
impl<T: Setting> Setting for Vec<T> {
    const EXAMPLE: &'static str = T::EXAMPLE;

    fn expected() -> String {
        format!("a list, each item {}", T::expected())
    }

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        match text.trim() {
            "" => Ok(Self::new()),
            list if list.starts_with('[') => parse_inline_toml(list),
            list => list.split(',').map(|item| T::from_text(item.trim())).collect(),
        }
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, InvalidValue> {
        let items = value.as_array().ok_or_else(|| InvalidValue::wrong_type(value))?;
        items.iter().map(|item| T::from_toml(item.get_ref())).collect()
    }

    fn to_toml(&self) -> String {
        format!("[{}]", self.iter().map(T::to_toml).collect::<Vec<_>>().join(", "))
    }
}

/// Parses inline TOML, for lists and tables in the environment.
pub fn parse_inline_toml<T: Setting>(text: &str) -> Result<T, InvalidValue> {
    let value = DeValue::parse(text).map_err(|_| InvalidValue::new(text, "is not valid TOML"))?;
    T::from_toml(value.get_ref())
}
