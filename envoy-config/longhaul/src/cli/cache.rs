//! `longhaul cache`: what longhaul-objects has stored, and its removal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use image_variants::key::client_url;
use longhaul_config::HostName;
use longhaul_observe::table;
use longhaul_render::objects_folder;
use object_rules::groups::Groups;
use object_store::{Kind, Options, Store};

use super::{Outcome, fail, file_or_running, host_name, load_or_refuse, print, printable};
use crate::terminal::width;

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List the stored responses: status, bytes, remaining freshness and URL
    List(Which),
    /// Remove stored responses; the running box notices at once
    Purge(Purge),
    /// Read every stored response, and remove what a crash or a broken disk has torn
    Verify(Place),
}

#[derive(clap::Args)]
struct Place {
    /// The configuration file; optional if only one box runs
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The state folder of the run, if it was started with --state
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

#[derive(clap::Args)]
struct Which {
    #[command(flatten)]
    place: Place,
    /// Only the responses of this host
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    host: Option<HostName>,
}

#[derive(clap::Args)]
struct Purge {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    meant: Meant,
}

/// The responses that are removed.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Meant {
    /// The responses of this URL
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The responses of this host
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    host: Option<HostName>,
    /// All responses
    #[arg(long)]
    all: bool,
}

pub(super) fn command(arguments: &Arguments) -> Outcome {
    match &arguments.action {
        Action::List(which) => with_store(&which.place, |store, groups| list(store, which.host.as_ref(), groups)),
        Action::Purge(purge) => with_store(&purge.place, |store, groups| remove(store, &purge.meant, groups)),
        Action::Verify(place) => with_store(place, |store, _| verify(store)),
    }
}

/// Runs an action on the store of a configuration.
fn with_store(place: &Place, action: impl FnOnce(&Store, &Groups) -> Result<String, String>) -> Outcome {
    let file = file_or_running(place.file.as_deref(), place.state.as_deref(), "cache")?;
    let loaded = load_or_refuse(&file)?;
    let Some(folder) = objects_folder(&loaded.settings) else {
        return fail(&format!(
            "{} has no cache on disk: an edge or a ground has one, without `cache: off` and `cache.parent`",
            file.display()
        ));
    };
    let groups = loaded.settings.cache.host_groups();
    match opened(&folder).and_then(|store| store.map_or_else(|| Ok(nothing(&folder)), |store| action(&store, &groups)))
    {
        Ok(text) => print(&text),
        Err(error) => fail(&error),
    }
}

fn nothing(folder: &Path) -> String {
    format!("nothing is stored: {} does not exist yet\n", folder.display())
}

/// Opens the store. Returns None if nothing was ever stored.
fn opened(folder: &Path) -> Result<Option<Arc<Store>>, String> {
    if !folder.exists() {
        return Ok(None);
    }
    // It stores nothing, so no response gives way to another.
    let options = Options { folder: folder.to_path_buf(), max_bytes: u64::MAX, hot_bytes: 0 };
    Store::open(&options)
        .map(Some)
        .map_err(|error| format!("{error}. Run this command as the user of the box: sudo -u longhaul longhaul cache"))
}

fn list(store: &Store, host: Option<&HostName>, groups: &Groups) -> Result<String, String> {
    let now_s = std::time::SystemTime::now();
    let now_s = now_s.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut rows = Vec::new();
    let mut bytes = 0;
    let listed = store.list(|one| {
        let head = one.head;
        if head.kind == Kind::Varies || !host.is_none_or(|host| is_of(&head.url, host, groups)) {
            return;
        }
        bytes += one.disk_bytes;
        let left_s = head.life.lifetime_s.saturating_sub(head.life.age_at_s(now_s));
        let fresh = if left_s == 0 || head.life.always_validate { "stale".to_owned() } else { format!("{left_s} s") };
        let length = match head.kind {
            Kind::Slices => format!("{} of {}", one.stored_bytes, head.length),
            Kind::Object | Kind::Varies => head.length.to_string(),
        };
        rows.push(vec![head.status.to_string(), length, fresh, shown(&head.url)]);
    });
    listed.map_err(|error| format!("the store cannot be read: {error}"))?;
    rows.sort_by(|one, other| one.last().cmp(&other.last()));
    let header = ["status", "bytes", "fresh for", "URL"];
    Ok(format!("{}{} responses, {bytes} bytes on disk\n", table(&header, &rows, width()), rows.len()))
}

/// Returns a URL as the client requests it, and says if the response is the smaller variant of an image.
fn shown(url: &[u8]) -> String {
    let (url, is_variant) = client_url(url);
    printable(String::from_utf8_lossy(&url)) + if is_variant { " (WebP)" } else { "" }
}

fn remove(store: &Store, meant: &Meant, groups: &Groups) -> Result<String, String> {
    let url = meant.url.as_deref().map(|url| normal(url, groups)).transpose()?;
    let removed = store.purge(|stored| match (&url, &meant.host) {
        (Some(url), _) => client_url(stored).0 == url.as_bytes(),
        (None, Some(host)) => is_of(stored, host, groups),
        (None, None) => meant.all,
    });
    match removed {
        Ok(count) => Ok(format!("removed {count} files\n")),
        Err(error) => Err(format!("not everything was removed: {error}")),
    }
}

