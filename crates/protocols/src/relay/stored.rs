//! How the relay keeps a message: the envelope as it came, behind its marks if it has any.
//!
//! An unmarked message is the envelope and nothing else. A marked one is a list: the marks, then the
//! envelope. An envelope is an object, so one cannot be taken for the other.

use super::event::Marks;

const BY_OPERATOR: &str = r#""operator","#;
const UNVERIFIED: &str = r#""unverified","#;
const LOOP_GUARD: &str = r#""loop_guard","#;

/// The text to keep.
pub fn write(envelope: &str, marks: Marks) -> String {
    if marks == Marks::default() {
        return envelope.to_owned();
    }
    let mut text = String::with_capacity(envelope.len() + 48);
    text.push('[');
    for (set, mark) in [
        (marks.by_operator, BY_OPERATOR),
        (marks.unverified, UNVERIFIED),
        (marks.loop_guard, LOOP_GUARD),
    ] {
        text.push_str(if set { mark } else { "" });
    }
    text.push_str(envelope);
    text.push(']');
    text
}

/// The envelope and its marks.
pub fn read(text: &str) -> (&str, Marks) {
    let mut marks = Marks::default();
    let Some(mut rest) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return (text, marks);
    };
    for (set, mark) in [
        (&mut marks.by_operator, BY_OPERATOR),
        (&mut marks.unverified, UNVERIFIED),
        (&mut marks.loop_guard, LOOP_GUARD),
    ] {
        if let Some(after) = rest.strip_prefix(mark) {
            (*set, rest) = (true, after);
        }
    }
    (rest, marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_back_with_every_set_of_marks() {
        let envelope = r#"{"original_text":"[\"operator\",{}]"}"#;
        for bits in 0..8 {
            let [by_operator, unverified, loop_guard] = [1, 2, 4].map(|bit| bits & bit != 0);
            let marks = Marks { by_operator, unverified, loop_guard };
            let kept = write(envelope, marks);
            assert!(crate::kit::ijson::read(kept.as_bytes()).is_ok(), "{kept}");
            assert_eq!(read(&kept), (envelope, marks));
        }
        assert_eq!(write(envelope, Marks::default()), envelope);
    }
}
