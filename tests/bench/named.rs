//! Enums whose values are listed, and named in reports.

/// Defines an enum with the list of its values and with their names.
macro_rules! named_values {
    ($(#[$about:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $value:ident => $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $($(#[$doc])* $value,)+ }

        impl $name {
            $vis const ALL: [Self; [$($text),+].len()] = [$(Self::$value),+];

            /// Returns the name for a report.
            $vis const fn name(self) -> &'static str {
                match self { $(Self::$value => $text,)+ }
            }
        }
    };
}

pub(crate) use named_values;
