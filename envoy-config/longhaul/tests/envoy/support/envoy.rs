//! A real Envoy on a rendered tree.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, io};

use longhaul_render::RenderedTree;

use super::config::Config;
use super::http;

/// The time limit of every wait, for a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// The Envoy to test with. If there is none, says why the test does not run and returns None.
pub(crate) fn binary() -> Option<PathBuf> {
    let named = env::var_os("LONGHAUL_ENVOY").map(PathBuf::from);
    let built = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/dist/envoy");
    let found = named.into_iter().chain([built]).find(|path| path.is_file());
    if found.is_none() {
        skip("no Envoy: set LONGHAUL_ENVOY, or `make build`");
    }
    found
}

/// Says that a test does not run. If every test must run, that is a failure.
pub(crate) fn skip(reason: &str) {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    assert!(env::var_os("LONGHAUL_REQUIRE_ALL").is_none_or(|value| value != "1"), "skipped: {reason}");
    eprintln!("skipped: {test}: {reason}");
    if let Some(list) = env::var_os("LONGHAUL_SKIPS") {
        let line = format!("envoy-config {test}: {reason}\n");
        let written =
            File::options().append(true).create(true).open(list).and_then(|mut f| f.write_all(line.as_bytes()));
        assert!(written.is_ok(), "the list of skipped tests cannot be written");
    }
}

/// Puts the tree in place like `longhaul run`: every file by a rename, in the order Envoy must meet them.
pub(crate) fn write(tree: &RenderedTree, root: &Path) -> io::Result<()> {
    for module in &tree.modules {
        let to = root.join(&module.to);
        fs::create_dir_all(to.parent().unwrap_or(root))?;
        // As `longhaul run` does: Envoy has a native module mapped, and an overwritten file would change under it.
        if !to.is_file() {
            fs::copy(&module.from, to)?;
        }
    }
    for (path, text) in tree.in_apply_order() {
        let to = root.join(path);
        fs::create_dir_all(to.parent().unwrap_or(root))?;
        if fs::read_to_string(&to).is_ok_and(|old| old == text) {
            continue;
        }
        let new = to.with_extension("new");
        fs::write(&new, text)?;
        fs::rename(new, to)?;
    }
    Ok(())
}

/// Starts the cache beside Envoy, if the tree has one.
fn cache(tree: &RenderedTree, root: &Path) -> Option<Child> {
    tree.get("objects.json")?;
    let named = env::var_os("LONGHAUL_OBJECTS").map(PathBuf::from);
    let built = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/dist/longhaul-objects");
    let Some(program) = named.into_iter().chain([built]).find(|path| path.is_file()) else {
        skip("no longhaul-objects: set LONGHAUL_OBJECTS, or `make build`");
        return None;
    };
    let mut child = Command::new(program)
        .arg(root.join("objects.json"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the cache starts");
    let mut lines = BufReader::new(child.stderr.take().expect("its messages")).lines();
    let said: Vec<String> = lines.by_ref().map_while(Result::ok).take(1).collect();
    assert_eq!(said, ["longhaul-objects: ready"]);
    // A program without a reader of its messages would end.
    thread::spawn(move || lines.for_each(drop));
    Some(child)
}

/// A running Envoy, and the cache beside it. Dropping it kills both.
pub(crate) struct Envoy {
    child: Child,
    cache: Option<Child>,
    root: PathBuf,
    admin: PathBuf,
    log: PathBuf,
}

impl Envoy {
    /// Starts Envoy on `config` and waits until it serves. Returns None if there is no Envoy here.
    pub(crate) fn start(config: &Config) -> Option<Self> {
        let envoy = binary()?;
        let artifacts = config.artifacts();
        fs::create_dir_all(&artifacts.state).expect("a folder for state");
        let tree = config.render();
        write(&tree, &artifacts.root).expect("the tree is written");
        fs::create_dir_all(config.path("cache")).expect("a folder for the cache");
        let cache = cache(&tree, &artifacts.root);
        let log = config.path("envoy.log");
        let child = Command::new(envoy)
            .arg("-c")
            .arg(artifacts.root.join("bootstrap.yaml"))
            .args(["--concurrency", "2", "--disable-hot-restart", "--drain-time-s", "2", "-l", "warning"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).expect("a log file"))
            .spawn()
            .expect("Envoy starts");
        let mut running = Self { child, cache, root: artifacts.root, admin: artifacts.admin, log };
        running.wait_until_ready();
        Some(running)
    }

    /// Renders `config` again and puts it in place.
    pub(crate) fn apply(&self, config: &Config) {
        self.put(&config.render());
    }

    /// Puts a tree in place.
    pub(crate) fn put(&self, tree: &RenderedTree) {
        write(tree, &self.root).expect("the tree is written");
    }

    fn wait_until_ready(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("Envoy ended with {status}:\n{}", self.log());
            }
            if self.try_admin("/ready").is_some_and(|answer| answer.contains("LIVE")) {
                break;
            }
            assert!(Instant::now() < deadline, "Envoy does not become ready:\n{}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(self.rejected(), Vec::<String>::new(), "Envoy refuses a rendered file:\n{}", self.log());
    }

    /// The counters of refused files that are not zero.
    pub(crate) fn rejected(&self) -> Vec<String> {
        let stats = self.admin("/stats?filter=update_(rejected|failure)$");
        stats.lines().filter(|line| !line.ends_with(": 0")).map(str::to_owned).collect()
    }

    /// The body of a response of the admin interface.
    pub(crate) fn admin(&self, path: &str) -> String {
        self.try_admin(path).unwrap_or_else(|| panic!("the admin interface does not answer:\n{}", self.log()))
    }

    /// A counter or gauge by its name; 0 if there is none yet.
    pub(crate) fn stat(&self, name: &str) -> u64 {
        let all = self.admin(&format!("/stats?filter=^{}$", name.replace('.', "\\.")));
        all.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok()).unwrap_or(0)
    }

    fn try_admin(&self, path: &str) -> Option<String> {
        let stream = UnixStream::connect(&self.admin).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        http::exchange(stream, &http::request("GET", path, &[("host", "admin")])).ok().map(|answer| answer.text())
    }

    /// The processor time of Envoy's main thread so far.
    pub(crate) fn main_thread(&self) -> Duration {
        let pid = self.child.id();
        let times =
            fs::read_to_string(format!("/proc/{pid}/task/{pid}/schedstat")).expect("a running thread has times");
        let nanoseconds = times.split(' ').next().and_then(|time| time.parse().ok()).expect("nanoseconds");
        Duration::from_nanos(nanoseconds)
    }

    /// Returns the stderr of Envoy.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        for child in [Some(&mut self.child), self.cache.as_mut()].into_iter().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if thread::panicking() {
            eprintln!("---- Envoy said:\n{}", self.log());
        }
    }
}
