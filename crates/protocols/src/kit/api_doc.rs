//! Declares what the API document says about values whose Rust types do not say it: times, words of a
//! fixed set, and the members of requests that are read by hand.

use std::borrow::Cow;
use std::marker::PhantomData;

use rialto_core::time::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::rfc3339;

/// Gives a type this JSON Schema, which is written out wherever the type is used.
#[macro_export]
macro_rules! value_schema {
    ($name:ident, $schema:tt) => {
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }

            fn inline_schema() -> bool {
                true
            }
        }
    };
}

/// Declares a string of a fixed set, for the API document only: the text itself is written elsewhere.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* $name:ident: $($word:literal)|+) => {
        $(#[$about])*
        pub enum $name {}
        $crate::value_schema!($name, {"type": "string", "enum": [$($word),+]});
    };
}

/// Declares the members of a body, or the parameters of a path and query, that are read by hand.
/// `MEMBERS` has their names, so that a reader can refuse all others.
#[macro_export]
macro_rules! request_members {
    ($(#[$about:meta])* $name:ident { $($(#[$each:meta])* $member:ident: $type:ty,)+ }) => {
        #[derive(schemars::JsonSchema)]
        $(#[$about])*
        #[allow(dead_code, reason = "only the schema and the names are used")]
        pub struct $name {
            $($(#[$each])* $member: $type,)+
        }

        #[allow(dead_code, reason = "only strict readers refuse unknown members")]
        impl $name {
            /// The names of all members.
            pub const MEMBERS: &'static [&'static str] = &[$(stringify!($member)),+];
        }
    };
}

/// Declares the form of an answer that is written by hand, with the members that may be absent last.
#[macro_export]
macro_rules! answer_members {
    ($(#[$about:meta])* $name:ident {
        $($(#[$each:meta])* $member:ident: $type:ty,)*
    } optional {
        $($(#[$every:meta])* $optional:ident: $given:ty,)*
    }) => {
        #[derive(schemars::JsonSchema)]
        $(#[$about])*
        #[allow(dead_code, reason = "only the schema is used")]
        pub struct $name {
            $($(#[$each])* $member: $type,)*
            $($(#[$every])* #[schemars(skip_serializing_if = "absent")] $optional: $given,)*
        }
    };
}

/// A time as RFC 3339 text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(String);

impl Time {
    /// `2026-03-20T10:00:00.000Z`.
    pub fn millis(time: Timestamp) -> Self {
        Self(rfc3339::format_millis(time))
    }
}

value_schema!(Time, {"type": "string", "format": "date-time"});

/// Any JSON object.
pub enum AnyObject {}
value_schema!(AnyObject, {"type": "object", "additionalProperties": true});

/// A value of one of two types, in the API document only.
pub struct AnyOf<A, B>(PhantomData<(A, B)>);

impl<A: JsonSchema, B: JsonSchema> JsonSchema for AnyOf<A, B> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}Or{}", A::schema_name(), B::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let schemas = [generator.subschema_for::<A>(), generator.subschema_for::<B>()];
        json_schema!({"anyOf": schemas})
    }

    fn inline_schema() -> bool {
        true
    }
}

/// A value or `null`, in the API document only.
pub struct Nullable<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for Nullable<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Nullable{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"type": "null"}, generator.subschema_for::<T>()]})
    }

    fn inline_schema() -> bool {
        true
    }
}
