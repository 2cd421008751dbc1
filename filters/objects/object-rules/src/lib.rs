//! What a shared cache may store and reuse.

mod life;

pub use life::Life;
