//! Enums of reasons that are metric labels.

/// The labels of the filters' metrics. Envoy's `stats_tags` have one row each.
pub const NAMES: &[&str] = &["reason"];

/// Declares an enum whose variants carry a metric label. Adds `ALL`, `as_str`, `sentence` and `index`.
///
/// The form `Variant = "label", "Explanation.";` also adds `explanation`, a sentence for operators. Use it where the
/// doc comments address developers.
#[macro_export]
macro_rules! labelled {
    ($(#[doc = $head:literal])+ $name:ident {
        $($(#[doc = $doc:literal])+ $variant:ident = $label:literal, $explanation:literal;)+
    }) => {
        $crate::labelled! { $(#[doc = $head])+ $name { $($(#[doc = $doc])+ $variant = $label;)+ } }

        impl $name {
            /// Returns one sentence for operators. `longhaul explain` and the README print it.
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
            /// All variants in the order of declaration: `ALL[it.index()] == it`.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the metric label in `snake_case`. Dashboards depend on it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }

            /// Returns the doc comment of the variant. `longhaul explain` prints it.
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii(),)+ }
            }

            /// Returns the position in `ALL`, for arrays of counters.
            pub const fn index(self) -> usize {
                self as usize
            }
        }
    };
}

pub use crate::labelled;
