//! A resolver with the names that the test sets.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The port of a test's resolver, at the block's second address.
pub(crate) const PORT: u16 = 5300;

type Table = Arc<Mutex<BTreeMap<String, Vec<IpAddr>>>>;

/// Resolves A and AAAA from a table with TTL 1. A name that is not in it does not exist. Dropping it stops it.
pub(crate) struct Dns {
    table: Table,
    asked: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Dns {
    pub(crate) fn start(at: IpAddr, names: &[(&str, &[IpAddr])]) -> Self {
        let table: Table = Arc::default();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let socket = UdpSocket::bind(SocketAddr::new(at, PORT)).expect("the test's resolver binds");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
        let thread = thread::spawn({
            let (table, asked, stop) = (table.clone(), asked.clone(), stop.clone());
            move || {
                let mut packet = [0; 512];
                while !stop.load(Ordering::Relaxed) {
                    let Ok((size, client)) = socket.recv_from(&mut packet) else { continue };
                    if let Some((name, answer)) = answer(&packet[..size], &table.lock().unwrap()) {
                        asked.lock().unwrap().push(name);
                        let _ = socket.send_to(&answer, client);
                    }
                }
            }
        });
        let dns = Self { table, asked, stop, thread: Some(thread) };
        for (name, addresses) in names {
            dns.set(name, addresses);
        }
        dns
    }

    /// From now on `name` has these addresses.
    pub(crate) fn set(&self, name: &str, addresses: &[IpAddr]) {
        self.table.lock().unwrap().insert(name.to_owned(), addresses.to_vec());
    }

    /// Returns the number of queries for `name`.
    pub(crate) fn asked(&self, name: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| *asked == name).count()
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(query: &[u8], table: &BTreeMap<String, Vec<IpAddr>>) -> Option<(String, Vec<u8>)> {
    let mut labels = Vec::new();
    let mut at = 12;
    while *query.get(at)? != 0 {
        let size = usize::from(query[at]);
        labels.push(String::from_utf8_lossy(query.get(at + 1..=at + size)?).to_lowercase());
        at += size + 1;
    }
    let kind = u16::from_be_bytes([*query.get(at + 1)?, *query.get(at + 2)?]);
    let question = query.get(12..at + 5)?;
    let name = labels.join(".");
    let known = table.get(&name);
    let records: Vec<Vec<u8>> = known
        .into_iter()
        .flatten()
        .filter_map(|address| match (address, kind) {
            (IpAddr::V4(v4), 1) => Some(v4.octets().to_vec()),
            (IpAddr::V6(v6), 28) => Some(v6.octets().to_vec()),
            _ => None,
        })
        .collect();
    let mut out = query.get(..2)?.to_vec();
    out.extend(if known.is_some() { [0x81, 0x80] } else { [0x81, 0x83] });
    out.extend([0, 1, 0, u8::try_from(records.len()).ok()?, 0, 0, 0, 0]);
    out.extend(question);
    for record in records {
        out.extend([0xc0, 0x0c]);
        out.extend(kind.to_be_bytes());
        out.extend([0, 1, 0, 0, 0, 1]);
        out.extend(u16::try_from(record.len()).ok()?.to_be_bytes());
        out.extend(record);
    }
    Some((name, out))
}
