//! `dns`: the lists of steered names, and the form of the responses.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net};

use crate::allowlist::{self, LineError, Listed, NamePattern};
use crate::diagnostic::Problem;
use crate::policy_zone;
use crate::reader::{LIST_ENDINGS, Reader, Section, Setting};
use crate::settings::{AaaaPolicy, Dns, DnsMode, DnssecPolicy, HttpsPolicy, InstantWish, LookupTransport, Ttl};
use crate::units::show_duration;
use crate::yaml::NodeValue;

use super::list;

/// The longest TTL. Resolvers may cap TTLs (RFC 2181 section 8), and RFC 8767 section 4 recommends a week as the cap.
const MAX_TTL: Duration = Duration::from_hours(7 * 24);

pub(super) fn dns(reader: &mut Reader, top: &Section<'_>) -> Option<Dns> {
    let section = reader.section(top, "dns");
    let mut zones = PolicyZones::default();
    let domains = reader.optional(&section, "domains", |reader, setting| {
        let files = reader.list(setting, |reader, item| {
            let path = reader.path(item, "a file with one name a line")?;
            if !path.exists() && reader.is_name_for_file(item) {
                return None;
            }
            check_list(reader, item, &path, &mut zones).then_some(path)
        });
        reader.without_duplicates(setting, files)
    });
    let listed = domains.clone().unwrap_or_default();
    let except = reader.optional(&section, "except", |reader, setting| {
        let exceptions = reader.list(setting, |reader, item| exception(reader, item, &listed, &mut zones));
        reader.without_duplicates(setting, exceptions)
    });
    let www = reader.optional(&section, "www", Reader::boolean);
    let mode = mode(reader, &section);
    let ttl = ttl(reader, &section, mode);
    let aaaa = reader.optional(&section, "aaaa", |reader, setting| {
        reader.word(setting, &[("nodata", AaaaPolicy::Nodata), ("pass", AaaaPolicy::Pass)])
    });
    let https = reader.optional(&section, "https", |reader, setting| {
        reader.word(
            setting,
            &[("nodata", HttpsPolicy::Nodata), ("strip", HttpsPolicy::Strip), ("pass", HttpsPolicy::Pass)],
        )
    });
    let dnssec = reader.optional(&section, "dnssec", |reader, setting| {
        reader.word(setting, &[("skip", DnssecPolicy::Skip), ("break", DnssecPolicy::Break)])
    });
    let canary = reader.optional(&section, "canary", Reader::boolean);
    let encrypted = reader
        .optional(&section, "encrypted", |reader, setting| reader.word(setting, &[("auto", true), ("off", false)]));
    let reload = reader.optional(&section, "reload", |reader, setting| {
        if setting.is_off() || setting.text() == Some("0") { Some(Duration::ZERO) } else { reader.duration(setting) }
    });
    let remember = reader.optional(&section, "remember", remember);
    let push = reader.optional(&section, "push", Reader::boolean);
    let instant = reader.optional(&section, "instant", |reader, setting| {
        reader.word(setting, &[("auto", InstantWish::Auto), ("on", InstantWish::On), ("off", InstantWish::Off)])
    });
    let instant_range = reader.optional(&section, "instant_range", instant_range);
    let health = reader.optional(&section, "health", Reader::boolean);
    let bypass = reader.optional(&section, "bypass", |reader, setting| {
        let ranges = reader.list(setting, Reader::network);
        reader.without_duplicates(setting, ranges)
    });
    let (mut except_names, mut except_files) = (Vec::new(), Vec::new());
    for exception in except? {
        match exception {
            Exception::Name(name) => except_names.push(name),
            Exception::File(path) => except_files.push(path),
        }
    }
    warn_of_no_name_left(reader, &section, &listed, &except_names, &except_files);
    except_files.retain(|path| !zones.files.contains(path));
    let mut domains = domains?;
    domains.retain(|path| !zones.hide_exceptions && !zones.files.contains(path));
    Some(Dns {
        domains,
        except_names,
        except_files,
        www: www? && !zones.hide_exceptions,
        mode: mode?,
        ttl: ttl?,
        aaaa: aaaa?,
        https: https?,
        dnssec: dnssec?,
        canary: canary?,
        encrypted: encrypted?.then(|| LookupTransport::ALL.to_vec()),
        reload: reload?,
        health: health?,
        remember: remember?,
        push: push?,
        instant: instant?,
        instant_range: instant_range?,
        bypass: bypass?,
    })
}

