//! Random values of any type that can be deserialized: every variant of every enum, lists of a few
//! elements, numbers of all sizes.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::U32Deserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

/// Elements of a list at most, and levels below which lists and options are empty.
const ELEMENTS_MAX: u64 = 3;
const DEPTH_MAX: usize = 12;

/// A source of random values. The same seed gives the same values.
pub struct RandomValues {
    state: u64,
    depth: usize,
    /// The next enum gets this variant.
    forced: Option<u32>,
    /// The next value of a flattened field is a number.
    is_number: bool,
    /// The next text has this many hex digits.
    hex_digits: Option<usize>,
    /// The variants of all enums so far, as `Enum::Variant`.
    pub variants: BTreeSet<String>,
}

/// A value that the type does not allow, such as a text that is not an id.
#[derive(Debug)]
pub struct NotAllowed(String);

impl fmt::Display for NotAllowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotAllowed {}

impl de::Error for NotAllowed {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self(text.to_string())
    }
}

impl RandomValues {
    pub fn new(seed: u64) -> Self {
        let (is_number, variants) = (false, BTreeSet::new());
        Self { state: seed, depth: 0, forced: None, is_number, hex_digits: None, variants }
    }

    /// A random value.
    pub fn value<T: DeserializeOwned>(&mut self) -> T {
        T::deserialize(&mut *self).expect("random values are allowed")
    }

    /// A random value of an enum, of the variant with this index. `None` if there is none.
    pub fn variant<T: DeserializeOwned>(&mut self, index: u32) -> Option<T> {
        self.forced = Some(index);
        T::deserialize(&mut *self).ok()
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Small numbers often, and every length of others.
    fn number(&mut self) -> u64 {
        let bits = self.next() % 65;
        self.next().checked_shr(64 - bits as u32).unwrap_or(0)
    }

    fn length(&mut self) -> u64 {
        if self.depth > DEPTH_MAX { 0 } else { self.next() % (ELEMENTS_MAX + 1) }
    }

    /// Lower-case letters and digits only, because some texts are ids.
    fn text(&mut self) -> String {
        if let Some(digits) = self.hex_digits.take() {
            return (0..digits).map(|_| format!("{:x}", self.next() % 16)).collect();
        }
        let length = 1 + self.next() % 12;
        (0..length).map(|_| char::from(b'a' + (self.next() % 26) as u8)).collect()
    }

    /// Visits the elements of a list, one level deeper.
    fn list<'de, V: Visitor<'de>>(&mut self, length: u64, to: V) -> Result<V::Value, NotAllowed> {
        self.depth += 1;
        let value = to.visit_seq(Elements { of: self, left: length });
        self.depth -= 1;
        value
    }
}

struct Elements<'r> {
    of: &'r mut RandomValues,
    left: u64,
}

impl<'de> de::SeqAccess<'de> for Elements<'_> {
    type Error = NotAllowed;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, NotAllowed> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.of).map(Some)
    }
}

/// The elements of a map, or the fields of a struct that is flattened into another.
struct Entries<'r> {
    of: &'r mut RandomValues,
    left: u64,
    /// The next of the fields, once it is known that they are asked for.
    field: Option<usize>,
}

/// The fields of all flattened structs, as they are stored.
const FLATTENED: [&str; 16] = [
    "next_when_unreachable",
    "next_when_declined",
    "next_when_failed",
    "queue_unmatched",
    "queue_later",
    "absent_too",
    "not_before",
    "presence_first",
    "requester_waits",
    "cancel_any_time",
    "unpaid",
    "at_once",
    "per_minute",
    "answers_itself",
    "strict",
    "urgent_first",
];
const NUMBERS: [&str; 3] = ["not_before", "at_once", "per_minute"];

/// The key of an entry. Only a flattened struct asks for the name of a field.
struct Key<'a, 'r>(&'a mut Entries<'r>);

impl<'de> de::Deserializer<'de> for Key<'_, '_> {
    type Error = NotAllowed;

    fn deserialize_identifier<V: Visitor<'de>>(self, to: V) -> Result<V::Value, NotAllowed> {
        let at = self.0.field.unwrap_or(0);
        self.0.field = Some(at + 1);
        to.visit_borrowed_str(FLATTENED[at])
    }

    fn deserialize_u64<V: Visitor<'de>>(self, to: V) -> Result<V::Value, NotAllowed> {
        self.0.of.deserialize_u64(to)
    }

    fn deserialize_any<V: Visitor<'de>>(self, to: V) -> Result<V::Value, NotAllowed> {
        self.0.of.deserialize_string(to)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum ignored_any
    }
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = NotAllowed;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, NotAllowed> {
        let ended = self.field.map_or(self.left == 0, |field| field == FLATTENED.len());
        if ended {
            return Ok(None);
        }
        self.left = self.left.saturating_sub(1);
        seed.deserialize(Key(self)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, NotAllowed> {
        self.of.is_number = self.field.is_some_and(|at| NUMBERS.contains(&FLATTENED[at - 1]));
        seed.deserialize(&mut *self.of)
    }
}

struct Variant<'r> {
    of: &'r mut RandomValues,
    index: u32,
}

