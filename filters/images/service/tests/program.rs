//! The program as Envoy sees it: real processes, an origin that the test plays, and images that other encoders made.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use image_variants::{Config, Left};
use jpeg_encoder::{ColorType, Encoder};
use tempfile::TempDir;

const IMAGE_REQUEST: &str = "accept: image/avif,image/webp,image/*,*/*;q=0.8\r\n";

/// A response of the origin: its bytes, and the pause after each piece.
type Script = Vec<(Vec<u8>, Duration)>;

struct Bed {
    folder: TempDir,
    program: Child,
    asked: Arc<Mutex<Vec<String>>>,
    script: Arc<Mutex<Script>>,
    metrics: u16,
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

struct Reply {
    head: String,
    body: Vec<u8>,
}

impl Reply {
    fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

impl Bed {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let metrics = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut config = Config {
            listen: path("images.sock"),
            origin: path("origin.sock"),
            metrics: Some(metrics),
            jpeg_quality: 75,
            png_quality: None,
            method: 2,
            min_bytes: 512,
            max_bytes: 1 << 20,
            pixels: 8_000_000,
            workers: 2,
            memory_bytes: 192 << 20,
            time_ms: 20_000,
            exclude: vec!["maps.test".to_owned()],
        };
        change(&mut config);
        let (asked, script) = (Arc::default(), Arc::default());
        origin(&config.origin, &asked, &script);
        std::fs::write(path("config.json"), serde_json::to_vec(&config).unwrap()).unwrap();
        let program = Command::new(env!("CARGO_BIN_EXE_longhaul-images")).arg(path("config.json")).spawn().unwrap();
        let bed = Self { folder, program, asked, script, metrics: metrics.port() };
        wait("the program serves", || UnixStream::connect(bed.socket()).is_ok());
        bed
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("images.sock")
    }

    fn serve(&self, head: &str, body: &[u8]) {
        *self.script.lock().unwrap() = vec![(response(head, body), Duration::ZERO)];
    }

    fn get(&self, fields: &str) -> Reply {
        request(&self.socket(), "/a.jpg?b=c", fields)
    }

    fn count(&self, name: &str) -> u64 {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.metrics)).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::to_owned);
        value.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
    }

    fn left(&self, reason: Left) -> u64 {
        self.count(&format!("longhaul_images_left_total{{reason=\"{}\"}}", reason.as_str()))
    }
}

fn wait(what: &str, mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !is_true() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn response(head: &str, body: &[u8]) -> Vec<u8> {
    let length = format!("content-length: {}\r\n\r\n", body.len());
    [b"HTTP/1.1 200 OK\r\n", head.as_bytes(), length.as_bytes(), body].concat()
}

fn origin(path: &Path, asked: &Arc<Mutex<Vec<String>>>, script: &Arc<Mutex<Script>>) {
    let listener = UnixListener::bind(path).unwrap();
    let (asked, script) = (Arc::clone(asked), Arc::clone(script));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (asked, script) = (Arc::clone(&asked), Arc::clone(&script));
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                asked.lock().unwrap().push(head(&mut BufReader::new(&stream)));
                let script = script.lock().unwrap().clone();
                for (piece, pause) in script {
                    if stream.write_all(&piece).is_err() {
                        return;
                    }
                    thread::sleep(pause);
                }
            });
        }
    });
}

fn head(stream: &mut impl BufRead) -> String {
    let mut text = String::new();
    while !text.ends_with("\r\n\r\n") {
        if stream.read_line(&mut text).unwrap() == 0 {
            break;
        }
    }
    text
}

fn request(socket: &Path, path: &str, fields: &str) -> Reply {
    let mut stream = UnixStream::connect(socket).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: www.test\r\n{fields}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let head = head(&mut stream);
    let mut body = Vec::new();
    stream.read_to_end(&mut body).unwrap();
    Reply { head, body }
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.iter().position(|&byte| byte == b'\r') {
        let length = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        whole.extend(&body[end + 2..end + 2 + length]);
        body = &body[end + 2 + length + 2..];
    }
    whole
}

/// A photo: noise, so that it has bytes to save.
fn photo(side: u16, quality: u8) -> Vec<u8> {
    let mut noise = 1u32;
    let mut sample = || {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        noise.to_be_bytes()[0] / 2
    };
    let pixels: Vec<u8> = (0..usize::from(side) * usize::from(side) * 3).map(|_| sample()).collect();
    let mut file = Vec::new();
    Encoder::new(&mut file, quality).encode(&pixels, side, side, ColorType::Rgb).unwrap();
    file
}