#[derive(PartialEq)]
enum Exception {
    Name(NamePattern),
    File(PathBuf),
}

/// The response policy zones among the lists. They are not read.
#[derive(Default)]
struct PolicyZones {
    files: Vec<PathBuf>,
    /// True if one of them has exceptions. Nothing is steered then, because the exceptions are not known.
    hide_exceptions: bool,
}

/// Reads an exception. `listed` are the lists of steered names.
fn exception(
    reader: &mut Reader,
    setting: &Setting<'_>,
    listed: &[PathBuf],
    zones: &mut PolicyZones,
) -> Option<Exception> {
    let text = reader.text(setting, "a name or a file of names", "")?;
    if reader.is_url_of_name(setting, "a name or a file of names") {
        return None;
    }
    if text.contains('/') || LIST_ENDINGS.iter().any(|ending| text.ends_with(ending)) {
        let path = reader.path(setting, "a name or a file of names")?;
        if listed.contains(&path) {
            reader.bad(
                setting,
                "this list is in `dns.domains`, too",
                "keep it in one of the two: its names are steered or not",
            );
            return None;
        }
        return check_list(reader, setting, &path, zones).then_some(Exception::File(path));
    }
    match NamePattern::parse(text) {
        Ok(name) => Some(Exception::Name(name)),
        Err(error) => {
            reader.bad(
                setting,
                format!("expected a name or a file of names, found `{text}`: {error}"),
                "names: example.org, =example.org, *.example.org; a file has a `/` or ends in .txt",
            );
            None
        }
    }
}

impl PolicyZones {
    /// Takes note of a zone, and warns that it is not read.
    fn add(&mut self, setting: &Setting<'_>, path: &Path, text: &str) -> Problem {
        let excepts = setting.name.starts_with("dns.except");
        let label = if excepts || policy_zone::has_exceptions(text) {
            self.hide_exceptions = true;
            "no name is steered, because the exceptions in it are not known"
        } else {
            "its names are not steered"
        };
        self.files.push(path.to_owned());
        let (command, name) = (policy_zone::conversion(path), setting.text().unwrap_or_default());
        let names = if excepts { "dns.except" } else { "dns.domains" };
        Problem::warning(
            format!("`{}` names a response policy zone, which is not read any more", setting.name),
            setting.place(),
            label,
        )
        .help(format!(
            "convert it: {command}\nThen write `{name}.txt` in `{names}` instead, and `{name}.except.txt` in `dns.except` if that file is there"
        ))
    }
}

/// Warns if `dns.except` removes every name of `dns.domains`. Stops at the first name that is left, which is usually the
/// first one.
fn warn_of_no_name_left(
    reader: &mut Reader,
    section: &Section<'_>,
    lists: &[PathBuf],
    except_names: &[NamePattern],
    except_files: &[PathBuf],
) {
    let (Some(domains), Some(except)) = (section.get("domains"), section.get("except")) else { return };
    let listed = Listed::read(lists, except_names, except_files);
    if !listed.is_empty() && listed.steered().next().is_none() {
        let title = "`dns.except` removes all names of `dns.domains`";
        let problem = Problem::warning(title, except.place(), "no listed name is steered");
        let help = "remove the names from `except` that are to be steered; `=example.org` excepts that name alone";
        reader.problems.push(problem.and(domains.place(), "the listed names").help(help));
    }
}

