//! Kernels that the launcher compiles from source, the cache of their images, and a source beside an image.

use selvedge::Error;
use selvedge::driver::Device;
use selvedge::launcher::{Definition, Fallback, Kernel, Launcher, Origin, Prefer};
use selvedge::nvrtc::{self, Cache};

use super::{NEVER, ONE, Outcome};
use crate::support::Fake;

/// Kernels from source, with an NVRTC that can be used beside this driver: newer ones ask a loaded driver for functions
/// that only the real one has, and end the process.
pub fn sources(fake: &Fake) -> Outcome {
    match nvrtc::version() {
        Ok(version) if version <= (12, 0) => {}
        other => {
            println!("not run with NVRTC {other:?}");
            return Ok(());
        }
    }
    let folder = std::env::temp_dir().join(format!("selvedge-launcher-{}", std::process::id()));
    let result = with_nvrtc(fake, &Cache::at(&folder));
    let _ = std::fs::remove_dir_all(&folder);
    result
}

fn with_nvrtc(fake: &Fake, cache: &Cache) -> Outcome {
    let device = Device::new(0)?;
    let launcher = Launcher::with_cache(&device, cache.clone())?;
    let source = "template <typename T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by; }
        __global__ void twice(float *x) { x[threadIdx.x] *= 2; }
        extern \"C\" __global__ void plain(int *x, unsigned n) { if (threadIdx.x < n) x[threadIdx.x] = 1; }";
    let loads = || fake.call_count("cuModuleLoadDataEx");
    let before = loads();
    ensure!(launcher.compile("twice", source)?.function()?.name() == "_Z5twicePf", "its C++ name");
    let plain = launcher.compile("plain", source)?;
    ensure!(plain.origin() == Some(Origin::Source { from_cache: false }), "{plain:?}");
    ensure!(loads() - before == 1, "{} loads of one source", loads() - before);
    ensure_error!(launcher.compile("absent", source), Error::UnknownName { found, .. } if found.len() == 2);

    let program = nvrtc::Program::new("scale.cu", source).expression("scale<double>");
    let scale = launcher.compile_program("scale", program.clone().option("--use_fast_math"))?;
    ensure!(scale.function()?.name() == "_Z5scaleIdEvPT_S0_", "the only expression");
    let chosen = Definition::new("chosen").program(program.expression("scale<float>")).entry("scale<float>");
    launcher.define(chosen)?;
    let stream = launcher.stream();
    let mut doubles = stream.zeros::<f64>(32)?;
    // SAFETY: it is refused.
    let error = unsafe { launcher.run("chosen", 1, 32, (&mut doubles, 2.0f32)) };
    ensure_error!(error, Error::ArgumentMismatch { index: 0, .. });
    // The PTX holds the types that neither the name nor the machine code holds.
    let mut integers = stream.zeros::<i32>(32)?;
    // SAFETY: it is refused.
    let error = unsafe { launcher.run("plain", 1, 32, (&mut integers, 32.0f32)) };
    ensure_error!(error, Error::ArgumentMismatch { index: 1, .. });
    // SAFETY: plain touches 32 elements.
    unsafe { launcher.run("plain", 1, 32, (&mut integers, 32u32))? };
    // SAFETY: scale touches 32 elements.
    unsafe { launcher.run("scale", 1, 32, (&mut doubles, 2.0f64))? };

    let error =
        launcher.compile("broken", "__global__ void broken(float *x) {\n    x = nonsense;\n}").map(drop);
    ensure_error!(error, Error::Compilation { name, log, .. }
        if name == "broken.cu" && log.contains("broken.cu(2)") && log.contains("x = nonsense;") && log.contains('^'));
    let broken = Definition::new("broken").source("nonsense").fallback(Fallback::cpu(|_| Ok(())));
    ensure!(launcher.define(broken)?.origin().is_none(), "a source that does not compile is a reason");
    // Of both, the one that is preferred.
    let only = |prefer| Definition::new("only").source(NEVER).image(ONE).prefer(prefer);
    let from_source = launcher.define(only(Prefer::Source))?;
    ensure!(matches!(from_source.origin(), Some(Origin::Source { .. })), "{from_source:?}");
    ensure!(launcher.define(only(Prefer::Image))?.origin() == Some(Origin::Image), "the image");

    // Another process, as far as the launcher can tell: it finds the cache, or what the driver refuses there.
    drop((launcher, plain, scale, from_source));
    device.synchronize()?;
    let again = || Launcher::with_cache(&device, cache.clone())?.compile("twice", source);
    let from_cache = |kernel: &Kernel| kernel.origin() == Some(Origin::Source { from_cache: true });
    let cached = again()?;
    ensure!(from_cache(&cached), "{cached:?}");
    drop(cached);
    device.synchronize()?;
    const INVALID_IMAGE: i32 = 200;
    fake.fail("cuModuleLoadDataEx", 1, INVALID_IMAGE);
    let compiled = again()?;
    ensure!(compiled.origin() == Some(Origin::Source { from_cache: false }), "{compiled:?}");
    drop(compiled);
    let replaced = again()?;
    ensure!(from_cache(&replaced), "{replaced:?}");
    Ok(())
}
