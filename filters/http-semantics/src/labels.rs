//! Enums of reasons whose names are labels of metrics.

/// Declares an enum whose variants carry a metric label, with `ALL`, `as_str`, `sentence` and `index`.
///
/// `Variant = "label", "Explanation.";` for each variant adds `explanation`, a sentence for operators where the
/// documentation speaks to developers.
#[macro_export]
macro_rules! labelled {
    ($(#[doc = $head:literal])+ $name:ident {
        $($(#[doc = $doc:literal])+ $variant:ident = $label:literal, $explanation:literal;)+
    }) => {
        $crate::labelled! { $(#[doc = $head])+ $name { $($(#[doc = $doc])+ $variant = $label;)+ } }

        impl $name {
            /// One sentence for an operator: `longhaul explain` and the README print it.
            pub const fn explanation(self) -> &'static str {
                match self { $(Self::$variant => $explanation,)+ }
            }
        }
    };
    ($(#[doc = $head:literal])+ $name:ident { $($(#[doc = $doc:literal])+ $variant:ident = $label:literal;)+ }) => {
        $(#[doc = $head])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl $name {
            /// All of them, in the order of declaration: `ALL[it.index()] == it`.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The metric label, `snake_case`; a contract with dashboards.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }

            /// What it means, in the words of its documentation; `longhaul explain` prints it.
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii(),)+ }
            }

            /// Position in `ALL`, for arrays of counters.
            pub const fn index(self) -> usize {
                self as usize
            }
        }
    };
}

pub use crate::labelled;
