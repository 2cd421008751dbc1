//! The reports of remotes, from an access log that Envoy writes for this program alone.

use longhaul_render::RemoteReport;

/// A report of a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct HeardReport {
    /// The names in its certificate.
    pub(in super::super) of: Vec<String>,
    pub(in super::super) report: RemoteReport,
}

/// Parses what follows the mark of a line.
pub(super) fn parse(rest: &str) -> Option<HeardReport> {
    let (names, target) = rest.strip_prefix(' ')?.split_once(' ')?;
    let of = names.split(',').map(str::to_owned).collect();
    Some(HeardReport { of, report: RemoteReport::parse(target)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_belongs_to_the_names_of_a_certificate() {
        let heard = parse(" ship.example,a.example /weights?40=192.0.2.0/28").unwrap();
        assert_eq!(heard.of, ["ship.example", "a.example"]);
        assert_eq!(heard.report.to_string(), "/weights?40=192.0.2.0/28");
        assert_eq!(parse(" ship.example /rate?8000000").unwrap().report.to_string(), "/rate?8000000");
        for line in [" ship.example /weights", " ship.example /?40=192.0.2.0/28", " /weights?"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
