//! Trains a header-codec dictionary from header traces.

fn main() {}
