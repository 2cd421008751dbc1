//! Captures the packets at one end in a pcap file with nanosecond times. A packet is recorded when that end sends it or
//! when it arrives there.
//!
//! A separate thread writes the file, so that a slow disk never delays a packet. If the thread cannot keep up, packets
//! are missing from the file. The emulator reports their number and goes on.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, TsResolution};

use crate::time::Moment;

/// The most packets that wait to be written: about a second at 100 Mbit/s.
const MOST_WAITING: usize = 10_000;

/// An open capture.
#[derive(Debug)]
pub struct Capture {
    packets: SyncSender<(Duration, Vec<u8>)>,
    writer: JoinHandle<io::Result<()>>,
    start: Duration,
    missing: u64,
}

impl Capture {
    /// Creates the file. `start` is the wall-clock time of [`Moment::START`].
    pub fn create(path: &Path, start: SystemTime) -> io::Result<Self> {
        let file = BufWriter::new(File::create(path)?);
        let header = PcapHeader {
            datalink: DataLink::RAW,
            ts_resolution: TsResolution::NanoSecond,
            endianness: Endianness::native(),
            ..PcapHeader::default()
        };
        let writer = PcapWriter::with_header(file, header).map_err(io::Error::other)?;
        let (packets, waiting) = sync_channel(MOST_WAITING);
        let writer = thread::spawn(move || write_all(writer, &waiting));
        let start = start.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self { packets, writer, start, missing: 0 })
    }

    /// Adds a packet.
    pub fn record(&mut self, now: Moment, packet: &[u8]) {
        let time = self.start + now.since(Moment::START);
        if self.packets.try_send((time, packet.to_vec())).is_err() {
            self.missing += 1;
        }
    }

    /// Closes the file. Returns the number of packets missing from it.
    ///
    /// # Errors
    /// The file could not be written completely.
    pub fn finish(self) -> io::Result<u64> {
        drop(self.packets);
        self.writer.join().map_err(|_| io::Error::other("the thread that writes the capture stopped"))??;
        Ok(self.missing)
    }
}

fn write_all(mut writer: PcapWriter<BufWriter<File>>, packets: &Receiver<(Duration, Vec<u8>)>) -> io::Result<()> {
    for (time, packet) in packets {
        let length = u32::try_from(packet.len()).unwrap_or(u32::MAX);
        writer.write_packet(&PcapPacket::new_owned(time, length, packet)).map_err(io::Error::other)?;
    }
    writer.into_writer().flush()
}