const JPEG: &str = "content-type: image/jpeg\r\netag: \"x\"\r\naccept-ranges: bytes\r\ncache-control: max-age=60\r\n";

#[test]
fn an_image_becomes_a_variant_with_headers_of_its_own() {
    let bed = Bed::new();
    let image = photo(96, 95);
    bed.serve(JPEG, &image);
    let reply = bed.get(IMAGE_REQUEST);
    assert!(reply.head.starts_with("HTTP/1.1 200"), "{}", reply.head);
    assert!(reply.body.starts_with(b"RIFF") && reply.body.len() * 10 <= image.len() * 9);
    assert_eq!(reply.field("content-type"), Some("image/webp"));
    assert_eq!(reply.field("content-length").unwrap(), reply.body.len().to_string());
    assert_eq!(reply.field("etag"), Some("W/\"x;lh-webp75\""));
    assert_eq!(reply.field("cache-control"), Some("max-age=60"));
    assert_eq!(reply.field("accept-ranges"), None);
    let asked = bed.asked.lock().unwrap().last().unwrap().clone();
    assert!(asked.starts_with("GET /a.jpg?b=c HTTP/1.1\r\n") && asked.contains("host: www.test\r\n"), "{asked}");
    assert_eq!(bed.count("longhaul_images_shrunk_total"), 1);
    assert_eq!(bed.count("longhaul_images_bytes_in_total"), image.len() as u64);
    assert_eq!(bed.count("longhaul_images_bytes_out_total"), reply.body.len() as u64);
}

#[test]
fn a_client_that_does_not_accept_webp_gets_the_same_bytes() {
    let bed = Bed::new();
    let image = photo(96, 95);
    bed.serve(JPEG, &image);
    for (fields, reason) in [
        ("accept: image/*,*/*\r\n".to_owned(), Left::Accept),
        (format!("{IMAGE_REQUEST}cache-control: no-cache\r\n"), Left::Reload),
        (format!("{IMAGE_REQUEST}range: bytes=0-\r\n"), Left::Range),
        (format!("{IMAGE_REQUEST}authorization: Basic YTpi\r\n"), Left::Authorization),
        (format!("{IMAGE_REQUEST}origin: http://a.test\r\n"), Left::Cors),
        (format!("{IMAGE_REQUEST}cache-control: no-transform\r\n"), Left::NoTransform),
    ] {
        let reply = bed.get(&fields);
        assert!(reply.body == image, "{fields}");
        assert_eq!(bed.left(reason), 1, "{fields}");
    }
    let plain = request(&bed.socket(), "/a.jpg", &IMAGE_REQUEST.replace("accept", "x: y\r\naccept"));
    assert!(plain.body.starts_with(b"RIFF"), "the neighbour");
}

#[test]
fn a_response_that_may_not_change_passes_as_it_came() {
    let bed = Bed::new();
    let image = photo(96, 95);
    for (head, reason) in [
        ("content-type: image/jpeg\r\ncache-control: no-transform\r\n", Left::NoTransform),
        ("content-type: image/jpeg\r\ncache-control: no-store\r\n", Left::NoStore),
        ("content-type: image/jpeg\r\nset-cookie: a=b\r\n", Left::Cookie),
        ("content-type: image/jpeg\r\ncontent-digest: sha-256=:x:\r\n", Left::Digest),
        ("content-type: image/gif\r\n", Left::Type),
        ("content-type: image/png\r\n", Left::Type),
    ] {
        bed.serve(head, &image);
        let before = bed.left(reason);
        let reply = bed.get(IMAGE_REQUEST);
        assert_eq!(reply.field("content-type"), head.lines().next().unwrap().strip_prefix("content-type: "));
        assert!(reply.body == image, "{head}");
        assert_eq!(bed.left(reason), before + 1, "{head}");
    }
}

#[test]
fn hostile_images_pass_and_the_program_serves_on() {
    let bed = Bed::with(|config| config.time_ms = 5_000);
    let image = photo(160, 95);
    let mut bomb = image.clone();
    let frame = bomb.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    bomb[frame + 5..frame + 9].copy_from_slice(&[0x27, 0x10, 0x27, 0x10]);
    for hostile in [bomb, image[..image.len() / 2].to_vec(), image[..700].to_vec(), vec![0xff; 5000]] {
        bed.serve(JPEG, &hostile);
        let reply = bed.get(IMAGE_REQUEST);
        assert!(reply.body == hostile);
        assert_eq!((reply.field("etag"), reply.field("accept-ranges")), (Some("\"x\""), Some("bytes")));
    }
    assert_eq!(bed.left(Left::Pixels), 1);
    bed.serve(JPEG, &image);
    assert!(bed.get(IMAGE_REQUEST).body.starts_with(b"RIFF"));
}

