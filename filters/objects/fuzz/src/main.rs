//! Writes the seeds out for cargo-fuzz and prints the names of the targets.

fn main() -> std::io::Result<()> {
    objects_fuzz::FUZZ.write_corpus()
}
