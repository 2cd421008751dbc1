//! The filter's metrics, defined once for each configuration.

use filter_host::counters;

use crate::glance::Glance;

counters! {
    /// Every counter of the filter.
    Counters {
        requests "requests_total" by reason Glance, "requests that may have a stored response, by what Envoy's reader of the cache of objects found ([reasons](../filters/objects/README.md#the-reader-in-envoy))";
    }
}

impl Counters {
    pub(crate) fn request(&self, glance: Glance) {
        self.requests.at(glance.index()).add(1);
    }
}

#[cfg(test)]
mod tests {
    use filter_host::tables;
    use http_semantics::labels::NAMES;

    use super::*;

    #[test]
    fn the_table_of_the_document_has_every_counter() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../envoy-config/METRICS.md");
        tables::check(path, "counters of the reader", &Counters::table("longhaul_object_reader_")).unwrap();
        assert!(NAMES.contains(&"reason"));
    }

    #[test]
    fn the_readme_has_every_reason() {
        let readme = include_str!("../../README.md");
        for glance in Glance::ALL {
            let row = format!("| `{}` | {} |\n", glance.as_str(), glance.explanation());
            assert!(readme.contains(&row), "{row}");
        }
    }
}
