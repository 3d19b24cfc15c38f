//! Collects the values given for each key, lowest layer first, and resolves each key.

use toml::de::{DeTable, DeValue};

use crate::error::ConfigError;
use crate::file::ConfigFile;
use crate::origin::{Origin, key_of_variable};
use crate::value::{InvalidValue, Setting};
use crate::{EffectiveSetting, Profile, suggest};

/// The values that were given, and the settings that are already resolved.
pub struct Layers<'a> {
    profile: Profile,
    given: Vec<GivenValue<'a>>,
    rows: Vec<EffectiveSetting>,
    errors: Vec<ConfigError>,
    /// Errors of values that are valid alone and not together.
    conflicts: Vec<ConfigError>,
}

/// The default of a setting, written like the value of an environment variable.
#[derive(Clone, Copy, Debug)]
pub struct Defaults<'d> {
    serve: &'d str,
    /// The default of `rialto dev` where that differs.
    dev: Option<&'d str>,
}

impl<'d> From<&'d str> for Defaults<'d> {
    fn from(serve: &'d str) -> Self {
        Self { serve, dev: None }
    }
}

/// The default of `rialto serve`, and that of `rialto dev`.
impl<'d> From<(&'d str, &'d str)> for Defaults<'d> {
    fn from((serve, dev): (&'d str, &'d str)) -> Self {
        Self { serve, dev: Some(dev) }
    }
}

/// One value from one layer.
struct GivenValue<'a> {
    key: String,
    origin: Origin,
    value: LayerValue<'a>,
}

/// Values in files have types; values from the environment and the command line are text.
enum LayerValue<'a> {
    Text(String),
    Toml(DeValue<'a>),
}

