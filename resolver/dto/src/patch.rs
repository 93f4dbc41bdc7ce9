//! Fields that may be absent, null or set.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A field of a request. An edit leaves an absent field unchanged and clears a null one; a create
/// treats both alike.
///
/// Fields of this type need `#[serde(default)]`, and `skip_serializing_if = "Patch::is_absent"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// The field is not in the request.
    #[default]
    Absent,
    /// The field is null.
    Null,
    /// The field has a value.
    Set(T),
}

impl<T> Patch<T> {
    /// Returns whether the field is not in the request.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Returns the value; `None` for a field that is absent or null.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }

    /// Returns the change that an edit makes: `None` leaves the field unchanged, `Some(None)`
    /// clears it.
    pub fn change(self) -> Option<Option<T>> {
        match self {
            Self::Absent => None,
            Self::Null => Some(None),
            Self::Set(value) => Some(Some(value)),
        }
    }

    /// Returns the change that an edit makes, its value converted.
    pub fn try_change<R, E>(self, convert: impl FnOnce(T) -> Result<R, E>) -> Result<Option<Option<R>>, E> {
        self.change().map(|value| value.map(convert).transpose()).transpose()
    }
}

impl<T> From<Option<T>> for Patch<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::Set)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(from)?.map_or(Self::Null, Self::Set))
    }
}

impl<T: Serialize> Serialize for Patch<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Set(value) => to.serialize_some(value),
            Self::Absent | Self::Null => to.serialize_none(),
        }
    }
}

impl<T: JsonSchema> JsonSchema for Patch<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Option::<T>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}
