//! Cached lookups of programs and of NVRTC's capabilities.
//!
//! An entry belongs to the NVRTC that created it. Loading NVRTC takes longer than all the rest, so the lookup first
//! predicts which library would be loaded. The prediction only selects where to search: entries are stored under the
//! library that was really loaded. After a wrong prediction the lookup finds either the result of that other NVRTC for
//! the same program, or nothing, and then loads the right one.

use std::path::Path;

use super::cache::{Cache, CacheKey, Identity};
use super::compiler::{self, Output};
use super::target::Capabilities;
use crate::error::{Error, Result};
use crate::sys::{self, NvrtcApi};

/// Returns the entry under a key, or the result of `make`, which is then stored; and true if the entry existed. Without
/// a key nothing is looked up.
pub(super) fn cached(
    cache: &Cache,
    key: Option<CacheKey>,
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

/// Returns the result of `make`, which replaces the entry under the key.
pub(super) fn replaced(
    cache: &Cache,
    key: Option<CacheKey>,
    make: impl FnOnce(&'static NvrtcApi) -> Result<Output>,
) -> Result<Output> {
    let api = sys::nvrtc()?;
    let output = make(api)?;
    // The system may not report a path; such an NVRTC compiles each time.
    if let (Some(key), Some(loaded)) = (key, Identity::of(api.loaded.path.as_ref())) {
        cache.keep(&key.of_compiler(&loaded), &output);
    }
    Ok(output)
}

/// Returns the architectures that NVRTC can compile for.
pub(super) fn capabilities(cache: &Cache) -> Result<Capabilities> {
    let text = remembered(cache, "capabilities", |api| {
        let (major, minor) = compiler::version(api);
        let architectures = compiler::architectures(api)?;
        let numbers: String = architectures.iter().map(|number| format!(" {number}")).collect();
        Ok(format!("{major}.{minor}{numbers}"))
    })?;
    let mut words = text.split(' ');
    let version = words.next().and_then(compiler::pair);
    let architectures = words.map(|word| word.parse().ok()).collect::<Option<Vec<u32>>>();
    let capabilities =
        version.zip(architectures).map(|(version, architectures)| Capabilities { version, architectures });
    capabilities.ok_or_else(|| unreadable(&text))
}

/// Returns the ISA of the PTX that NVRTC generates.
pub(super) fn isa(cache: &Cache) -> Result<(i32, i32)> {
    let text =
        remembered(cache, "isa", |api| compiler::isa(api).map(|(major, minor)| format!("{major}.{minor}")))?;
    compiler::pair(&text).ok_or_else(|| unreadable(&text))
}

/// Returns a fact about NVRTC, from the cache or from the library.
fn remembered(
    cache: &Cache,
    fact: &str,
    ask: impl FnOnce(&'static NvrtcApi) -> Result<String>,
) -> Result<String> {
    let key = cache.is_usable().then(|| CacheKey::new(fact));
    let make = |api| ask(api).map(|text| Output { image: text.into_bytes(), ..Output::default() });
    let (output, _) = cached(cache, key, make)?;
    Ok(String::from_utf8_lossy(&output.image).into_owned())
}

/// Returns the error for an entry with a correct checksum and unexpected contents.
fn unreadable(text: &str) -> Error {
    Error::invalid("Cache", format!("'{text}' about NVRTC"), "an entry of this library; clear the cache")
}
