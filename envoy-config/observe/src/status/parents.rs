//! The caching proxies of `cache.parent`, as Envoy's health checks see them.

use serde::Serialize;

use crate::scrape::Scrape;

/// A caching proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ParentStatus {
    /// Its address and port.
    pub address: String,
    /// True if it passes its health checks.
    pub up: bool,
}

impl ParentStatus {
    /// Reads the gauges, in the order of the addresses.
    pub(super) fn all(scrape: &Scrape) -> Vec<Self> {
        let nodes = scrape.values_where("envoy_cluster_endpoint_healthy", "envoy_endpoint_address", |of| {
            of("envoy_cluster_name").is_some_and(|cluster| cluster == "parents")
        });
        nodes.into_iter().map(|(address, healthy)| Self { address, up: healthy > 0 }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_proxy_has_a_gauge_of_its_own_and_without_gauges_there_is_none() {
        let text = "envoy_cluster_endpoint_healthy{envoy_cluster_name=\"parents\",envoy_endpoint_address=\"192.0.2.8:3128\"} 0\n\
                    envoy_cluster_endpoint_healthy{envoy_cluster_name=\"parents\",envoy_endpoint_address=\"192.0.2.7:3128\"} 1\n";
        let of = |address: &str, up| ParentStatus { address: address.to_owned(), up };
        assert_eq!(ParentStatus::all(&Scrape::parse(text)), [of("192.0.2.7:3128", true), of("192.0.2.8:3128", false)]);
        assert_eq!(
            ParentStatus::all(&Scrape::parse(
                "envoy_cluster_endpoint_healthy{envoy_cluster_name=\"x\",envoy_endpoint_address=\"192.0.2.7:1\"} 1\n"
            )),
            []
        );
    }
}
