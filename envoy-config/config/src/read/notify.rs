//! `notify`: the program that is started when a problem begins or ends.

use std::path::PathBuf;

use crate::reader::{Reader, Section, Setting};
use crate::settings::Notify;
use crate::yaml::NodeValue;

const WHAT: &str = "`off`, the path of a program, or a list of a path and arguments";
const HELP: &str =
    "no shell reads it: write each argument as an item, as in `command: [/usr/local/bin/notice, --to, duty]`";

/// Reads the group. The outer None is a problem, and the inner None means off.
#[allow(clippy::option_option, reason = "the reader's own None means: already reported")]
pub(super) fn notify(reader: &mut Reader, top: &Section<'_>) -> Option<Option<Notify>> {
    let section = reader.section(top, "notify");
    reader.optional(&section, "command", command)
}

#[allow(clippy::option_option, reason = "the inner None means off")]
fn command(reader: &mut Reader, setting: &Setting<'_>) -> Option<Option<Notify>> {
    if setting.is_off() {
        return Some(None);
    }
    if let NodeValue::List(_) = &setting.node.value {
        let words = reader.list(setting, |reader, item| reader.text(item, WHAT, HELP).map(str::to_owned))?;
        if let Some((path, arguments)) = words.split_first() {
            return program(reader, setting, path, arguments.to_vec());
        }
        reader.expected(setting, WHAT, HELP);
        return None;
    }
    let path = reader.text(setting, WHAT, HELP)?;
    program(reader, setting, path, Vec::new())
}

/// Takes a path with a slash, so that a misspelled word is no file. A path with blanks is a command line for a shell.
#[allow(clippy::option_option, reason = "the inner None means off")]
fn program(reader: &mut Reader, setting: &Setting<'_>, path: &str, arguments: Vec<String>) -> Option<Option<Notify>> {
    let resolved: PathBuf = reader.resolve(path);
    if path.contains('/') && !path.contains(' ') && resolved.file_name().is_some() {
        return Some(Some(Notify { program: resolved, arguments }));
    }
    reader.expected(setting, WHAT, HELP);
    None
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::settings::Notify;
    use crate::{LoadError, load_text};

    fn read(value: &str) -> Result<Option<Notify>, LoadError> {
        let text = format!(
            "link: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\nproxy: {{ addresses: [198.51.100.12] }}\n\
             upstream: {{ resolvers: [192.0.2.53] }}\nnotify: {value}\n"
        );
        load_text(Path::new("/etc/longhaul/longhaul.yaml"), text).map(|loaded| loaded.settings.notify)
    }

    #[test]
    fn a_command_is_a_path_or_a_path_with_arguments() {
        let notify = |program: &str, arguments: &[&str]| {
            let arguments = arguments.iter().map(|one| (*one).to_owned()).collect();
            Some(Notify { program: program.into(), arguments })
        };
        assert_eq!(read("{ command: /usr/local/bin/notice }").unwrap(), notify("/usr/local/bin/notice", &[]));
        assert_eq!(read("{ command: [./notice, a b] }").unwrap(), notify("/etc/longhaul/./notice", &["a b"]));
        assert_eq!(read("{ command: off }").unwrap(), None);
        assert_eq!(read("{}").unwrap(), None);
    }

    #[test]
    fn a_line_for_a_shell_and_a_word_are_refused_with_the_right_form() {
        for value in ["{ command: /bin/mail -s box duty }", "{ command: mail }", "{ command: [] }", "{ command: on }"] {
            let error = read(value).unwrap_err().to_string();
            let said = match read(value) {
                Err(LoadError::Refused(report)) => report.render(false),
                _ => error,
            };
            assert!(
                said.contains("bad value for `notify.command`") && said.contains("no shell reads it"),
                "{value}: {said}"
            );
        }
    }
}
