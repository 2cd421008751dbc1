//! Writes the seeds out for cargo-fuzz and prints the names of the targets.

fn main() -> std::io::Result<()> {
    images_fuzz::FUZZ.write_corpus()
}
