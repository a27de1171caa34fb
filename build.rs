//! What is made at build time, one module a product; nothing here needs a CUDA toolkit. What comes from one is committed.

#[cfg(feature = "bindgen")]
#[path = "build/bindings.rs"]
mod bindings;
#[path = "build/images.rs"]
mod images;

fn main() {
    if std::env::var_os("CARGO_FEATURE_TENSOR").is_some() {
        images::embed();
    }
    #[cfg(feature = "bindgen")]
    bindings::run();
}