#[test]
fn a_child_without_memory_or_time_costs_the_variant_alone() {
    let image = photo(700, 90);
    let short: [fn(&mut Config); 2] = [|config| config.time_ms = 1, |config| config.memory_bytes = 12 << 20];
    for change in short {
        let bed = Bed::with(change);
        bed.serve(JPEG, &image);
        assert!(bed.get(IMAGE_REQUEST).body == image);
        assert_eq!(bed.left(Left::Worker), 1);
    }
}

#[test]
fn the_images_of_a_page_wait_for_their_workers() {
    let bed = Bed::with(|config| (config.workers, config.time_ms) = (1, 60_000));
    let image = photo(500, 90);
    bed.serve(JPEG, &image);
    let replies: Vec<Reply> = thread::scope(|scope| {
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(|| bed.get(IMAGE_REQUEST))).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert!(replies.iter().all(|reply| reply.body.starts_with(b"RIFF")));
    assert_eq!(bed.left(Left::Busy), 0);
}

#[test]
fn validations_are_the_origins() {
    let bed = Bed::new();
    let not_modified = b"HTTP/1.1 304 Not Modified\r\netag: \"x\"\r\n\r\n".to_vec();
    *bed.script.lock().unwrap() = vec![(not_modified, Duration::ZERO)];
    let reply = bed.get(&format!("{IMAGE_REQUEST}if-none-match: W/\"x;lh-webp75\"\r\n"));
    assert!(reply.head.starts_with("HTTP/1.1 304"), "{}", reply.head);
    assert_eq!(reply.field("etag"), Some("W/\"x;lh-webp75\""));
    assert!(bed.asked.lock().unwrap().last().unwrap().contains("if-none-match: \"x\"\r\n"));
    let reply = bed.get(&format!("{IMAGE_REQUEST}if-none-match: \"x\"\r\n"));
    assert_eq!(reply.field("etag"), Some("\"x\""), "a client that has the original");
}

#[test]
fn a_body_that_is_slow_or_breaks_off_loses_no_byte() {
    let bed = Bed::new();
    let image = photo(200, 95);
    let whole = response(JPEG, &image);
    let (first, second) = whole.split_at(whole.len() / 2);
    *bed.script.lock().unwrap() =
        vec![(first.to_vec(), Duration::from_millis(2_300)), (second.to_vec(), Duration::ZERO)];
    assert!(bed.get(IMAGE_REQUEST).body == image);
    assert_eq!(bed.left(Left::Slow), 1);
    *bed.script.lock().unwrap() = vec![(first.to_vec(), Duration::ZERO)];
    assert_eq!(bed.get(IMAGE_REQUEST).head, "", "Envoy repeats the request past the program");
}

#[test]
fn a_body_without_length_or_above_the_limit_streams() {
    let bed = Bed::new();
    let image = photo(96, 95);
    let chunk = [format!("{:x}\r\n", image.len()).as_bytes(), &image, b"\r\n0\r\n\r\n"].concat();
    *bed.script.lock().unwrap() = vec![(
        [&b"HTTP/1.1 200 OK\r\ncontent-type: image/jpeg\r\ntransfer-encoding: chunked\r\n\r\n"[..], &chunk].concat(),
        Duration::ZERO,
    )];
    let reply = bed.get(IMAGE_REQUEST);
    assert!(unchunked(&reply.body) == image);
    assert_eq!(bed.left(Left::Length), 1);
    let large = [image, vec![0; 2 << 20]].concat();
    bed.serve(JPEG, &large);
    assert!(bed.get(IMAGE_REQUEST).body == large);
    assert_eq!(bed.left(Left::Large), 1);
}

#[test]
fn an_unreachable_origin_gets_no_response_from_the_service() {
    let bed = Bed::new();
    std::fs::remove_file(bed.folder.path().join("origin.sock")).unwrap();
    let reply = bed.get(IMAGE_REQUEST);
    assert_eq!((reply.head.as_str(), reply.body.len()), ("", 0), "Envoy repeats the request past the program");
}

#[test]
fn the_names_that_the_operator_excludes_are_left() {
    let bed = Bed::with(|config| config.exclude = vec!["test".to_owned()]);
    let image = photo(96, 95);
    bed.serve(JPEG, &image);
    assert!(bed.get(IMAGE_REQUEST).body == image);
    assert_eq!(bed.left(Left::Excluded), 1);
}
