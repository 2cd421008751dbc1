//! `log`: the access log. Off by default, because it holds the sites that clients visit.

use std::path::PathBuf;

use crate::access_log::{Log, LogWish, LoggedClients};
use crate::diagnostic::Problem;
use crate::reader::{Reader, Section, Setting};
use crate::settings::RoleName;

const SWITCH: [(&str, bool); 4] = [("off", false), ("false", false), ("on", true), ("true", true)];

pub(super) fn log(reader: &mut Reader, top: &Section<'_>, kind: RoleName) -> Option<Log> {
    let section = reader.section(top, "log");
    let access = reader.optional(&section, "access", wish);
    let keep = reader.optional(&section, "keep", Reader::time);
    let size = reader.optional(&section, "size", Reader::size);
    let words = [("cut", LoggedClients::Cut), ("whole", LoggedClients::Whole)];
    let clients = reader.optional(&section, "clients", |reader, setting| reader.word(setting, &words));
    let who = reader.optional(&section, "who", |reader, setting| reader.word(setting, &SWITCH));
    if let (Some(true), Some(written), false) = (who, section.get("who"), kind == RoleName::Remote) {
        let title = format!("`log.who` has no effect with `role: {}`", kind.as_str());
        let problem = Problem::error(title, written.key_place.clone(), "the remote counts what crosses the link");
        reader.problems.push(problem.help("remove it, and write it in the file of a remote"));
        return None;
    }
    Some(Log { access: access?, keep: keep?, size: size?, clients: clients?, who: who? })
}

/// Reads a word, or a path. A path has a slash, so that a misspelled word is no file.
fn wish(reader: &mut Reader, setting: &Setting<'_>) -> Option<LogWish> {
    match setting.switch() {
        Some(true) => return Some(LogWish::On),
        Some(false) => return Some(LogWish::Off),
        None => {}
    }
    let what = "`off`, `on`, `stderr` or the path of a file";
    let help =
        "`access: on` writes to the folder for logs of the service; a path has a slash, such as /srv/log/access.log";
    let text = reader.text(setting, what, help)?;
    if text == "stderr" {
        return Some(LogWish::Stderr);
    }
    let path: PathBuf = reader.resolve(text);
    if text.contains('/') && !text.ends_with('/') && path.file_name().is_some() {
        return Some(LogWish::File(path));
    }
    reader.expected(setting, what, help);
    None
}