impl<'de> de::EnumAccess<'de> for Variant<'_> {
    type Error = NotAllowed;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), NotAllowed> {
        let index: U32Deserializer<NotAllowed> = self.index.into_deserializer();
        Ok((seed.deserialize(index)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'_> {
    type Error = NotAllowed;

    fn unit_variant(self) -> Result<(), NotAllowed> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, NotAllowed> {
        seed.deserialize(self.of)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, to: V) -> Result<V::Value, NotAllowed> {
        self.of.list(len as u64, to)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        to: V,
    ) -> Result<V::Value, NotAllowed> {
        self.of.list(fields.len() as u64, to)
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $type:ty,)+) => {$(
        fn $method<V: Visitor<'de>>(self, to: V) -> Result<V::Value, NotAllowed> {
            to.$visit(self.number() as $type)
        }
    )+};
}

impl<'de> de::Deserializer<'de> for &mut RandomValues {
    type Error = NotAllowed;

    numbers! {
        deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64, deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32, deserialize_i64 visit_i64 i64,
    }

    /// Only events and the fields of flattened structs do not say what they are.
    fn deserialize_any<V: Visitor<'de>>(self, to: V) -> Result<V::Value, NotAllowed> {
        if (&to as &dyn de::Expected).to_string().contains("Event") {
            let event = serde_json::json!({ "event": "agent_updated", "agent": self.number() });
            return event.deserialize_any(to).map_err(de::Error::custom);
        }
        if self.is_number {
            return to.visit_u64(self.next() % 1_000);
        }
        to.visit_bool(self.next().is_multiple_of(2))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, to: V) -> Result<V::Value, NotAllowed> {
        to.visit_bool(self.next().is_multiple_of(2))
    }

    fn deserialize_str<V: Visitor<'de>>(self, to: V) -> Result<V::Value, NotAllowed> {
        if (&to as &dyn de::Expected).to_string().contains("UUID") {
            self.hex_digits = Some(32);
        }
        to.visit_string(self.text())
    }

    fn deserialize_string<V: Visitor<'de>>(self, to: V) -> Result<V::Value, NotAllowed> {
        to.visit_string(self.text())
    }

    fn deserialize_option<V: Visitor<'de>>(self, to: V) -> Result<V::Value, NotAllowed> {
        if self.depth > DEPTH_MAX || self.next().is_multiple_of(2) {
            return to.visit_none();
        }
        to.visit_some(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, to: V) -> Result<V::Value, NotAllowed> {
        to.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        to: V,
    ) -> Result<V::Value, NotAllowed> {
        self.hex_digits = match name {
            "Digest" => Some(32),
            "EntryHash" => Some(64),
            _ => None,
        };
        to.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, to: V) -> Result<V::Value, NotAllowed> {
        let length = self.length();
        self.list(length, to)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, to: V) -> Result<V::Value, NotAllowed> {
        self.list(len as u64, to)
    }

    fn deserialize_map<V: Visitor<'de>>(self, to: V) -> Result<V::Value, NotAllowed> {
        let left = self.length().max(1);
        self.depth += 1;
        let value = to.visit_map(Entries { of: &mut *self, left, field: None });
        self.depth -= 1;
        value
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        to: V,
    ) -> Result<V::Value, NotAllowed> {
        // The only text of a key is its hash.
        self.hex_digits = (name == "Key").then_some(64);
        self.list(fields.len() as u64, to)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        to: V,
    ) -> Result<V::Value, NotAllowed> {
        let count = variants.len() as u32;
        let index = match self.forced.take() {
            Some(index) if index >= count => return Err(NotAllowed("no such variant".to_owned())),
            Some(index) => index,
            None => (self.next() % u64::from(count)) as u32,
        };
        self.variants.insert(format!("{name}::{}", variants[index as usize]));
        to.visit_enum(Variant { of: self, index })
    }

    forward_to_deserialize_any! {
        i128 u128 f32 f64 char bytes byte_buf unit_struct tuple_struct identifier ignored_any
    }
}
