//! Everything made at build time, one module a product; nothing here needs a CUDA toolkit.

#[path = "build/images.rs"]
mod images;

fn main() {
    images::embed();
}
