//! Readable paths into a value: `trends[0].relevance_score`.

use std::fmt::Write;

use super::error::truncate;
use crate::kit::ijson::{Json, JsonValue};

/// The maximum length of one name; names come from the value and may be of any length there.
const NAME_MAX: usize = 64;
/// The maximum length of a whole path.
const PATH_MAX: usize = 400;

/// The readable path of a JSON pointer into `json`.
pub(super) fn readable_path(json: &Json<'_>, pointer: &str) -> String {
    let mut path = String::new();
    let mut here = Some(json);
    for segment in pointer.split('/').skip(1) {
        let name = segment.replace("~1", "/").replace("~0", "~");
        here = match here.map(Json::value) {
            Some(JsonValue::Array(items)) => {
                let _ = write!(path, "[{name}]");
                name.parse::<usize>().ok().and_then(|at| items.get(at))
            }
            _ => {
                push(&mut path, &name);
                here.and_then(|object| object.get(&name))
            }
        };
    }
    truncate(&path, PATH_MAX)
}

/// The path of a member of the value at `path`.
pub(super) fn member_path(path: &str, name: &str) -> String {
    let mut path = path.to_owned();
    push(&mut path, name);
    truncate(&path, PATH_MAX)
}

fn push(path: &mut String, name: &str) {
    let plain = |c: char| c.is_alphanumeric() || "_-$@".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(&truncate(name, NAME_MAX));
    } else {
        let _ = write!(path, "[{:?}]", truncate(name, NAME_MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ijson;

    #[test]
    fn paths_read_like_the_language_of_the_web() {
        let json = ijson::read(br#"{"a":[{"b c":{"0":1}}],"x/y~z":2}"#).expect("JSON");
        assert_eq!(readable_path(&json, ""), "");
        assert_eq!(readable_path(&json, "/a/0"), "a[0]");
        assert_eq!(readable_path(&json, "/a/0/b c/0"), "a[0][\"b c\"].0");
        assert_eq!(readable_path(&json, "/x~1y~0z"), "[\"x/y~z\"]");
        assert_eq!(member_path("a[0]", "title"), "a[0].title");
        assert_eq!(member_path("", "title"), "title");
        assert!(member_path("", &"n".repeat(9_999)).chars().count() < 70);
    }
}
