//! The filter's metrics, defined once for each configuration.

use filter_host::metrics::{self, Counter, Metrics};
use page_objects::{Ended, Failure, Skip};
use url_mapping::{Reason, Refusal};
use url_rewriting::headers::ReplyReason;
use url_rewriting::{BailOut, UrlCounts};

/// Every counter of the filter.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) pages: Counter,
    pub(crate) urls_moved: Counter,
    pub(crate) bytes_in: Counter,
    pub(crate) bytes_out: Counter,
    hosts_saved: Counter,
    round_trips_saved: Counter,
    link_bytes_saved: Counter,
    pub(crate) broken: Counter,
    redirected: Counter,
    links_offered: Counter,
    prefetched: Counter,
    prefetch_failed: metrics::Counters,
    prefetch_skipped: metrics::Counters,
    urls_left: metrics::Counters,
    bail_outs: metrics::Counters,
    bail_out_trailers: Counter,
    refused: metrics::Counters,
    refused_transparent_port: Counter,
    refused_upgrade: Counter,
}

impl Counters {
    /// Defines every counter.
    pub(crate) fn define(metrics: &Metrics) -> Self {
        Self {
            pages: metrics.counter("pages_total"),
            urls_moved: metrics.counter("urls_moved_total"),
            bytes_in: metrics.counter("bytes_in_total"),
            bytes_out: metrics.counter("bytes_out_total"),
            hosts_saved: metrics.counter("hosts_saved_total"),
            round_trips_saved: metrics.counter("round_trips_saved_total"),
            link_bytes_saved: metrics.counter("link_bytes_saved_total"),
            broken: metrics.counter("broken_total"),
            redirected: metrics.counter("redirected_total"),
            links_offered: metrics.counter("links_offered_total"),
            prefetched: metrics.counter("prefetched_total"),
            prefetch_failed: metrics.by_reason("prefetch_failed_total", Failure::ALL.iter().map(|it| it.as_str())),
            prefetch_skipped: metrics.by_reason("prefetch_skipped_total", Skip::ALL.iter().map(|it| it.as_str())),
            urls_left: metrics.by_reason("urls_left_total", Reason::ALL.iter().map(|it| it.as_str())),
            bail_outs: metrics.by_reason("bail_outs_total", BailOut::ALL.iter().map(|it| it.as_str())),
            bail_out_trailers: metrics.counter("bail_outs_total_reason_trailers"),
            refused: metrics.by_reason("refused_total", Refusal::ALL.iter().map(|it| it.as_str())),
            refused_transparent_port: metrics.counter("refused_total_reason_transparent_port"),
            refused_upgrade: metrics.counter("refused_total_reason_not_an_object"),
        }
    }

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
