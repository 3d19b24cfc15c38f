//! The stored form of a message: the envelope as sent, preceded by its flags if it has any.
//!
//! A message without flags is just the envelope. One with flags is an array: the flags, then the
//! envelope. An envelope is an object, so the two cannot be confused.

use rialto_core::time::Millis;

use super::event::MessageFlags;

const BY_OPERATOR: &str = r#""operator","#;
const UNVERIFIED: &str = r#""unverified","#;
/// The loop guard's flag, followed by the milliseconds the message is held back. A message of an
/// older version has none.
const LOOP_GUARD: &str = r#""loop_guard","#;

/// The text to store.
pub fn write_stored_message(envelope: &str, marks: MessageFlags) -> String {
    if marks == MessageFlags::default() {
        return envelope.to_owned();
    }
    let mut text = String::with_capacity(envelope.len() + 48);
    text.push('[');
    text.push_str(if marks.by_operator { BY_OPERATOR } else { "" });
    text.push_str(if marks.unverified { UNVERIFIED } else { "" });
    if let Some(delay) = marks.loop_guard {
        text.push_str(&format!("{LOOP_GUARD}{},", delay.0));
    }
    text.push_str(envelope);
    text.push(']');
    text
}

/// The envelope and its flags.
pub fn read_stored_message(text: &str) -> (&str, MessageFlags) {
    let mut marks = MessageFlags::default();
    let Some(mut rest) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return (text, marks);
    };
    for (set, mark) in [(&mut marks.by_operator, BY_OPERATOR), (&mut marks.unverified, UNVERIFIED)]
    {
        if let Some(after) = rest.strip_prefix(mark) {
            (*set, rest) = (true, after);
        }
    }
    if let Some(after) = rest.strip_prefix(LOOP_GUARD) {
        let delay = after.split_once(',').and_then(|(ms, after)| Some((ms.parse().ok()?, after)));
        let (delay, after) = delay.unwrap_or((0, after));
        (marks.loop_guard, rest) = (Some(Millis(delay)), after);
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
            let [by_operator, unverified, held] = [1, 2, 4].map(|bit| bits & bit != 0);
            let loop_guard = held.then_some(Millis(1_500));
            let marks = MessageFlags { by_operator, unverified, loop_guard };
            let kept = write_stored_message(envelope, marks);
            assert!(crate::kit::ijson::read(kept.as_bytes()).is_ok(), "{kept}");
            assert_eq!(read_stored_message(&kept), (envelope, marks));
        }
        assert_eq!(write_stored_message(envelope, MessageFlags::default()), envelope);
    }

    #[test]
    fn a_mark_of_an_older_version_holds_nothing_back() {
        let envelope = r#"{"original_text":"a,b","turn_number":7}"#;
        let marks = MessageFlags { loop_guard: Some(Millis(0)), ..MessageFlags::default() };
        assert_eq!(
            read_stored_message(&format!(r#"["loop_guard",{envelope}]"#)),
            (envelope, marks)
        );
    }
}
