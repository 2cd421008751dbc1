//! Counters. A filter defines them once for each configuration. Their names never hold foreign text, because a name
//! lives as long as the process.
//!
//! A label is the tail of the name (`..._total_reason_held`). The bootstrap's `stats_tags` turn the tail into a label.

use crate::calls;
use crate::error::HostError;
use crate::log::{self, Level};

/// A defined counter. Adding to an undefined one (the default) does nothing, so a metric that the host refuses costs
/// only itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counter(Option<u32>);

impl Counter {
    fn define(name: &str) -> Result<Self, HostError> {
        calls::define_counter(name).map(|id| Self(Some(id)))
    }

    /// Adds `amount`; does nothing for 0.
    pub fn add(self, amount: u64) {
        if let (Some(id), 1..) = (self.0, amount) {
            // A count that is lost is no reason to trouble the stream.
            let _ = calls::add_to_counter(id, i64::try_from(amount).unwrap_or(i64::MAX));
        }
    }
}

/// Counters by the index of their label.
#[derive(Debug, Default)]
pub struct Counters(Vec<Counter>);

impl Counters {
    /// Returns the counter at `index`, or one that counts nothing.
    pub fn at(&self, index: usize) -> Counter {
        self.0.get(index).copied().unwrap_or_default()
    }
}

/// Defines the counters of one filter. The log names those that the host refuses.
#[derive(Debug)]
pub struct Metrics {
    filter: &'static str,
    prefix: String,
}

impl Metrics {
    /// Starts the counters of `filter`. Their names begin with `longhaul_` and the filter's name with underscores. A
    /// filter gets its own; with another name it counts for that filter.
    pub fn of(filter: &'static str) -> Self {
        let words: Vec<&str> = filter.split('-').collect();
        Self { filter, prefix: format!("longhaul_{}_", words.join("_")) }
    }

    /// Defines the counter `name`, given without the prefix.
    pub fn counter(&self, name: &str) -> Counter {
        let name = format!("{}{name}", self.prefix);
        Counter::define(&name).unwrap_or_else(|_| {
            log::write(Level::Warn, &format!("{}: the proxy refused the metric {name}", self.filter));
            Counter::default()
        })
    }

    /// Defines a counter for each of `names`, in their order.
    pub fn counters<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Counters {
        Counters(names.into_iter().map(|name| self.counter(name)).collect())
    }

    /// Defines a counter `NAME_LABEL_VALUE` for each of `values`, in their order. `http_semantics::labels::NAMES` lists the
    /// labels.
    pub fn labelled<'v>(&self, name: &str, label: &str, values: impl IntoIterator<Item = &'v str>) -> Counters {
        Counters(values.into_iter().map(|value| self.counter(&format!("{name}_{label}_{value}"))).collect())
    }
}

/// Declares the counters of a filter. Each has one row: the field, the name without the prefix, the enum of its label, and
/// what it counts, in the words of METRICS.md. The rows after `also` are values of a label that stand in no enum.
#[macro_export]
macro_rules! counters {
    (
        $(#[doc = $head:literal])+ $name:ident {
            $($field:ident $metric:literal $(by $label:ident $reasons:ty)?, $help:literal;)+
        }
        $(also { $($more:ident $more_metric:literal;)+ })?
    ) => {
        $(#[doc = $head])+
        #[derive(Debug)]
        pub(crate) struct $name {
            $(pub(crate) $field: $crate::counters!(@type $($reasons)?),)+
            $($(pub(crate) $more: $crate::metrics::Counter,)+)?
        }

        impl $name {
            /// Defines every counter.
            pub(crate) fn define(metrics: &$crate::metrics::Metrics) -> Self {
                Self {
                    $($field: $crate::counters!(@define metrics $metric $($label $reasons)?),)+
                    $($($more: metrics.counter($more_metric),)+)?
                }
            }

            /// Returns the table in METRICS.md.
            #[cfg(test)]
            pub(crate) fn table(prefix: &str) -> String {
                let mut table = String::from($crate::tables::HEAD);
                $(
                    let labels: &[&str] = &[$(concat!("`", stringify!($label), "`"))?];
                    table += &format!("| `{prefix}{}` | {} | {} |\n", $metric, labels.concat(), $help).replace("|  |", "| |");
                )+
                table
            }
        }
    };
    (@type) => { $crate::metrics::Counter };
    (@type $reasons:ty) => { $crate::metrics::Counters };
    (@define $metrics:ident $metric:literal) => { $metrics.counter($metric) };
    (@define $metrics:ident $metric:literal $label:ident $reasons:ty) => {
        $metrics.labelled($metric, stringify!($label), <$reasons>::ALL.iter().map(|it| it.as_str()))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_that_the_host_refuses_counts_nothing_and_costs_nothing_else() {
        let metrics = Metrics::of("url-rewrite");
        assert_eq!(metrics.prefix, "longhaul_url_rewrite_");
        assert_eq!(metrics.counter("pages_total"), Counter::default());
        let counters = metrics.labelled("urls_left_total", "reason", ["csp", "document"]);
        assert_eq!(counters.0.len(), 2);
        counters.at(1).add(1);
        counters.at(2).add(1);
    }
}
