//! Data items: no bytes make the reader panic, and what is read says the same when it is read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rialto_protocols::kit::ans104::Item;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(item) = Item::read(bytes) {
        let again = Item::read(bytes).expect("it was an item a moment ago");
        assert_eq!((item.id(), item.address()), (again.id(), again.address()));
        assert_eq!(item.deep_hash(), again.deep_hash());
        let _ = item.verify();
    }
});
