//! `compare`: the share of clients that are left alone for comparison.

use crate::diagnostic::Problem;
use crate::reader::{Reader, Section};
use crate::settings::RoleName;
use crate::share::Share;

/// Reads the key. The outer None is a problem, and the inner None means off.
#[allow(clippy::option_option, reason = "the reader's own None means: already reported")]
pub(super) fn compare(reader: &mut Reader, top: &Section<'_>, kind: RoleName) -> Option<Option<Share>> {
    let share = reader.optional(top, "compare", |reader, setting| {
        if setting.is_off() {
            return Some(None);
        }
        let what = format!("a share of clients from {}% to {}%, or `off`", Share::LEAST, Share::MOST);
        let share = Share::parse(reader.text(setting, &what, "")?);
        if share.is_none() {
            reader.expected(
                setting,
                &what,
                "write `compare: 5%`; a second group of the same size is measured beside it",
            );
        }
        share.map(Some)
    })?;
    if let (Some(_), RoleName::Ground, Some(written)) = (share, kind, top.get("compare")) {
        let title = "`compare` has no effect with `role: ground`";
        let problem = Problem::error(title, written.key_place.clone(), "clients are at the remote");
        reader.problems.push(problem.help("remove it, and write it in the remote's file"));
        return None;
    }
    Some(share)
}