/// Reads a list and reports each bad line with its place in the list.
fn check_list(reader: &mut Reader, setting: &Setting<'_>, path: &Path, zones: &mut PolicyZones) -> bool {
    let Some(text) = reader.file_text(setting, path) else { return false };
    match allowlist::check(&text) {
        Err(errors) if errors.iter().any(|error| error.error == LineError::PolicyZone) => {
            let warning = zones.add(setting, path, &text);
            reader.problems.push(warning);
            true
        }
        checked => list::is_usable(reader, setting, path, checked),
    }
}

/// Reads the time for which responses are kept. Less than an hour would be worse than the cache without it.
fn remember(reader: &mut Reader, setting: &Setting<'_>) -> Option<Duration> {
    const RANGE: RangeInclusive<Duration> = Duration::from_hours(1)..=Duration::from_hours(30 * 24);
    if setting.is_off() {
        return Some(Duration::ZERO);
    }
    let time = reader.duration(setting)?;
    if !RANGE.contains(&time) {
        reader.bad(
            setting,
            format!("responses cannot be kept for {}", show_duration(time)),
            "expected 1h to 30d, or off",
        );
        return None;
    }
    Some(time)
}

/// The ranges in which no server on the Internet has an address, and which browsers take for public. Before a public page
/// reaches a private address, browsers ask the user.
const FOR_INSTANT_ANSWERS: [Ipv4Net; 6] = [
    Dns::INSTANT_RANGE,
    Ipv4Net::new_assert(Ipv4Addr::new(192, 0, 2, 0), 24),
    Ipv4Net::new_assert(Ipv4Addr::new(198, 51, 100, 0), 24),
    Ipv4Net::new_assert(Ipv4Addr::new(203, 0, 113, 0), 24),
    Ipv4Net::new_assert(Ipv4Addr::new(192, 88, 99, 0), 24),
    Ipv4Net::new_assert(Ipv4Addr::new(240, 0, 0, 0), 4),
];
/// The longest prefix. Each address stays with its name for minutes, so a smaller range would be full soon.
const LONGEST_INSTANT_PREFIX: u8 = 24;

/// Reads the range of addresses that names have before the truth is known.
fn instant_range(reader: &mut Reader, setting: &Setting<'_>) -> Option<Ipv4Net> {
    let network = reader.network(setting)?;
    let usable = |range: &Ipv4Net| FOR_INSTANT_ANSWERS.iter().any(|whole| whole.contains(range));
    match network {
        IpNet::V4(range) if range.prefix_len() <= LONGEST_INSTANT_PREFIX && usable(&range) => Some(range),
        _ => {
            let help =
                "expected a range of IPv4 from /4 to /24 in 198.18.0.0/15 or 240.0.0.0/4, or a range for documentation";
            reader.bad(setting, format!("names cannot have addresses in {network}"), help);
            None
        }
    }
}

fn mode(reader: &mut Reader, section: &Section<'_>) -> Option<DnsMode> {
    let max_origin = reader.optional(section, "max_origin", |reader, setting| {
        reader.number(setting).and_then(|count| u8::try_from(count).ok())
    });
    let replace = reader
        .optional(section, "mode", |reader, setting| reader.word(setting, &[("prepend", false), ("replace", true)]));
    match (replace?, max_origin?, section.get("max_origin"), section.get("mode")) {
        (false, max_origin, ..) => Some(DnsMode::Prepend { max_origin }),
        (true, _, Some(kept), Some(mode)) => {
            reader.problems.push(
                Problem::error(
                    "`dns.max_origin` contradicts `dns.mode: replace`",
                    kept.place(),
                    "keeps origin addresses",
                )
                .and(mode.place(), "keeps none")
                .help("remove `max_origin`, or write `mode: prepend`"),
            );
            Some(DnsMode::Replace)
        }
        (true, ..) => Some(DnsMode::Replace),
    }
}

fn ttl(reader: &mut Reader, section: &Section<'_>, mode: Option<DnsMode>) -> Option<Ttl> {
    // In mode `replace` a client knows no address but the proxy's. If it moves to another network, it cannot reach the
    // site until the TTL ends.
    reader.optional_unless(section, "ttl", mode == Some(DnsMode::Replace), written_ttl)
}

