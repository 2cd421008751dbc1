//! The filter's metrics, defined once for each configuration.

use cache_admission::judge::Ruling;
use filter_host::counters;

counters! {
    /// Every counter of the filter.
    Counters {
        judged "judged_total" by reason Ruling, "responses behind the cache: stored, validated, or passed around it ([reasons](../filters/cache-admission/README.md#the-judge))";
        broken_off "broken_off_total", "bodies of unknown length that became longer than the cache takes";
    }
}

impl Counters {
    pub(crate) fn judged(&self, ruling: Ruling) {
        self.judged.at(ruling.index()).add(1);
    }

    pub(crate) fn broken_off(&self) {
        self.broken_off.add(1);
    }
}

#[cfg(test)]
mod tests {
    use filter_host::tables;

    use super::Counters;

    #[test]
    fn the_table_of_the_document_has_every_counter() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../envoy-config/METRICS.md");
        tables::check(path, "counters behind the cache", &Counters::table("longhaul_cache_admission_")).unwrap();
    }
}
