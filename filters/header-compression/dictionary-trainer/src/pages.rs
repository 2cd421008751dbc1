//! Extracts the URLs of saved pages. Traces of headers are few, and any page shows the form of paths.
//!
//! Only statistics of letters enter a dictionary from here, never a URL.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The most URLs of one host, so that a few large sites do not dominate the form of paths.
const PER_HOST: usize = 12;

/// Returns the authority and path of the URLs to which the pages under `folder` refer, in sorted order.
pub fn urls(folder: &Path) -> std::io::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    let mut urls = BTreeSet::new();
    for file in files {
        let text = fs::read(file)?;
        let text = String::from_utf8_lossy(&text);
        urls.extend(text.split(['"', '\'', '(', ')', ' ', '<', '>', '\n']).filter_map(split));
    }
    let mut taken = Vec::new();
    let mut host = (String::new(), 0);
    for (authority, path) in urls {
        if host.0 != authority {
            host = (authority.clone(), 0);
        }
        host.1 += 1;
        if host.1 <= PER_HOST {
            taken.push((authority, path));
        }
    }
    Ok(taken)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "html" || ending == "htm") {
            files.push(path);
        }
    }
    Ok(())
}

fn split(word: &str) -> Option<(String, String)> {
    let rest = word.strip_prefix("http:").or_else(|| word.strip_prefix("https:")).unwrap_or(word);
    let (authority, path) = rest.strip_prefix("//")?.split_once('/')?;
    let path = path.split('#').next().unwrap_or_default();
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let usable =
        !authority.is_empty() && authority.contains('.') && path.len() < 200 && plain(authority) && plain(path);
    usable.then(|| (authority.to_ascii_lowercase(), format!("/{}", path.replace("&amp;", "&"))))
}
