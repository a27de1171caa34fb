//! The build steps, one module each. None needs a CUDA toolkit: files that a toolkit made are committed.

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
