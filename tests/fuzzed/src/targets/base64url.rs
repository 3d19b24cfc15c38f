//! Base64Url: one text per value.

use rialto_protocols::kit::ans104::ItemId;
use rialto_protocols::kit::base64url;

use super::text;

/// Checks Base64Url and the ids written in it.
pub fn base64url(bytes: &[u8]) {
    assert_eq!(base64url::decode(&base64url::encode(bytes)).as_deref(), Ok(bytes));
    let Some(text) = text(bytes) else { return };
    let decoded = base64url::decode(text);
    if let Ok(decoded) = &decoded {
        assert_eq!(base64url::encode(decoded), text.trim_end_matches('='));
    }
    let array = base64url::decode_array::<32>(text).map(Vec::from).ok();
    assert_eq!(array, decoded.ok().filter(|bytes| bytes.len() == 32));
    if let Some(id) = ItemId::read(text) {
        assert_eq!(ItemId::read(&id.to_string()), Some(id));
    }
}
