//! Building a kernel from its definition: compiling, loading, and the fallbacks.
//!
//! A cached image that the driver refuses is compiled once more, past the cache.

use std::sync::{Arc, LazyLock};

use sha2::{Digest, Sha256};

use super::definition::{Definition, Prefer};
use super::fallback::Fallback;
use super::kernel::{Kernel, Origin};
use super::names;
use super::shared::Shared;
use crate::driver::{Device, Function, Module, ModuleState, driver_isa};
use crate::error::{Error, Result};
use crate::nvrtc::{Cache, Compiled, Program, Target};

/// A SHA-256.
type Hash = [u8; 32];

/// The modules of every launcher of the process, by device and by the hash of the loaded image.
static LOADED: LazyLock<Shared<(Device, Hash), ModuleState>> = LazyLock::new(Shared::default);

/// A compiled program that is loaded.
pub(super) struct Loaded {
    module: Module,
    /// The program's expressions with their names in the image.
    lowered: Vec<(String, String)>,
    log: String,
    from_cache: bool,
}

/// A launcher's programs, by the hash of their inputs.
pub(super) type Programs = Shared<Hash, Loaded>;

/// A kernel and its origin.
pub(super) struct BuiltKernel {
    pub(super) function: Function,
    pub(super) origin: Origin,
    pub(super) log: String,
    /// Keeps the program alive as long as the kernel.
    pub(super) program: Option<Arc<Loaded>>,
}

/// Builds the kernel of a definition. If it is unavailable and there is a fallback, the fallback becomes the kernel.
pub(super) fn kernel(
    programs: &Programs,
    device: Device,
    cache: &Cache,
    definition: Definition,
) -> Result<Kernel> {
    let found = find(programs, device, cache, &definition);
    let Definition { name, fallback, .. } = definition;
    match (found, fallback) {
        (Ok(found), _) => Ok(Kernel::on_device(name, found)),
        (Err(reason), Fallback::Cpu(function)) if is_unavailable(&reason) => {
            log::warn!("kernel '{name}' is unavailable and will run on the CPU: {reason}");
            Ok(Kernel::on_host(name, function, reason))
        }
        (Err(error), _) => Err(error),
    }
}

fn find(programs: &Programs, device: Device, cache: &Cache, definition: &Definition) -> Result<BuiltKernel> {
    let of_image = || definition.image.as_ref().map(|image| from_image(device, definition, image));
    let of_program = || {
        let program = definition.program.as_ref()?;
        Some(from_program(programs, device, cache, definition, program))
    };
    let (first, second) = match definition.prefer {
        Prefer::Image => (of_image(), &of_program as &dyn Fn() -> Option<Result<BuiltKernel>>),
        Prefer::Source => (of_program(), &of_image as _),
    };
    let refused = match first {
        None => {
            let nothing = || {
                let found = format!("'{}' without source or image", definition.name);
                Error::invalid("Launcher::define", found, "one of them at least")
            };
            return second().unwrap_or_else(|| Err(nothing()));
        }
        Some(Err(error)) if is_unavailable(&error) => error,
        Some(found) => return found,
    };
    match second() {
        None => Err(refused),
        Some(Err(error)) if is_unavailable(&error) => {
            let (image, source) = match definition.prefer {
                Prefer::Image => (refused, error),
                Prefer::Source => (error, refused),
            };
            let reasons = format!("its image: {image}\nits source: {source}");
            Err(Error::KernelUnavailable { kernel: definition.name.clone(), reasons })
        }
        Some(found) => {
            let prefer = definition.prefer;
            log::info!(
                "kernel '{}' is unavailable in the preferred form ({prefer:?}): {refused}",
                definition.name
            );
            found
        }
    }
}

/// Returns whether the kernel itself is unavailable, as opposed to an error of the caller or the device.
fn is_unavailable(error: &Error) -> bool {
    matches!(
        error,
        Error::LibraryUnavailable { .. }
            | Error::MissingSymbol { .. }
            | Error::Library { .. }
            | Error::Compilation { .. }
            | Error::KernelUnavailable { .. }
    ) || is_refused(error)
}

/// Returns whether an image was refused, by this library or by the driver.
fn is_refused(error: &Error) -> bool {
    matches!(
        error,
        Error::NotAnImage { .. }
            | Error::DamagedImage { .. }
            | Error::UnsupportedImage { .. }
            | Error::ImageRejected { .. }
    )
}

/// Returns the module of an image, loading it if no one holds it. `ptx`, its source, adds the parameter kinds.
fn load(device: Device, image: &[u8], ptx: &[u8]) -> Result<Module> {
    let hash =
        Sha256::new().chain_update((image.len() as u64).to_le_bytes()).chain_update(image).chain_update(ptx);
    let key = (device, hash.finalize().into());
    LOADED.get_or_make(key, || device.load_described(image, ptx).map(|module| module.0)).map(Module)
}

fn from_image(device: Device, definition: &Definition, image: &[u8]) -> Result<BuiltKernel> {
    let module = load(device, image, &[])?;
    let function = names::find(&module, &definition.name, definition.entry.as_deref(), &[])?;
    Ok(BuiltKernel { function, origin: Origin::Image, log: module.log().to_owned(), program: None })
}

