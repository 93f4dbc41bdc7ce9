//! Patterns of value types that this crate and those above it share.

/// Defines an enum whose values have names, all in one list. Values that are stored as numbers
/// have them beside their names.
///
/// ```
/// codes::named_values! {
///     /// A scheme.
///     pub enum Scheme {
///         /// `http://`
///         Http = 1 => "http",
///         /// `https://`
///         Https = 2 => "https",
///     }
/// }
/// assert_eq!(Scheme::parse("https"), Some(Scheme::Https));
/// assert_eq!((Scheme::Http.as_str(), Scheme::NAMES), ("http", ["http", "https"]));
/// ```
#[macro_export]
macro_rules! named_values {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])* $value:ident $(= $number:literal)? => $text:literal,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$doc])* $value $(= $number)?,)+ }

        impl $name {
            /// All values.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$value),+];
            /// The names of all values.
            pub const NAMES: [&'static str; [$($text),+].len()] = [$($text),+];

            /// Returns the name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$value => $text,)+ }
            }

            /// Finds a value by its name.
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.as_str() == name)
            }
        }
    };
}

/// Defines a number of the database as a type of its own.
///
/// ```
/// codes::stored_number! {
///     /// Number of a domain.
///     pub struct DomainId(i64);
/// }
/// assert_eq!(DomainId::from_stored(7).get(), 7);
/// ```
#[macro_export]
macro_rules! stored_number {
    ($(#[$about:meta])* pub struct $name:ident($number:ty);) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($number);

        impl $name {
            /// Wraps a stored number.
            pub const fn from_stored(number: $number) -> Self {
                Self(number)
            }

            /// Returns the number as it is stored.
            pub const fn get(self) -> $number {
                self.0
            }
        }
    };
}