fn verify(store: &Store) -> Result<String, String> {
    let found = store.verify().map_err(|error| format!("the store cannot be read: {error}"))?;
    let unreadable = match found.unreadable {
        0 => String::new(),
        count => format!(", {count} could not be read: look at the disk"),
    };
    let blocks = match found.blocks {
        0 => String::new(),
        count => format!(", {count} torn blocks are removed"),
    };
    Ok(format!("{} files are whole, {} were torn and are removed{blocks}{unreadable}\n", found.good, found.removed))
}

/// Returns a URL as it is stored: with a lower-case host, and without the default port and the fragment.
fn normal(text: &str, groups: &Groups) -> Result<String, String> {
    let url = url::Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| format!("`{text}` is no URL; expected one such as http://www.example.org/style.css"))?;
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    let query = url.query().map_or_else(String::new, |query| format!("?{query}"));
    let (host, path) = (format!("{}{port}", url.host_str().unwrap_or_default()), format!("{}{query}", url.path()));
    let (host, path) = groups.named(host.as_bytes(), path.as_bytes());
    Ok(format!("{}://{}{}", url.scheme(), String::from_utf8_lossy(host), String::from_utf8_lossy(&path)))
}

/// Returns true if a stored URL is of this host, with any port.
fn is_of(url: &[u8], host: &HostName, groups: &Groups) -> bool {
    let text = String::from_utf8_lossy(url);
    let authority = text.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    let named = authority.split(':').next().unwrap_or_default();
    named.eq_ignore_ascii_case(host.as_str())
        || groups.of(host.as_str().as_bytes()).is_some_and(|group| named == group.name)
}

#[cfg(test)]
mod tests {
    use object_store::{Body, Head, Name};

    use object_rules::groups::{Covers, Group};

    use super::*;

    fn groups() -> Groups {
        Groups::new(vec![Group {
            name: "*.example.net".into(),
            hosts: vec![("example.net".into(), Covers::Below)],
            ignored: vec!["key".into()],
            by_validator: false,
        }])
    }

    #[test]
    fn a_url_is_compared_as_it_is_stored() {
        for (text, expected) in [
            ("http://WWW.example.org/A?b=1#c", "http://www.example.org/A?b=1"),
            ("https://www.example.org:443", "https://www.example.org/"),
            ("http://www.example.org:8080/a", "http://www.example.org:8080/a"),
            ("http://b.example.net/a?key=1&part=2", "http://*.example.net/a?part=2"),
        ] {
            assert_eq!(normal(text, &groups()).as_deref(), Ok(expected));
        }
        for text in ["www.example.org", "ftp://www.example.org/", "/a"] {
            assert!(normal(text, &groups()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_host_has_the_urls_with_its_name_alone() {
        for (host, url, expected) in [
            ("www.example.org", "http://www.example.org/", true),
            ("www.example.org", "https://www.example.org:8443/a", true),
            ("www.example.org", "http://example.org/www.example.org", false),
            ("www.example.org", "http://www.example.org.test/", false),
            ("b.example.net", "http://*.example.net/", true),
            ("example.net", "http://*.example.net/", false),
        ] {
            let host = HostName::parse(host).unwrap();
            assert_eq!(is_of(url.as_bytes(), &host, &groups()), expected, "{url}");
        }
    }

    #[test]
    fn an_object_in_blocks_is_listed_and_verified_by_its_blocks() {
        use std::os::unix::fs::FileExt;

        let folder = std::env::temp_dir().join(format!("longhaul-cache-{}", std::process::id()));
        let options = Options { folder: folder.clone(), max_bytes: 64 << 20, hot_bytes: 0 };
        let store = Store::open(&options).unwrap();
        let key = Name::of_url(b"http", b"www.example.org", b"/a").key;
        let marker = Head::varies(b"http://www.example.org/a", &[]);
        let head = Head { kind: Kind::Slices, status: 200, length: 3 << 20, ..marker };
        let object = store.begin_slices(key, head).unwrap();
        let Body::Slices(slices) = &object.body else { panic!("no blocks") };
        store.write_slices(key, slices, 0).unwrap().append(&vec![7; 1 << 20]).unwrap();
        let listed = list(&store, None, &groups()).unwrap();
        assert!(listed.contains("1048576 of 3145728") && listed.contains("1 responses"), "{listed}");
        let whole = "1 files are whole, 0 were torn and are removed";
        assert_eq!(verify(&store).unwrap(), format!("{whole}\n"));
        let name = key.to_string();
        let file = std::fs::OpenOptions::new().write(true).open(folder.join(&name[..2]).join(&name)).unwrap();
        file.write_all_at(&[0; 100], 1 << 19).unwrap();
        assert_eq!(verify(&store).unwrap(), format!("{whole}, 1 torn blocks are removed\n"));
        let listed = list(&store, None, &groups()).unwrap();
        assert!(listed.contains("0 of 3145728"), "{listed}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
