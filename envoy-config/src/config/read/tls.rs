//! `tls.terminate`: certificates the operator holds.

use std::path::{Path, PathBuf};

use crate::config::diagnostic::Problem;
use crate::config::names::Host;
use crate::config::reader::{Reader, Section, Setting};
use crate::config::settings::Termination;

pub(super) fn terminate(reader: &mut Reader, top: &Section<'_>) -> Option<Vec<Termination>> {
    let section = reader.section(top, "tls", &["terminate"]);
    let entries = reader.optional(&section, "terminate", Vec::new(), |reader, setting| {
        let entries = reader.list(setting, |reader, item| {
            let entry = termination(reader, item)?;
            Some((entry, item.place()))
        })?;
        refuse_names_in_two_entries(reader, &entries)?;
        Some(entries)
    })?;
    Some(entries.into_iter().map(|(entry, _)| entry).collect())
}

fn termination(reader: &mut Reader, item: &Setting<'_>) -> Option<Termination> {
    const EXAMPLE: &str = "write `{ names: [portal.example], cert: portal.pem, key: portal.key }`";
    let group = reader.group(item, "tls.terminate[]", &["names", "cert", "key"], EXAMPLE)?;
    let names = reader.required(
        &group,
        "names",
        "the names served with it, such as `names: [portal.example]`",
        |reader, setting| {
            let names = reader.list(setting, Reader::host);
            let names = reader.without_duplicates(setting, names)?;
            if names.is_empty() {
                reader.expected(setting, "at least one name", EXAMPLE);
                return None;
            }
            Some(names)
        },
    );
    let cert = reader.required(&group, "cert", "the PEM file with its certificate chain", |reader, setting| {
        pem(reader, setting, "CERTIFICATE")
    });
    let key = reader.required(&group, "key", "the PEM file with its private key", |reader, setting| {
        pem(reader, setting, "PRIVATE KEY")
    });
    Some(Termination { names: names?, cert: cert?, key: key? })
}

/// A readable file with a PEM block of this kind. Whether key and certificate belong together Envoy says on loading.
fn pem(reader: &mut Reader, setting: &Setting<'_>, kind: &str) -> Option<PathBuf> {
    let path: PathBuf = reader.path(setting, "a PEM file")?;
    let text = reader.file_text(setting, &path)?;
    if has_pem_block(&text, kind) {
        return Some(path);
    }
    let label = format!("no `{kind}` block in {}", Path::new(&path).display());
    reader.problems.push(
        Problem::error(format!("`{}` names a file of another kind", setting.name), setting.place(), label)
            .help("expected PEM: -----BEGIN ...-----"),
    );
    None
}

fn has_pem_block(text: &str, kind: &str) -> bool {
    text.lines().any(|line| {
        line.trim_end()
            .strip_prefix("-----BEGIN ")
            .and_then(|rest| rest.strip_suffix("-----"))
            .is_some_and(|label| label.ends_with(kind))
    })
}

fn refuse_names_in_two_entries(reader: &mut Reader, entries: &[(Termination, std::ops::Range<usize>)]) -> Option<()> {
    let mut clean = true;
    for (index, (entry, place)) in entries.iter().enumerate() {
        for (earlier, first) in entries.iter().take(index) {
            let shared: Vec<&Host> = entry.names.iter().filter(|name| earlier.names.contains(name)).collect();
            for name in shared {
                reader.problems.push(
                    Problem::error(
                        format!("`{name}` has two certificates under `tls.terminate`"),
                        place.clone(),
                        "again here",
                    )
                    .and(first.clone(), "first here")
                    .help("name it in one entry"),
                );
                clean = false;
            }
        }
    }
    clean.then_some(())
}

#[cfg(test)]
mod tests {
    use super::has_pem_block;

    #[test]
    fn a_pem_block_is_found_by_its_kind_alone() {
        let key = "-----BEGIN EC PRIVATE KEY-----\nAA==\n-----END EC PRIVATE KEY-----\n";
        assert!(has_pem_block(key, "PRIVATE KEY"));
        assert!(!has_pem_block(key, "CERTIFICATE"));
        assert!(!has_pem_block("PRIVATE KEY", "PRIVATE KEY"));
    }
}
