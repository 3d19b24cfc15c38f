//! Collects the values given for each key, lowest layer first, and resolves each key.

use toml::de::{DeTable, DeValue};

use super::origin::{Origin, env_key};
use super::error::Problem;
use super::file::Source;
use super::value::{Misfit, Setting};
use super::{Posture, Row, suggest};

/// The values that were given, and the settings that are already resolved.
pub struct Layers<'a> {
    posture: Posture,
    given: Vec<Given<'a>>,
    rows: Vec<Row>,
    problems: Vec<Problem>,
}

/// One value from one layer.
struct Given<'a> {
    key: String,
    origin: Origin,
    value: Value<'a>,
}

/// Values in files have types; values from the environment and the command line are text.
enum Value<'a> {
    Text(String),
    Toml(DeValue<'a>),
}

impl<'a> Layers<'a> {
    pub fn new(posture: Posture) -> Self {
        Self { posture, given: Vec::new(), rows: Vec::new(), problems: Vec::new() }
    }

    /// Adds every key of a file.
    pub fn add_file(&mut self, source: &'a Source) {
        let not_toml = |fault: toml::de::Error| Problem::NotToml {
            path: source.name.clone(),
            why: fault.to_string().trim_end().to_owned(),
        };
        let at = |offset| Origin::File { name: source.name.clone(), line: source.line(offset) };
        let parsed = match DeTable::parse(&source.text) {
            Ok(parsed) => parsed,
            Err(fault) => return self.problems.push(not_toml(fault)),
        };
        for (section, value) in parsed.into_inner() {
            let origin = at(section.span().start);
            let section = section.into_inner();
            match value.into_inner() {
                DeValue::Table(keys) if !keys.is_empty() => {
                    self.given.extend(keys.into_iter().map(|(key, value)| Given {
                        origin: at(key.span().start),
                        key: format!("{section}.{}", key.into_inner()),
                        value: Value::Toml(value.into_inner()),
                    }))
                }
                // Kept, so that `finish` can tell an empty section from a misspelt one.
                value => {
                    let key = section.into_owned();
                    self.given.push(Given { key, origin, value: Value::Toml(value) });
                }
            }
        }
    }

    /// Adds the environment variables that are configuration and ignores all others.
    pub fn add_env(&mut self, env: impl Iterator<Item = (String, String)>) {
        self.given.extend(env.filter_map(|(variable, text)| {
            let key = env_key(&variable)?;
            Some(Given { key, origin: Origin::Env(variable), value: Value::Text(text) })
        }));
    }

    /// Adds the values given on the command line, as pairs of key and value.
    pub fn add_flags(&mut self, flags: &[(&str, String)]) {
        self.given.extend(flags.iter().map(|(key, text)| Given {
            key: (*key).to_owned(),
            origin: Origin::flag(key),
            value: Value::Text(text.clone()),
        }));
    }

    /// Resolves one key: the value of the highest layer, or the default. An invalid value is
    /// recorded as an error; `finish` returns all of them.
    pub fn take<T: Setting>(&mut self, key: &'static str, serve: &str, dev: Option<&str>) -> T {
        let (text, mut origin) = match dev.filter(|_| self.posture == Posture::Dev) {
            Some(dev) => (dev, Origin::DevDefault),
            None => (serve, Origin::Default),
        };
        let fits = T::from_text(text).map_err(|Misfit(why)| why);
        let mut value = fits.expect("every default fits its key; a test loads them all");
        for given in self.given.extract_if(.., |given| given.key == key) {
            match given.value.fit() {
                Ok(fitting) => (value, origin) = (fitting, given.origin),
                Err(misfit) => self.problems.push(bad_value::<T>(key, &given.origin, misfit)),
            }
        }
        self.rows.push(Row { key, value: value.to_toml(), origin: origin.to_string() });
        value
    }

    /// Returns the settings and the errors. A key that was never resolved is unknown, except an
    /// empty section.
    pub fn finish(self) -> (Vec<Row>, Vec<Problem>) {
        let Self { given, rows, mut problems, .. } = self;
        let section = |row: &Row| row.key.split_once('.').map(|(section, _)| section);
        for Given { key, origin, value } in given {
            let known = rows.iter().any(|row| section(row) == Some(&key));
            match value {
                Value::Toml(DeValue::Table(_)) if known => {}
                _ if known => problems.push(not_a_section(key, &origin)),
                _ => problems.push(unknown(key, &origin, &rows)),
            }
        }
        (rows, problems)
    }
}

impl Value<'_> {
    fn fit<T: Setting>(&self) -> Result<T, Misfit> {
        match self {
            Self::Text(text) => T::from_text(text),
            Self::Toml(value) => T::from_toml(value),
        }
    }
}

fn bad_value<T: Setting>(key: &str, origin: &Origin, Misfit(found): Misfit) -> Problem {
    let text = T::example();
    let toml = T::from_text(text).map_or_else(|_| text.to_owned(), |fitting| fitting.to_toml());
    Problem::BadValue {
        key: key.to_owned(),
        origin: origin.to_string(),
        found,
        expected: T::expected(),
        example: origin.example(key, text, &toml),
    }
}

fn not_a_section(key: String, origin: &Origin) -> Problem {
    Problem::BadValue {
        origin: origin.to_string(),
        found: "is a section, not a setting".to_owned(),
        expected: "a section of settings".to_owned(),
        example: format!("[{key}]"),
        key,
    }
}

fn unknown(key: String, origin: &Origin, rows: &[Row]) -> Problem {
    let near = suggest::nearest(&key, rows.iter().map(|row| row.key));
    let suggestion = near.map(|near| origin.spelling(near));
    Problem::UnknownKey { key, origin: origin.to_string(), suggestion }
}
