//! A program, its folder and its origin.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, Reply};
use crate::origin::{Answer, Origin};

/// The sizes of the configuration, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) disk: u64,
    pub(crate) hot: u64,
    pub(crate) object: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { disk: 64 << 20, hot: 4 << 20, object: 8 << 20 }
    }
}

pub(crate) struct Program {
    child: Child,
    pub(crate) socket: PathBuf,
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Program {
    /// Starts a program with the words of `before` in front of its command line.
    fn start(folder: &Path, name: &str, sizes: Sizes, groups: &Value, before: &[&str]) -> Self {
        let path = |name: &str| folder.join(name);
        let socket = path(&format!("{name}.sock"));
        let config = json!({
            "listen": socket,
            "origin": path("origin.sock"),
            "metrics": path(&format!("{name}-metrics.sock")),
            "folder": path("store"),
            "disk_bytes": sizes.disk,
            "hot_bytes": sizes.hot,
            "object_bytes": sizes.object,
            "groups": groups,
            "plain_fields": ["x-app-version"],
            "images": true,
        });
        let file = path(&format!("{name}.json"));
        std::fs::write(&file, config.to_string()).unwrap();
        let words: Vec<&str> = before.iter().copied().chain([env!("CARGO_BIN_EXE_longhaul-objects")]).collect();
        let child = Command::new(words[0]).args(&words[1..]).arg(file).spawn().unwrap();
        let mut program = Self { child, socket };
        wait("the program serves", || {
            assert!(program.ended().is_none(), "the program has ended");
            UnixStream::connect(&program.socket).is_ok()
        });
        program
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGTERM.
    pub(crate) fn ask_to_end(&self) {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
    }

    /// Returns the number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns true if the program has begun to end: it refuses connections at once, so that Envoy passes it by.
    pub(crate) fn refuses(&self) -> bool {
        UnixStream::connect(&self.socket).is_err()
    }

    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    pub(crate) fn send(&self, path: &str, fields: &str) -> Client {
        Client::send(&self.socket, "GET", path, fields)
    }

    pub(crate) fn get(&self, path: &str, fields: &str) -> Reply {
        self.send(path, fields).end()
    }
}

pub(crate) struct Bed {
    folder: TempDir,
    pub(crate) origin: Origin,
    pub(crate) program: Program,
    sizes: Sizes,
    groups: Value,
}

impl Bed {
    pub(crate) fn new() -> Self {
        Self::with(Sizes::default(), &[])
    }

    pub(crate) fn with(sizes: Sizes, before: &[&str]) -> Self {
        Self::begin(sizes, json!([]), before)
    }

    pub(crate) fn with_groups(sizes: Sizes, groups: &Value) -> Self {
        Self::begin(sizes, groups.clone(), &[])
    }

    fn begin(sizes: Sizes, groups: Value, before: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let origin = Origin::new(folder.path().join("origin.sock"));
        origin.plays("/settle", [Answer::whole("cache-control: no-store", b"")]);
        let program = Program::start(folder.path(), "objects", sizes, &groups, before);
        Self { folder, origin, program, sizes, groups }
    }

    /// Kills the program and starts it again.
    pub(crate) fn restart(&mut self) {
        self.program.kill();
        self.program = self.another("objects");
    }

    /// Starts a program with the same folder.
    pub(crate) fn another(&self, name: &str) -> Program {
        Program::start(self.folder.path(), name, self.sizes, &self.groups, &[])
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Returns the files of stored responses.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let list = |folder: &Path| -> Vec<PathBuf> {
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
        };
        let folders = list(&self.store()).into_iter().filter(|path| path.is_dir() && !path.ends_with("new"));
        folders.flat_map(|folder| list(&folder)).collect()
    }

    pub(crate) fn get(&self, path: &str, fields: &str) -> Reply {
        self.program.get(path, fields)
    }

    pub(crate) fn send(&self, path: &str, fields: &str) -> Client {
        self.program.send(path, fields)
    }

    /// Sends the copy of an unsafe request, as Envoy does.
    pub(crate) fn post(&self, path: &str) -> Reply {
        Client::send(&self.program.socket, "POST", path, "content-length: 0").end()
    }

    pub(crate) fn head(&self, path: &str, fields: &str) -> Reply {
        Client::send(&self.program.socket, "HEAD", path, fields).end()
    }

    /// Stores a response.
    pub(crate) fn stores(&self, path: &str, fields: &str, body: &[u8]) {
        self.origin.plays(path, [Answer::whole(fields, body)]);
        assert!(self.get(path, "").body == body, "{path}");
        self.is_kept(path);
        // The next request must not meet the end of this one.
        self.settle();
    }

    /// Waits until a response is stored: its file gets its name just after the client has its last byte.
    pub(crate) fn is_kept(&self, path: &str) {
        wait("a response is stored", || self.get(path, "cache-control: only-if-cached, max-stale").status() != 504);
    }

    /// Waits until so many files are stored and can be found. Without that, a lookup may come just before the file, and the
    /// end of the request that fetched it just before the next one.
    pub(crate) fn keeps(&self, count: usize) {
        wait(&format!("{count} files"), || self.files().len() == count && self.entries() >= count);
    }

    /// Returns the number of stored responses and markers that the program finds. A file is in its folder a moment before.
    fn entries(&self) -> usize {
        let mut metrics = UnixStream::connect(self.folder.path().join("objects-metrics.sock")).unwrap();
        metrics.write_all(b"GET /metrics HTTP/1.1\r\nhost: objects\r\nconnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        metrics.read_to_string(&mut text).unwrap();
        let entries = text.lines().find_map(|line| line.strip_prefix("longhaul_objects_entries "));
        entries.unwrap_or_else(|| panic!("no entries in {text}")).trim().parse().unwrap()
    }

    /// Waits for the origin's requests for a path.
    pub(crate) fn asks(&self, path: &str, count: usize) {
        wait(&format!("{count} requests for {path}"), || self.origin.count(path) == count);
    }

    /// Gives the program time to read what clients have sent before.
    pub(crate) fn settle(&self) {
        for _ in 0..5 {
            assert_eq!(self.get("/settle", "").status(), 200);
        }
    }
}

/// Checks that a reply comes long before the program's longest wait for another client's request, which is 10 seconds.
pub(crate) fn at_once(reply: impl FnOnce() -> Reply) -> Reply {
    let start = Instant::now();
    let reply = reply();
    assert!(start.elapsed() < Duration::from_secs(6), "the reply has waited");
    reply
}

/// Waits for a condition.
pub(crate) fn wait(what: &str, mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_true() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Returns bytes that differ from place to place.
pub(crate) fn bytes(count: usize) -> Vec<u8> {
    (0_u32..).map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[0]).take(count).collect()
}
