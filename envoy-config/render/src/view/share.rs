//! Equal shares of the link, as a filter of Envoy.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ipnet::IpNet;
use longhaul_config::{PeerName, Role, Settings};
use longhaul_derive::Derived;
use serde::Serialize;

use super::pair::expression;
use super::transport::envoy;
use crate::Artifacts;
use crate::marks::Mark;
use crate::weighing::RemoteReport;
use crate::weights::{self, USUAL, Weights};

/// The runtime key of the limit, in KiB a second. Envoy demands one.
const RATE_KEY: &str = "longhaul.share_rate";
/// The runtime key that says that the ground reads the names of clients in front of their bytes. It is a percentage.
pub const NAMES_KEY: &str = "longhaul.names_clients";

/// The text of an IPv6 address (RFC 5952) whose first 64 bits are in the first or the second group. A subscriber has all
/// addresses behind them. No two subscribers have the same text, and one with zeros may have up to three. An IPv4 address
/// does not match.
const SUBSCRIBER: &str = "^(?:((?:[0-9a-f]+:){4}).*|([0-9a-f:]*?::(?:[0-9a-f]+:)*?)(?:[0-9a-f]+:){0,3}[0-9a-f]*)$";

/// The type of the PROXY protocol's field that has the name of a remote. It is one of those for use between two programs
/// (PROXY protocol, section 2.2, `PP2_TYPE_MIN_CUSTOM`).
const REMOTE_TLV: u8 = 0xea;
/// The window of a stream in the hops of a remote, in bytes. It is HTTP/2's default, and Envoy's least. So bytes that wait for
/// their share wait at the client.
pub(super) const HOP_WINDOW: u32 = 65_535;
/// The metadata in which Envoy's listener filter puts that field.
const REMOTE_IN_METADATA: &str = "%DYNAMIC_METADATA(envoy.filters.listener.proxy_protocol:remote)%";

/// Returns the socket of a remote at which `longhaul run` asks whether the ground reads the names of clients.
#[must_use]
pub fn names_socket(admin: &Path) -> PathBuf {
    admin.with_file_name("names.sock")
}

/// The limit of the direction in which this box sends over the link.
#[derive(Debug, Serialize)]
pub(super) struct Share {
    /// The key of Envoy's filter for this direction.
    limit: &'static str,
    /// The bucket of all streams. Envoy keeps a bucket with its interval for as long as it runs, so its name has both.
    bucket: String,
    kib_per_second: u32,
    fill_interval: String,
    /// The highest rate of one connection, in bytes a second, as the option of a socket takes it.
    pacing: i32,
    comment: String,
    rate_key: &'static str,
    names_key: &'static str,
    subscriber: &'static str,
    /// Clients of this remote with a weight of their own.
    weighed: Vec<Weighed>,
    /// The weight of all others.
    usual: u32,
    /// True if the places of the filter have files of their own.
    in_files: bool,
    /// The paths at which a remote reports: the weights of its clients, and a rate.
    weights_path: &'static str,
    rate_paths: [&'static str; 2],
    /// The mark, if `longhaul run` reads the lines.
    report_mark: Option<&'static str>,
    /// The remotes of a ground. Each has a bucket. All that a pattern covers are one here, and native filters know them apart.
    remotes: Vec<OfRemote>,
    /// The names of the remote, as the PROXY header in front of the bytes has them. Behind the hop `share`, the address is the
    /// client's.
    remote: &'static str,
    /// The names of a certificate, in Envoy's notation, and the field that carries them within Envoy.
    remote_names: &'static str,
    remote_tlv: u8,
    /// Envoy's words to read that field, and to pass it on.
    remote_rule: String,
    remote_passed: String,
    /// The hops of a ground in which connections take their share: streams of HTTP/1. Native filters have one for connections
    /// that cross the link as such. Those that are streams of the pipe take their share there.
    hops: &'static [&'static str],
    /// The Unix socket of connections that take their share as streams of the pipe. None: they take it in a hop.
    pub(super) streams_socket: Option<String>,
    /// The Unix socket of the question whether the ground reads the names.
    names_socket: String,
    /// The Unix socket of the listener `naming` of a remote.
    naming_socket: String,
    /// The Unix socket between the hops of a ground that share the link and those behind them.
    pub(super) socket: String,
}

/// Clients, and the weight of each in tenths.
#[derive(Debug, Serialize)]
struct Weighed {
    tenths: u32,
    ranges: Vec<Range>,
}

#[derive(Debug, Serialize)]
struct Range {
    address: String,
    bits: u8,
}

fn weighed(weights: &Weights) -> Vec<Weighed> {
    let range = |range: &IpNet| Range { address: range.network().to_string(), bits: range.prefix_len() };
    let group =
        |group: &weights::Weighed| Weighed { tenths: group.tenths, ranges: group.ranges.iter().map(range).collect() };
    weights.0.iter().map(group).collect()
}

