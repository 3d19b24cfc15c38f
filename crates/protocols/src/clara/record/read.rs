//! Deserializers for members that serde does not cover: raw JSON, prices, and maps that are lists
//! when empty.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use rialto_core::money::Credits;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;

use crate::clara::price;

/// The exact text of a member.
pub fn raw<'de, D: Deserializer<'de>>(from: D) -> Result<&'de str, D::Error> {
    <&RawValue>::deserialize(from).map(RawValue::get)
}

/// The exact text of an optional member. `null` counts as present.
pub fn maybe_raw<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de str>, D::Error> {
    raw(from).map(Some)
}

/// A fee or a reward.
pub fn price<'de, D: Deserializer<'de>>(from: D) -> Result<Credits, D::Error> {
    let text = Cow::<str>::deserialize(from)?;
    price::read_price(&text).ok_or_else(|| D::Error::custom("a price must be digits in a string"))
}

/// A total, which may be zero.
pub fn sum<'de, D: Deserializer<'de>>(from: D) -> Result<Credits, D::Error> {
    let text = Cow::<str>::deserialize(from)?;
    price::read_sum(&text).ok_or_else(|| D::Error::custom("a sum must be digits in a string"))
}

/// The values of an object, or an empty list.
pub fn read_keyed<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    from.deserialize_any(KeyedVisitor(PhantomData))
}

struct KeyedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for KeyedVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an empty list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        match list.next_element::<IgnoredAny>()? {
            None => Ok(Vec::new()),
            Some(_) => Err(A::Error::invalid_type(de::Unexpected::Seq, &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some((_, value)) = map.next_entry::<IgnoredAny, T>()? {
            values.push(value);
        }
        Ok(values)
    }
}
