//! Nothing is generated in a normal build: what the crate embeds is committed.

#[cfg(feature = "bindgen")]
#[path = "build/bindings.rs"]
mod bindings;

fn main() {
    #[cfg(feature = "bindgen")]
    bindings::run();
}
