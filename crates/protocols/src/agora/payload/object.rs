//! A JSON object written member by member. Values are text, numbers, or JSON that is known to be
//! some.

use rialto_core::money::Credits;

use crate::kit::jcs;

/// An object that is not finished.
#[derive(Debug)]
pub struct Object(String);

impl Object {
    /// An object without members.
    pub fn new() -> Self {
        Self("{".to_owned())
    }

    /// The same with a string.
    pub fn text(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        jcs::string(&mut self.0, value);
        self
    }

    /// The same with JSON that stands as it is.
    pub fn raw(mut self, name: &str, json: &str) -> Self {
        self.name(name);
        self.0.push_str(json);
        self
    }

    /// The same with a whole number.
    pub fn whole(self, name: &str, value: i64) -> Self {
        self.raw(name, &value.to_string())
    }

    /// The same with an amount, to its last decimal.
    pub fn amount(self, name: &str, value: Credits) -> Self {
        self.raw(name, &value.text(0))
    }

    /// The same with `true` or `false`.
    pub fn flag(self, name: &str, value: bool) -> Self {
        self.raw(name, if value { "true" } else { "false" })
    }

    /// The same with a string, if there is one.
    pub fn maybe_text(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(name, value),
            None => self,
        }
    }

    /// The same with JSON, if there is some.
    pub fn maybe_raw(self, name: &str, json: Option<&str>) -> Self {
        match json {
            Some(json) => self.raw(name, json),
            None => self,
        }
    }

    /// The same with a whole number, if there is one.
    pub fn maybe_whole(self, name: &str, value: Option<i64>) -> Self {
        match value {
            Some(value) => self.whole(name, value),
            None => self,
        }
    }

    /// The same with an amount, if there is one.
    pub fn maybe_amount(self, name: &str, value: Option<Credits>) -> Self {
        match value {
            Some(value) => self.amount(name, value),
            None => self,
        }
    }

    /// The object's text.
    pub fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        jcs::string(&mut self.0, name);
        self.0.push(':');
    }
}

impl Default for Object {
    fn default() -> Self {
        Self::new()
    }
}