fn written_ttl(reader: &mut Reader, setting: &Setting<'_>) -> Option<Ttl> {
    const WHAT: &str = "a time, or two times `[60s, 1h]`";
    if let NodeValue::List(_) = &setting.node.value {
        let times = reader.list(setting, one_ttl)?;
        let [min, max] = times.as_slice() else {
            reader.expected(setting, WHAT, "the two are the smallest and the largest TTL");
            return None;
        };
        if min > max {
            reader.bad(
                setting,
                format!("{} is more than {}", show_duration(*min), show_duration(*max)),
                "write the smaller one first",
            );
            return None;
        }
        return Some(Ttl { min: *min, max: *max });
    }
    let time = one_ttl(reader, setting)?;
    Some(Ttl { min: time, max: time })
}

/// Reads one TTL, in whole seconds as in DNS messages.
fn one_ttl(reader: &mut Reader, setting: &Setting<'_>) -> Option<Duration> {
    let time = reader.duration_in(setting, Duration::from_secs(1)..=MAX_TTL)?;
    if time.subsec_nanos() != 0 {
        let help = format!("write whole seconds, such as `{}s`", time.as_secs());
        reader.bad(setting, format!("{} is not a TTL", show_duration(time)), &help);
        return None;
    }
    Some(time)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use crate::load_text;

    #[test]
    fn a_policy_zone_is_skipped_and_if_it_has_exceptions_nothing_is_steered() {
        let folder = tempfile::tempdir().unwrap();
        let soa = "@ SOA localhost. nobody.invalid. 1 2 3 4 5\n";
        for (name, text) in [
            ("list.txt", "example.org\n".to_owned()),
            ("plain.zone", format!("{soa}example.net A 192.0.2.1\n")),
            ("excepting.zone", format!("{soa}bank.example CNAME rpz-passthru.\n")),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        for (lists, warns, steers) in [
            ("domains: [list.txt], except: [bank.example]", false, true),
            ("domains: [list.txt, plain.zone]", true, true),
            ("domains: [list.txt, excepting.zone]", true, false),
            ("domains: [list.txt], except: [./plain.zone]", true, false),
        ] {
            let text = format!(
                "link: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\nproxy: {{ addresses: [198.51.100.12] }}\n\
                 upstream: {{ resolvers: [192.0.2.53] }}\ndns: {{ www: true, {lists} }}\n"
            );
            let loaded = load_text(&folder.path().join("longhaul.yaml"), text).unwrap();
            let warned =
                loaded.report.render(false).contains("names a response policy zone, which is not read any more");
            assert_eq!(warned, warns, "{lists}");
            let dns = &loaded.settings.dns;
            let expected = if steers { vec![folder.path().join("list.txt")] } else { Vec::new() };
            assert_eq!((&dns.domains, dns.www), (&expected, steers), "{lists}");
            assert!(dns.except_files.is_empty(), "{lists}");
        }
    }

    #[test]
    fn responses_are_kept_for_an_hour_to_a_month_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let load = |dns: &str| {
            let text = format!(
                "link: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\nproxy: {{ addresses: [198.51.100.12] }}\n\
                 upstream: {{ resolvers: [192.0.2.53] }}\ndns: {{ {dns} }}\n"
            );
            load_text(&folder.path().join("longhaul.yaml"), text)
        };
        for (written, days) in [("", 7), ("remember: 1d", 1), ("remember: off", 0)] {
            let kept = load(written).unwrap().settings.dns.remember;
            assert_eq!(kept, Duration::from_hours(24 * days), "{written}");
        }
        for wrong in ["remember: 1s", "remember: 31d", "remember: always", "remember: 0"] {
            assert!(load(wrong).is_err(), "{wrong}");
        }
        // This file is an edge's.
        let warned = |dns| load(dns).unwrap().report.render(false).contains("`dns.remember` has no effect");
        assert_eq!((warned("remember: 1d"), warned("")), (true, false));
    }
}
