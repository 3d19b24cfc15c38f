//! Collects the values given for each key, lowest layer first, and resolves each key.

use toml::de::{DeTable, DeValue};

use super::error::ConfigError;
use super::file::ConfigFile;
use super::origin::{Origin, key_of_variable};
use super::value::{InvalidValue, Setting};
use super::{EffectiveSetting, Profile, suggest};

/// The values that were given, and the settings that are already resolved.
pub struct Layers<'a> {
    posture: Profile,
    given: Vec<GivenValue<'a>>,
    rows: Vec<EffectiveSetting>,
    problems: Vec<ConfigError>,
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
    pub fn new(posture: Profile) -> Self {
        Self { posture, given: Vec::new(), rows: Vec::new(), problems: Vec::new() }
    }

    /// Adds every key of a file.
    pub fn add_file(&mut self, source: &'a ConfigFile) {
        let not_toml = |fault: toml::de::Error| ConfigError::InvalidToml {
            path: source.name.clone(),
            why: fault.to_string().trim_end().to_owned(),
        };
        let at = |offset| Origin::File {
            name: source.name.clone(),
            line: source.line_of_offset(offset),
        };
        let parsed = match DeTable::parse(&source.text) {
            Ok(parsed) => parsed,
            Err(fault) => return self.problems.push(not_toml(fault)),
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

    /// Resolves one key: the value of the highest layer, or the default. An invalid value is
    /// recorded as an error; `finish` returns all of them.
    pub fn resolve<T: Setting>(&mut self, key: &'static str, serve: &str, dev: Option<&str>) -> T {
        let (text, mut origin) = match dev.filter(|_| self.posture == Profile::Dev) {
            Some(dev) => (dev, Origin::DevDefault),
            None => (serve, Origin::Default),
        };
        let fits = T::from_text(text).map_err(|InvalidValue(why)| why);
        let mut value = fits.expect("every default fits its key; a test loads them all");
        for given in self.given.extract_if(.., |given| given.key == key) {
            match given.value.parse() {
                Ok(fitting) => (value, origin) = (fitting, given.origin),
                Err(misfit) => {
                    self.problems.push(invalid_value_error::<T>(key, &given.origin, misfit))
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

    /// Returns the settings and the errors. A key that was never resolved is unknown, except an
    /// empty section.
    pub fn finish(self) -> (Vec<EffectiveSetting>, Vec<ConfigError>) {
        let Self { given, rows, mut problems, .. } = self;
        let section = |row: &EffectiveSetting| row.key.split_once('.').map(|(section, _)| section);
        for GivenValue { key, origin, value } in given {
            let known = rows.iter().any(|row| section(row) == Some(&key));
            match value {
                LayerValue::Toml(DeValue::Table(_)) if known => {}
                _ if known => problems.push(not_a_section_error(key, &origin)),
                _ => problems.push(unknown_key_error(key, &origin, &rows)),
            }
        }
        (rows, problems)
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
    let text = T::example();
    let toml = T::from_text(text).map_or_else(|_| text.to_owned(), |fitting| fitting.to_toml());
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
