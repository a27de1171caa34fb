//! The cost of compiling: a cache hit at first use in a process, and a miss beside bare NVRTC.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use selvedge::driver::{Device, driver_isa};
use selvedge::launcher::{Launcher, Origin};
use selvedge::nvrtc::{Cache, Target};

use crate::Options;
use crate::bare_nvrtc::BareNvrtc;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, figure, measure as turns};

/// Makes this program a process that uses a kernel for the first time: `first-use FOLDER`.
pub const ARGUMENT: &str = "first-use";

/// A product in tiles: long enough to be a kernel of somebody's.
const SOURCE: &str = "__global__ void product(const float *a, const float *b, float *c, unsigned n) {
    __shared__ float left[32][32], right[32][33];
    unsigned row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
    for (unsigned tile = 0; tile < n; tile += 32) {
        left[threadIdx.y][threadIdx.x] = a[row * n + tile + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * n + column];
        __syncthreads();
        for (unsigned k = 0; k < 32; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
";

/// The child: makes the kernel, and prints how long that took in microseconds, and whether it came from the cache.
pub fn first_use(arguments: &[String]) -> Result<(), Failure> {
    let [folder] = arguments else { return Err("a folder is wanted".into()) };
    let launcher = Launcher::with_cache(&Device::new(0)?, Cache::at(folder))?;
    let start = Instant::now();
    let kernel = launcher.compile("product", SOURCE)?;
    let taken = start.elapsed();
    let cached = kernel.origin() == Some(Origin::Source { from_cache: true });
    check(&launcher)?;
    writeln!(std::io::stdout(), "{} {cached}", taken.as_secs_f64() * 1e6)?;
    Ok(())
}

/// The square of a matrix of ones.
fn check(launcher: &Launcher) -> Result<(), Failure> {
    let stream = launcher.stream();
    let ones = stream.upload(&[1.0f32; 64 * 64])?;
    let mut product = stream.zeros::<f32>(64 * 64)?;
    // SAFETY: product touches 64 x 64 elements of each.
    unsafe { launcher.run("product", (2, 2), (32, 32), (&ones, &ones, &mut product, 64u32))? };
    if stream.download(&product)?.iter().all(|element| *element == 64.0) {
        Ok(())
    } else {
        Err("the product is wrong".into())
    }
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Both figures; without NVRTC neither.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "compile",
        "Kernels from source",
        "First use: a process makes its device, then the clock runs while the launcher finds a kernel's image in its \
         cache and loads it; the reference is the same in a process with an empty cache. Cold: the launcher compiles and \
         loads a source that it has not seen, in a process that has compiled before, without a cache; the reference \
         compiles it by NVRTC's own functions and does not load it. The kernel's result is checked.",
    )?;
    if let Some(path) = &options.file {
        // SAFETY: nothing else runs yet in this program.
        unsafe { std::env::set_var("SELVEDGE_LIBNVRTC", path) };
    }
    let path = match selvedge::sys::nvrtc() {
        Ok(api) => PathBuf::from(&api.loaded.path),
        Err(why) => {
            recorder
                .skip(format!("kernels from source: {}", why.to_string().lines().next().unwrap_or_default()));
            return recorder.finish(&options.out);
        }
    };

    let folder = Folder(std::env::temp_dir().join(format!("selvedge-bench-{}", std::process::id())));
    process(&folder.0)?;
    let mut pairs = Vec::new();
    let rounds = options.turns(2, 30);
    for round in 0..rounds.warm_up + rounds.rounds {
        let empty = Folder(folder.0.with_extension(round.to_string()));
        let warm = || process(&folder.0);
        let cold = || process(&empty.0);
        let ((own, cached), (reference, found)) = if round % 2 == 0 {
            let first = warm()?;
            (first, cold()?)
        } else {
            let first = cold()?;
            (warm()?, first)
        };
        if !cached || found {
            return Err(format!("a warm cache answered {cached}, an empty one {found}").into());
        }
        if round >= rounds.warm_up {
            pairs.push((own, reference));
        }
    }
    let first = Subject {
        name: "first use in a process, from the cache",
        against: "with an empty cache",
        unit: Unit::Microseconds,
        bytes: None,
        rule: Rule::Own,
        goal: Some(1000.0),
    };
    recorder.add(figure(&first, &pairs)?);

    let device = Device::new(0)?;
    let launcher = Launcher::with_cache(&device, Cache::none())?;
    let nvrtc = BareNvrtc::open(&path)?;
    let target = Target::for_device(device.compute_capability(), driver_isa()?)?;
    let architecture = format!("--gpu-architecture={target}");
    let (mut own_number, mut bare_number) = (0u32, 0u32);
    // NVRTC keeps nothing of earlier programs; a number in the source makes sure that this library does not either.
    let source = |side: &str, number: u32| format!("{SOURCE}// {side} {number}\n");
    let cold = turns(
        options.turns(3, 40),
        &Subject {
            name: "cold compile",
            against: "NVRTC's own functions",
            unit: Unit::Milliseconds,
            bytes: None,
            rule: Rule::Time,
            goal: Some(1.1),
        },
        || {
            own_number += 1;
            let source = source("own", own_number);
            let start = Instant::now();
            launcher.compile("product", source)?;
            Ok(start.elapsed().as_secs_f64() * 1e3)
        },
        || {
            bare_number += 1;
            let source = source("bare", bare_number);
            let start = Instant::now();
            let image = nvrtc.compile("product.cu", &source, &[&architecture, "--std=c++17"])?;
            let taken = start.elapsed();
            if image.is_empty() { Err("no image".into()) } else { Ok(taken.as_secs_f64() * 1e3) }
        },
    )?;
    check(&launcher)?;
    recorder.add(cold);
    recorder.finish(&options.out)
}

/// Microseconds that the first use took in a process of its own, and whether the cache had it.
fn process(folder: &Path) -> Result<(f64, bool), Failure> {
    let output = Command::new(std::env::current_exe()?).arg(ARGUMENT).arg(folder).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [taken, cached] if output.status.success() => Ok((taken.parse()?, cached.parse()?)),
        _ => Err(format!("{}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr)).into()),
    }
}
