//! Reports of the remote. It sends one when the flight's visitor has had the time to request everything. A report names
//! the objects that were used, the objects that the remote has lost, and URLs that were requested beside them. It is
//! the path of a request; `filters/bundling/README.md` has the format.

use hex::FromHex as _;
use url::form_urlencoded;

use crate::digest::FlightId;
use crate::limits;
use crate::log::{Flight, State};

/// A report as the ground reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Report {
    used: Vec<u8>,
    lost: Vec<u8>,
    /// URLs that the browser requested on the page's behalf and that were not in the manifest.
    pub(crate) others: Vec<String>,
}

/// The meaning of a request to the ground.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Path {
    /// A slot of the flight.
    Slot(FlightId),
    /// A report on the flight.
    Report(FlightId, Report),
}

impl Report {
    /// Returns true if the browser requested the object `index` while the remote had it.
    pub(crate) fn used(&self, index: usize) -> bool {
        bit(&self.used, index)
    }

    /// Returns true if the ground believed the object `index` to be at the remote, and it was not.
    pub(crate) fn lost(&self, index: usize) -> bool {
        bit(&self.lost, index)
    }
}

fn bit(bits: &[u8], index: usize) -> bool {
    bits.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

/// Returns the path of a slot.
pub(crate) fn slot(id: &FlightId) -> String {
    format!("/{}", hex::encode(id))
}

/// Returns the path of a report; `None` if there is nothing to report.
pub(crate) fn write(flight: &Flight) -> Option<String> {
    if flight.entries.is_empty() && flight.others.is_empty() {
        return None;
    }
    let bits = |state: &State| {
        let bytes = flight.entries.chunks(8).map(|eight| {
            eight.iter().enumerate().fold(0, |byte: u8, (bit, entry)| byte | (u8::from(entry.state == *state) << bit))
        });
        hex::encode(bytes.collect::<Vec<u8>>())
    };
    let before = slot(&flight.id) + "?";
    let query_at = before.len();
    let mut path = form_urlencoded::Serializer::for_suffix(before, query_at);
    path.append_pair("used", &bits(&State::Used)).append_pair("lost", &bits(&State::Lost));
    path.extend_pairs(flight.others.iter().map(|url| ("other", url)));
    Some(path.finish())
}

/// Reads a path that [`slot`] or [`write`] made. Omits URLs that no browser would request in this spelling.
pub(crate) fn read(path: &str) -> Option<Path> {
    let path = path.strip_prefix('/')?;
    let Some((id, query)) = path.split_once('?') else { return Some(Path::Slot(FlightId::from_hex(path).ok()?)) };
    let id = FlightId::from_hex(id).ok()?;
    let (mut report, mut is_report) = (Report::default(), false);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "used" => {
                report.used = hex::decode(&*value).unwrap_or_default();
                is_report = true;
            }
            "lost" => report.lost = hex::decode(&*value).unwrap_or_default(),
            "other" if report.others.len() < limits::OTHERS && is_plain(&value) => report.others.push(value.into()),
            _ => {}
        }
    }
    is_report.then_some(Path::Report(id, report))
}

/// Returns true for an http URL in the spelling of browsers, without credentials and fragment.
fn is_plain(text: &str) -> bool {
    let Some(url) = url::Url::parse(text).ok().filter(|_| text.len() <= limits::OTHERS_BYTES) else { return false };
    let is_bare = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    url.scheme() == "http" && url.has_host() && is_bare && url.as_str() == text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Entry;
    use proptest::prelude::*;

    fn flight(states: Vec<State>, others: &[&str]) -> Flight {
        let entries = states.into_iter().map(|state| Entry { mark: [0; 16], state }).collect();
        let others = others.iter().map(|url| (*url).to_owned()).collect();
        Flight { id: [7; 16], entries, others, ..Flight::default() }
    }

    #[test]
    fn a_report_reads_back_as_it_was_written() {
        let mut states = vec![State::Coming; 12];
        states[0] = State::Used;
        states[9] = State::Used;
        states[11] = State::Lost;
        let url = "http://a.test/x.png?a=b&c=%20+d";
        let path = write(&flight(states, &[url])).unwrap();
        let Some(Path::Report(id, report)) = read(&path) else { panic!("{path}") };
        assert_eq!((id, &*report.others), ([7; 16], &[url.to_owned()][..]));
        let of = |is: &dyn Fn(usize) -> bool| (0..40).filter(|index| is(*index)).collect::<Vec<_>>();
        assert_eq!((of(&|index| report.used(index)), of(&|index| report.lost(index))), (vec![0, 9], vec![11]));
        assert_eq!(write(&flight(vec![], &[])), None, "nothing to say");
        assert_eq!(read(&slot(&[9; 16])), Some(Path::Slot([9; 16])));
    }

    #[test]
    fn a_name_is_hexadecimal_digits_and_nothing_else() {
        let digits = slot(&[0x0f; 16]);
        assert_eq!(read(&digits.to_uppercase()), read(&digits));
        for other in [digits.replace("0f", "+f"), digits.replacen('f', "g", 1), digits.replacen("0f", "\u{e9}", 1)] {
            assert_eq!(read(&other), None, "{other}");
        }
        for length in [1, digits.len() - 2, digits.len() - 1] {
            assert_eq!(read(&digits[..length]), None, "{length}");
        }
    }

    #[test]
    fn urls_that_no_browser_asks_for_so_and_too_many_are_left_out() {
        for url in [
            "https://a.test/",
            "http://user@a.test/",
            "http://a.test/#f",
            "http://A.test/",
            "http://a.test",
            "/x",
            "http://a.test/ x",
            "http:///x",
            "ftp://a.test/",
        ] {
            let Some(Path::Report(_, report)) = read(&write(&flight(vec![], &[url])).unwrap()) else { panic!("{url}") };
            assert_eq!(report.others, [""; 0], "{url}");
        }
        let many = vec!["http://a.test/"; limits::OTHERS + 5];
        let Some(Path::Report(_, report)) = read(&write(&flight(vec![], &many)).unwrap()) else { panic!() };
        assert_eq!(report.others.len(), limits::OTHERS);
    }

    proptest! {
        #[test]
        fn hostile_paths_are_refused_or_bounded(tail: String) {
            for path in [tail.clone(), format!("/{}?used=&{tail}", "0".repeat(32))] {
                if let Some(Path::Report(_, report)) = read(&path) {
                    prop_assert!(report.others.len() <= limits::OTHERS);
                    prop_assert!(report.others.iter().all(|url| url.starts_with("http://")));
                }
            }
        }
    }
}
