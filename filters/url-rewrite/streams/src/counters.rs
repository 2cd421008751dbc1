//! The filter's metrics, defined once for each configuration.

use filter_host::counters;
use page_objects::{Ended, Failure, Skip};
use url_mapping::{Reason, Refusal};
use url_rewriting::headers::ReplyReason;
use url_rewriting::{BailOut, UrlCounts};

counters! {
    /// Every counter of the filter.
    Counters {
        pages "pages_total", "pages and style sheets that were rewritten";
        urls_moved "urls_moved_total", "URLs that point to the proxy now";
        urls_left "urls_left_total" by reason Reason, "URLs that stayed; `longhaul explain` prints the same reasons, `filters/url-rewrite/README.md` explains them";
        bail_outs "bail_outs_total" by reason BailOut, "bodies whose rest passed unchanged";
        broken "broken_total", "bodies in gzip that were damaged or truncated: sent up to there, then reset";
        redirected "redirected_total", "requests for documents on the proxy's own origin, sent to their true URL";
        links_offered "links_offered_total", "navigations to the proxy's own origin that got a page with a link instead of a redirect";
        refused "refused_total" by reason Refusal, "requests to the proxy's own origin that were refused";
        prefetched "prefetched_total", "objects of pages that were fetched into the cache before a browser requested them";
        prefetch_failed "prefetch_failed_total" by reason Failure, "prefetches without use; `filters/url-rewrite/README.md` explains the reasons";
        prefetch_skipped "prefetch_skipped_total" by reason Skip, "objects without a prefetch and, where the page is the reason, pages";
        bypassed "bypassed_total", "requests past the cache, because responses for their URLs were not stored lately. With native filters, the reader of the cache counts them";
        bytes_in "bytes_in_total", "bytes of bodies, decompressed, before rewriting";
        bytes_out "bytes_out_total", "the same bodies after rewriting, before compression";
        hosts_saved "hosts_saved_total", "hosts that a browser no longer contacts, each once a page";
        round_trips_saved "round_trips_saved_total", "round trips of their lookups and handshakes: an estimate";
        link_bytes_saved "link_bytes_saved_total", "bytes of the same lookups and handshakes";
    }
    also {
        bail_out_trailers "bail_outs_total_reason_trailers";
        refused_transparent_port "refused_total_reason_transparent_port";
        refused_upgrade "refused_total_reason_not_an_object";
    }
}

impl Counters {
    pub(crate) fn replied(&self, because: ReplyReason) {
        let counter = match because {
            ReplyReason::Redirected => self.redirected,
            ReplyReason::LinkOffered => self.links_offered,
            ReplyReason::Refused(refusal) => self.refused.at(refusal.index()),
            ReplyReason::PortNotListed => self.refused_transparent_port,
            ReplyReason::NotAnObject => self.refused_upgrade,
        };
        counter.add(1);
    }

    pub(crate) fn rewritten(&self, tally: &UrlCounts, bail_out: Option<BailOut>) {
        self.urls_moved.add(tally.moved);
        for (reason, count) in tally.left() {
            self.urls_left.at(reason.index()).add(count);
        }
        let savings = tally.savings();
        self.hosts_saved.add(savings.hosts);
        self.round_trips_saved.add(savings.round_trips);
        self.link_bytes_saved.add(savings.bytes);
        if let Some(cause) = bail_out {
            self.bail_outs.at(cause.index()).add(1);
        }
    }

    /// Counts a prefetch that ended.
    pub(crate) fn fetched(&self, ended: Ended) {
        match ended {
            Ended::Stored => self.prefetched,
            Ended::Failed(why) => self.prefetch_failed.at(why.index()),
        }
        .add(1);
    }

    /// Counts an object, or the objects of a page, that the filter did not prefetch.
    pub(crate) fn skipped(&self, why: Skip) {
        self.prefetch_skipped.at(why.index()).add(1);
    }

    /// Counts a body whose trailers arrived while the filter held back bytes. Those bytes are lost.
    pub(crate) fn cut_by_trailers(&self) {
        self.bail_out_trailers.add(1);
    }
}

#[cfg(test)]
mod tests {
    use filter_host::tables;

    use super::Counters;

    #[test]
    fn the_table_of_the_document_has_every_counter() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../envoy-config/METRICS.md");
        tables::check(path, "counters of url-rewrite", &Counters::table("longhaul_url_rewrite_")).unwrap();
    }
}
