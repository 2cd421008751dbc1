//! `tracing`: spans of requests for an OpenTelemetry collector. Off by default, because spans contain the requests of
//! clients.

use crate::diagnostic::Problem;
use crate::reader::{Reader, Section};
use crate::settings::{RoleName, Tracing};

/// Reads the group. The outer None is a problem, and the inner None means off.
#[allow(clippy::option_option, reason = "the reader's own None means: already reported")]
pub(super) fn tracing(reader: &mut Reader, top: &Section<'_>, kind: RoleName) -> Option<Option<Tracing>> {
    let Some(written) = top.get("tracing").filter(|setting| !setting.is_off()) else { return Some(None) };
    if kind != RoleName::Edge {
        let problem = Problem::error("`tracing` is for role edge", written.key_place.clone(), "not with this role");
        reader.problems.push(problem.help("remove it"));
        return None;
    }
    let section = reader.section(top, "tracing");
    let what = "the collector's address for OTLP over HTTP, such as `collector: 127.0.0.1:4318`";
    let collector = reader.required(&section, "collector", what, Reader::socket);
    let sample_percent = reader.optional(&section, "sample_percent", Reader::number);
    Some(Some(Tracing { collector: collector?, sample_percent: sample_percent? }))
}
