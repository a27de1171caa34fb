//! The way through the cache: for programs, and for what an NVRTC is able to do.
//!
//! An entry belongs to the NVRTC that made it. Which one would be loaded is predicted first, because loading it takes longer than
//! all the rest. The prediction decides nothing but where to look: what is kept goes under the file that was really loaded, so
//! under a wrong prediction lies only what that other NVRTC made of the same program, or nothing, and then the right one is loaded
//! and asked for.

use std::path::Path;

use super::cache::{Cache, Identity, Key};
use super::compiler::{self, Output};
use super::target::Abilities;
use crate::error::{Error, Result};
use crate::sys::{self, NvrtcApi};

/// What is kept under a key, else what `make` gives, which is kept then; and whether it was kept before. Without a key nothing is
/// looked for.
pub(super) fn cached(
    cache: &Cache,
    key: Option<Key>,
    make: impl FnOnce(&'static NvrtcApi) -> Result<Output>,
) -> Result<(Output, bool)> {
    let Some(key) = key else { return Ok((replaced(cache, None, make)?, false)) };
    let find = |compiler: &Path| cache.find(&key.clone().of_compiler(&Identity::of(compiler)?));
    if let Some(output) = sys::nvrtc_file().and_then(|predicted| find(&predicted)) {
        return Ok((output, true));
    }
    if let Some(output) = find(sys::nvrtc()?.loaded.path.as_ref()) {
        return Ok((output, true));
    }
    Ok((replaced(cache, Some(key), make)?, false))
}

/// What `make` gives, which is kept under the key in the place of what was there.
pub(super) fn replaced(
    cache: &Cache,
    key: Option<Key>,
    make: impl FnOnce(&'static NvrtcApi) -> Result<Output>,
) -> Result<Output> {
    let api = sys::nvrtc()?;
    let output = make(api)?;
    // A path that the system does not tell is of no use; such an NVRTC compiles each time.
    if let (Some(key), Some(loaded)) = (key, Identity::of(api.loaded.path.as_ref())) {
        cache.keep(&key.of_compiler(&loaded), &output);
    }
    Ok(output)
}

/// What NVRTC can compile for.
pub(super) fn abilities(cache: &Cache) -> Result<Abilities> {
    let text = remembered(cache, "abilities", |api| {
        let (major, minor) = compiler::version(api);
        let architectures = compiler::architectures(api)?;
        let numbers: String = architectures.iter().map(|number| format!(" {number}")).collect();
        Ok(format!("{major}.{minor}{numbers}"))
    })?;
    let mut words = text.split(' ');
    let version = words.next().and_then(compiler::pair);
    let architectures = words.map(|word| word.parse().ok()).collect::<Option<Vec<u32>>>();
    let abilities =
        version.zip(architectures).map(|(version, architectures)| Abilities { version, architectures });
    abilities.ok_or_else(|| unreadable(&text))
}

/// The ISA of the PTX that NVRTC writes.
pub(super) fn isa(cache: &Cache) -> Result<(i32, i32)> {
    let text =
        remembered(cache, "isa", |api| compiler::isa(api).map(|(major, minor)| format!("{major}.{minor}")))?;
    compiler::pair(&text).ok_or_else(|| unreadable(&text))
}

/// A fact about NVRTC, from the cache or asked for.
fn remembered(
    cache: &Cache,
    fact: &str,
    ask: impl FnOnce(&'static NvrtcApi) -> Result<String>,
) -> Result<String> {
    let key = cache.is_usable().then(|| Key::new(fact));
    let make = |api| ask(api).map(|text| Output { image: text.into_bytes(), ..Output::default() });
    let (output, _) = cached(cache, key, make)?;
    Ok(String::from_utf8_lossy(&output.image).into_owned())
}

/// An entry with a right checksum that this library did not write.
fn unreadable(text: &str) -> Error {
    Error::invalid("Cache", format!("'{text}' about NVRTC"), "what this library wrote: clear the cache")
}