impl<'a> Layers<'a> {
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            given: Vec::new(),
            rows: Vec::new(),
            errors: Vec::new(),
            conflicts: Vec::new(),
        }
    }

    /// Adds every key of a file.
    pub fn add_file(&mut self, source: &'a ConfigFile) {
        let not_toml = |error: toml::de::Error| ConfigError::InvalidToml {
            path: source.name.clone(),
            why: error.to_string().trim_end().to_owned(),
        };
        let at = |offset| Origin::File {
            name: source.name.clone(),
            line: source.line_of_offset(offset),
        };
        let parsed = match DeTable::parse(&source.text) {
            Ok(parsed) => parsed,
            Err(error) => return self.errors.push(not_toml(error)),
        };
        for (section, value) in parsed.into_inner() {
            let origin = at(section.span().start);
            let section = section.into_inner();
            match value.into_inner() {
                DeValue::Table(keys) if !keys.is_empty() => {
                    self.given.extend(keys.into_iter().map(|(key, value)| GivenValue {
                        origin: at(key.span().start),
                        key: format!("{section}.{}", key.into_inner()),
                        value: LayerValue::Toml(value.into_inner()),
                    }))
                }
                // Kept, so that `finish` can tell an empty section from a misspelt one.
                value => {
                    let key = section.into_owned();
                    self.given.push(GivenValue { key, origin, value: LayerValue::Toml(value) });
                }
            }
        }
    }

    /// Adds the environment variables that are configuration and ignores all others.
    pub fn add_env(&mut self, env: impl Iterator<Item = (String, String)>) {
        self.given.extend(env.filter_map(|(variable, text)| {
            let key = key_of_variable(&variable)?;
            Some(GivenValue { key, origin: Origin::Env(variable), value: LayerValue::Text(text) })
        }));
    }

    /// Adds the values given on the command line, as pairs of key and value.
    pub fn add_flags(&mut self, flags: &[(&str, String)]) {
        self.given.extend(flags.iter().map(|(key, text)| GivenValue {
            key: (*key).to_owned(),
            origin: Origin::from_flag(key),
            value: LayerValue::Text(text.clone()),
        }));
    }

    /// Gives another key this value where the highest layer that sets `key` does not unset it. It
    /// counts as given below all layers, with the origin of `key`.
    pub fn imply(&mut self, key: &str, implied: &str, value: &str) {
        let Some(given) = self.given.iter().rfind(|given| given.key == key) else { return };
        let is_unset = match &given.value {
            LayerValue::Text(text) => text.is_empty(),
            LayerValue::Toml(value) => value.as_str() == Some(""),
        };
        if !is_unset {
            let (key, origin) = (implied.to_owned(), given.origin.clone());
            let value = LayerValue::Text(value.to_owned());
            self.given.insert(0, GivenValue { key, origin, value });
        }
    }

    /// Resolves one key: the value of the highest layer, or the default. An invalid value is
    /// recorded as an error; `finish` returns all of them.
    pub fn resolve<'d, T: Setting>(
        &mut self,
        key: &'static str,
        defaults: impl Into<Defaults<'d>>,
    ) -> T {
        let Defaults { serve, dev } = defaults.into();
        let (text, mut origin) = match dev.filter(|_| self.profile == Profile::Dev) {
            Some(dev) => (dev, Origin::DevDefault),
            None => (serve, Origin::Default),
        };
        let parsed = T::from_text(text).map_err(|InvalidValue(why)| why);
        let mut value = parsed.expect("every default fits its key; a test loads them all");
        for given in self.given.extract_if(.., |given| given.key == key) {
            match given.value.parse() {
                Ok(valid) => (value, origin) = (valid, given.origin),
                Err(invalid) => {
                    self.errors.push(invalid_value_error::<T>(key, &given.origin, invalid))
                }
            }
        }
        self.rows.push(EffectiveSetting {
            key,
            value: value.to_toml(),
            origin: origin.to_string(),
        });
        value
    }

    /// Records that the value of a resolved key does not go with another setting.
    pub fn add_conflict(&mut self, key: &str, found: String, expected: String, example: &str) {
        let row = self.rows.iter().find(|row| row.key == key);
        self.conflicts.push(ConfigError::InvalidValue {
            key: key.to_owned(),
            origin: row.map(|row| row.origin.clone()).unwrap_or_default(),
            found,
            expected,
            example: example.to_owned(),
        });
    }

    /// Returns the settings and the errors, by the order of their keys in `order`. A key that was
    /// never resolved is unknown, except an empty section.
    pub fn finish(self, order: &[String]) -> (Vec<EffectiveSetting>, Vec<ConfigError>) {
        let Self { given, mut rows, mut errors, conflicts, .. } = self;
        let position = |key: &str| order.iter().position(|known| known == key);
        rows.sort_by_key(|row| position(row.key));
        errors.sort_by_key(|error| error.key().and_then(position));
        let section = |row: &EffectiveSetting| row.key.split_once('.').map(|(section, _)| section);
        for GivenValue { key, origin, value } in given {
            let known = rows.iter().any(|row| section(row) == Some(&key));
            match value {
                LayerValue::Toml(DeValue::Table(_)) if known => {}
                _ if known => errors.push(not_a_section_error(key, &origin)),
                _ => errors.push(unknown_key_error(key, &origin, &rows)),
            }
        }
        errors.extend(conflicts);
        (rows, errors)
    }
}

impl LayerValue<'_> {
    fn parse<T: Setting>(&self) -> Result<T, InvalidValue> {
        match self {
            Self::Text(text) => T::from_text(text),
            Self::Toml(value) => T::from_toml(value),
        }
    }
}

fn invalid_value_error<T: Setting>(
    key: &str,
    origin: &Origin,
    InvalidValue(found): InvalidValue,
) -> ConfigError {
    let text = T::EXAMPLE;
    let toml = T::from_text(text).map_or_else(|_| text.to_owned(), |value| value.to_toml());
    ConfigError::InvalidValue {
        key: key.to_owned(),
        origin: origin.to_string(),
        found,
        expected: T::expected(),
        example: origin.example_line(key, text, &toml),
    }
}

fn not_a_section_error(key: String, origin: &Origin) -> ConfigError {
    ConfigError::InvalidValue {
        origin: origin.to_string(),
        found: "is a section, not a setting".to_owned(),
        expected: "a section of settings".to_owned(),
        example: format!("[{key}]"),
        key,
    }
}

fn unknown_key_error(key: String, origin: &Origin, rows: &[EffectiveSetting]) -> ConfigError {
    let near = suggest::nearest_key(&key, rows.iter().map(|row| row.key));
    let suggestion = near.map(|near| origin.key_name(near));
    ConfigError::UnknownKey { key, origin: origin.to_string(), suggestion }
}