/// The bucket of a remote.
#[derive(Debug, Serialize)]
struct OfRemote {
    bucket: String,
    /// Its clients with a weight of their own.
    weighed: Vec<Weighed>,
    /// The cluster of its clients' bytes that come in streams of the pipe.
    streams: String,
    /// The name, in base64.
    name: String,
    /// Envoy's input with the names of the certificate.
    input: &'static str,
    /// Matches a list of names with that of the remote.
    among_names: String,
}

/// The places of Envoy's filter in a ground. They are in files of their own, so that a new remote closes no connection.
const OF_A_GROUND: &[&str] = &["share", "share_text", "share_bytes", "share_hop"];
/// The place in a remote. It has a file of its own if there are groups of clients, so that a quota closes none either.
const OF_A_REMOTE: &[&str] = &["share_bytes"];

impl OfRemote {
    fn of(number: usize, name: &PeerName, bucket: &str, artifacts: &Artifacts) -> Self {
        let name_text = name.to_string();
        Self {
            weighed: artifacts.weighing.weights.get(&name_text).map(weighed).unwrap_or_default(),
            bucket: format!("{bucket}-{name}"),
            streams: format!("introduced_late_{}", number + 1),
            name: BASE64_STANDARD.encode(name_text),
            input: if is_uri(name) { "UriSanInput" } else { "DnsSanInput" },
            among_names: format!("(.*,)?{}(,.*)?", expression(name)),
        }
    }
}

fn is_uri(name: &PeerName) -> bool {
    matches!(name, PeerName::Spiffe { .. })
}

impl Share {
    /// Returns the places of the filter that have files of their own.
    pub(super) fn places_in_files(&self) -> &'static [&'static str] {
        match (self.in_files, self.remotes.is_empty()) {
            (false, _) => &[],
            (true, true) => OF_A_REMOTE,
            (true, false) => OF_A_GROUND,
        }
    }

    pub(super) fn of(settings: &Settings, derived: &Derived, artifacts: &Artifacts) -> Option<Self> {
        let is_native = artifacts.native.is_some();
        let shares = is_native || !derived.neighbours.needs_native();
        let limit = derived.neighbours.sent_by(&settings.role).filter(|_| shares)?;
        let fill_interval = envoy(limit.fill_interval);
        let bucket = format!("link-{}-{fill_interval}", limit.kib_per_second);
        let mut remotes: Vec<&PeerName> = match &settings.role {
            Role::Ground(ground) => ground.remotes.iter().collect(),
            Role::Remote(_) | Role::Edge => Vec::new(),
        };
        // The first one that has the name counts.
        remotes.sort_by_key(|name| !name.is_one());
        let socket = |name: &str| artifacts.admin.with_file_name(name).display().to_string();
        Some(Self {
            limit: if matches!(settings.role, Role::Remote(_)) { "request_limit" } else { "response_limit" },
            kib_per_second: limit.kib_per_second,
            comment: limit.formula.clone(),
            fill_interval,
            pacing: i32::try_from(limit.link_bytes_per_second).unwrap_or(i32::MAX),
            rate_key: RATE_KEY,
            names_key: NAMES_KEY,
            subscriber: SUBSCRIBER,
            remotes: remotes
                .iter()
                .enumerate()
                .map(|(number, name)| OfRemote::of(number, name, &bucket, artifacts))
                .collect(),
            weighed: weighed(&Weights::of(&settings.clients, &artifacts.weighing.slow)),
            usual: USUAL,
            // With native filters, the filter link-share has one file for all places.
            in_files: !is_native && (!remotes.is_empty() || !settings.clients.is_empty()),
            weights_path: Weights::PATH,
            rate_paths: [RemoteReport::LINK_PATH, RemoteReport::RATE_PATH],
            report_mark: artifacts.marks_pages.then_some(Mark::Report.word()),
            remote: REMOTE_IN_METADATA,
            remote_names: if remotes.iter().copied().any(is_uri) {
                "%DOWNSTREAM_PEER_DNS_SAN%,%DOWNSTREAM_PEER_URI_SAN%"
            } else {
                "%DOWNSTREAM_PEER_DNS_SAN%"
            },
            remote_tlv: REMOTE_TLV,
            remote_rule: format!(", rules: [ {{ tlv_type: {REMOTE_TLV}, on_tlv_present: {{ key: remote }} }} ]"),
            remote_passed: format!(", pass_through_tlvs: {{ match_type: INCLUDE, tlv_type: [{REMOTE_TLV}] }}"),
            hops: if is_native { &["share"] } else { &["share", "share_late"] },
            streams_socket: is_native.then(|| socket("streams.sock")),
            bucket,
            names_socket: names_socket(&artifacts.admin).display().to_string(),
            naming_socket: socket("naming.sock"),
            socket: socket("shared.sock"),
        })
    }
}
