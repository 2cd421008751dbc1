//! The filter's metrics, defined once a configuration.
//!
//! A label is the tail of the name (`..._total_reason_integrity`); the bootstrap's `stats_tags` turn it into one.

use filter_host::metrics::Counter;
use std::collections::BTreeSet;
use url_mapping::{Reason, Refusal};
use url_rewriting::headers::ReplyReason;
use url_rewriting::inline::Kept;
use url_rewriting::prefetch::{Ended, Failure, Skip};
use url_rewriting::{BailOut, Tally};

/// Every counter of the filter. One that the host would not define counts nothing.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) pages: Counter,
    pub(crate) urls_moved: Counter,
    pub(crate) bytes_in: Counter,
    pub(crate) bytes_out: Counter,
    hosts_saved: Counter,
    round_trips_saved: Counter,
    link_bytes_saved: Counter,
    pub(crate) broken: Counter,
    inlined: Counter,
    inlined_bytes: Counter,
    inline_kept: Vec<Counter>,
    redirected: Counter,
    links_offered: Counter,
    prefetched: Counter,
    prefetch_failed: Vec<Counter>,
    prefetch_skipped: Vec<Counter>,
    urls_left: Vec<Counter>,
    bail_outs: Vec<Counter>,
    bail_out_trailers: Counter,
    refused: Vec<Counter>,
    refused_transparent_port: Counter,
    refused_upgrade: Counter,
}

impl Counters {
    /// Defines all of them. The names of those the host refused are returned.
    pub(crate) fn define() -> (Self, BTreeSet<String>) {
        let mut missing = BTreeSet::new();
        let mut counter = |name: &str| {
            let name = format!("longhaul_url_rewrite_{name}");
            Counter::define(&name).unwrap_or_else(|_| {
                missing.insert(name);
                Counter::default()
            })
        };
        let counters = Self {
            pages: counter("pages_total"),
            urls_moved: counter("urls_moved_total"),
            bytes_in: counter("bytes_in_total"),
            bytes_out: counter("bytes_out_total"),
            hosts_saved: counter("hosts_saved_total"),
            round_trips_saved: counter("round_trips_saved_total"),
            link_bytes_saved: counter("link_bytes_saved_total"),
            broken: counter("broken_total"),
            inlined: counter("inlined_total"),
            inlined_bytes: counter("inlined_bytes_total"),
            inline_kept: Kept::ALL
                .iter()
                .map(|it| counter(&format!("inline_kept_total_reason_{}", it.as_str())))
                .collect(),
            redirected: counter("redirected_total"),
            links_offered: counter("links_offered_total"),
            prefetched: counter("prefetched_total"),
            prefetch_failed: Failure::ALL
                .iter()
                .map(|it| counter(&format!("prefetch_failed_total_reason_{}", it.as_str())))
                .collect(),
            prefetch_skipped: Skip::ALL
                .iter()
                .map(|it| counter(&format!("prefetch_skipped_total_reason_{}", it.as_str())))
                .collect(),
            urls_left: Reason::ALL.iter().map(|it| counter(&format!("urls_left_total_reason_{it}"))).collect(),
            bail_outs: BailOut::ALL.iter().map(|it| counter(&format!("bail_outs_total_reason_{it}"))).collect(),
            bail_out_trailers: counter("bail_outs_total_reason_trailers"),
            refused: Refusal::ALL.iter().map(|it| counter(&format!("refused_total_reason_{}", it.as_str()))).collect(),
            refused_transparent_port: counter("refused_total_reason_transparent_port"),
            refused_upgrade: counter("refused_total_reason_not_an_object"),
        };
        (counters, missing)
    }

    pub(crate) fn replied(&self, because: ReplyReason) {
        let counter = match because {
            ReplyReason::Redirected => self.redirected,
            ReplyReason::LinkOffered => self.links_offered,
            ReplyReason::Refused(refusal) => self.refused.get(refusal.index()).copied().unwrap_or_default(),
            ReplyReason::PortNotListed => self.refused_transparent_port,
            ReplyReason::NotAnObject => self.refused_upgrade,
        };
        counter.add(1);
    }

    pub(crate) fn rewritten(&self, tally: &Tally, bail_out: Option<BailOut>) {
        self.urls_moved.add(tally.moved);
        for (reason, count) in tally.left() {
            self.urls_left.get(reason.index()).copied().unwrap_or_default().add(count);
        }
        self.inlined.add(tally.inlined);
        self.inlined_bytes.add(tally.inlined_bytes);
        for (reason, count) in tally.kept() {
            self.inline_kept.get(reason.index()).copied().unwrap_or_default().add(count);
        }
        let savings = tally.savings();
        self.hosts_saved.add(savings.hosts);
        self.round_trips_saved.add(savings.round_trips);
        self.link_bytes_saved.add(savings.bytes);
        if let Some(cause) = bail_out {
            self.bail_outs.get(cause.index()).copied().unwrap_or_default().add(1);
        }
    }

    /// A fetch ahead ended.
    pub(crate) fn fetched(&self, ended: Ended) {
        match ended {
            Ended::Stored => self.prefetched,
            Ended::Failed(why) => self.prefetch_failed.get(why.index()).copied().unwrap_or_default(),
        }
        .add(1);
    }

    /// An object, or a page's objects, were not fetched ahead.
    pub(crate) fn skipped(&self, why: Skip) {
        self.prefetch_skipped.get(why.index()).copied().unwrap_or_default().add(1);
    }

    /// Trailers came while bytes were held back, and those are lost.
    pub(crate) fn cut_by_trailers(&self) {
        self.bail_out_trailers.add(1);
    }
}