fn from_program(
    programs: &Programs,
    device: Device,
    cache: &Cache,
    definition: &Definition,
    program: &Program,
) -> Result<BuiltKernel> {
    let make = || {
        let target = Target::for_device_in(device.compute_capability(), driver_isa()?, cache)?;
        let compile = |cache_use| match cache_use {
            CacheUse::Lookup => program.compile(target, cache),
            CacheUse::Replace => program.compile_anew(target, cache),
        };
        let load = |compiled: &Compiled| load(device, compiled.image(), compiled.ptx());
        let (compiled, module) = load_compiled(&definition.name, compile, Compiled::is_from_cache, load)?;
        Ok(Arc::new(Loaded {
            module,
            lowered: compiled.lowered_names().to_vec(),
            log: compiled.log().to_owned(),
            from_cache: compiled.is_from_cache(),
        }))
    };
    let program = match identity(&definition.identity) {
        Some(identity) => programs.get_or_make(identity, make)?,
        None => make()?,
    };
    let Loaded { module, lowered, log, from_cache } = &*program;
    let function = names::find(module, &definition.name, definition.entry.as_deref(), lowered)?;
    let origin = Origin::Source { from_cache: *from_cache };
    Ok(BuiltKernel { function, origin, log: log.clone(), program: Some(program.clone()) })
}

/// Returns the hash of a program whose text alone decides the result; `None` for one that includes files, which may
/// change. (The disk cache checks included files, and equal results are loaded once.)
fn identity(text: &str) -> Option<Hash> {
    let own = ["#include <selvedge/", "#include <cstdint>", "#include <stdint.h>"];
    // A word may continue on the next line, as `Debug` prints it.
    let joined = text.replace("\\\\\\n", "").replace("\\\\\\r\\n", "");
    let rest = own.iter().fold(joined, |text, header| text.replace(header, ""));
    let includes = rest.contains("include") || rest.contains("\"-I");
    (!includes).then(|| Sha256::digest(text.as_bytes()).into())
}

/// How a program is compiled.
#[derive(Clone, Copy, PartialEq)]
enum CacheUse {
    Lookup,
    /// Replaces the cache entry.
    Replace,
}

/// Compiles and loads. If the driver refuses a cached image (made for another driver, or damaged), the program is
/// compiled again and its cache entry replaced.
fn load_compiled<C, M>(
    name: &str,
    compile: impl Fn(CacheUse) -> Result<C>,
    is_from_cache: impl Fn(&C) -> bool,
    load: impl Fn(&C) -> Result<M>,
) -> Result<(C, M)> {
    let compiled = compile(CacheUse::Lookup)?;
    match load(&compiled) {
        Ok(module) => Ok((compiled, module)),
        Err(error) if is_refused(&error) && is_from_cache(&compiled) => {
            log::warn!("the cached image of '{name}' is compiled again, because it was refused: {error}");
            let compiled = compile(CacheUse::Replace)?;
            let module = load(&compiled)?;
            Ok((compiled, module))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn refused() -> Error {
        Error::DamagedImage { kind: "cubin", found: "half of it".to_owned() }
    }

    #[test]
    fn what_the_cache_gave_and_the_driver_refuses_is_compiled_once_more() {
        // True if the cached one loads; true if the new one does; the expected result; the number of compilations.
        for (cached_loads, new_loads, wanted, compilations) in
            [(true, true, Some("cached"), 1), (false, true, Some("new"), 2), (false, false, None, 2)]
        {
            let compiled = RefCell::new(0);
            let compile = |cache_use| {
                *compiled.borrow_mut() += 1;
                Ok(if cache_use == CacheUse::Lookup { "cached" } else { "new" })
            };
            let load = |image: &&str| {
                let loads = if *image == "cached" { cached_loads } else { new_loads };
                if loads { Ok(()) } else { Err(refused()) }
            };
            let found = load_compiled("test", compile, |image| *image == "cached", load);
            assert_eq!(found.ok().map(|(image, ())| image), wanted);
            assert_eq!(*compiled.borrow(), compilations);
        }
    }

    #[test]
    fn a_program_that_includes_files_is_not_known_by_its_text() {
        let known = |program: &Program| identity(&format!("{program:?}")).is_some();
        let plain = Program::new("a.cu", "#include <selvedge/half.cuh>\n__global__ void f() {}");
        assert!(known(&plain) && known(&plain.clone().define("N", 4)));
        assert!(!known(&Program::new("a.cu", "#include \"mine.h\"")));
        assert!(!known(&Program::new("a.cu", "#inc\\\nlude \"mine.h\"")));
        assert!(!known(&Program::new("a.cu", "#inc\\\r\nlude \"mine.h\"")));
        assert!(!known(&plain.clone().option("-I/usr/include/mine")));
        assert!(!known(&plain.clone().option("-I").option("/mine")));
        assert!(!known(&plain.clone().option("--include-path=/mine")));
        assert_ne!(
            identity(&format!("{plain:?}")),
            identity(&format!("{:?}", plain.clone().option("-lineinfo")))
        );
    }

    #[test]
    fn other_failures_are_not_the_caches() {
        let lost = || Error::ContextLost { device: 0, cause: "a fault".into() };
        for (from_cache, error) in [(true, lost()), (false, refused())] {
            let compiled = RefCell::new(0);
            let compile = |_| {
                *compiled.borrow_mut() += 1;
                Ok(())
            };
            let load = |_: &()| Err::<(), _>(error.clone());
            assert!(load_compiled("test", compile, |()| from_cache, load).is_err());
            assert_eq!(*compiled.borrow(), 1);
        }
    }
}
