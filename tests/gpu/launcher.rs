//! Kernels by name, from images and from source: the launcher on a device. Tests that need NVRTC are skipped without it,
//! and one test checks a machine without it.

use std::sync::Barrier;

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::Error;
use selvedge::driver::{Argument, ByValue, Device, LaunchConfig, RawAddress};
use selvedge::launcher::{Definition, Fallback, Kernel, LaunchOutcome, Launcher, Origin, Prefer};
use selvedge::nvrtc::{Cache, Program};

use crate::arguments::{MIXED, wanted};
use crate::support::{Need, Outcome, assert_all, assert_error, basic_ptx, device_tests};

device_tests! {
    a_vector_add_of_1024 => needs(Need::Nvrtc),
    every_scalar_kind_by_name, every_scalar_kind_from_source => needs(Need::Nvrtc),
    a_struct_of_the_wrong_size_is_refused, memory_is_held_against_the_name => needs(Need::Nvrtc),
    compile_errors_show_the_place => needs(Need::Nvrtc),
    templates_and_headers => needs(Need::Nvrtc),
    eight_threads_compile_and_run => needs(Need::Nvrtc), eight_threads_run_an_image,
    a_source_is_compiled_once => needs(Need::Nvrtc), a_damaged_cache_is_rebuilt => needs(Need::Nvrtc),
    shapes_by_occupancy, a_run_is_captured, a_declared_kernel, fallbacks_compute_on_the_cpu,
    without_nvrtc_the_rest_works => in_child(&[("SELVEDGE_LIBNVRTC", "none")]),
}

pub const ADD: &str = "__global__ void add(const float *a, const float *b, float *sum, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sum[i] = a[i] + b[i];
}";

fn launcher() -> selvedge::Result<Launcher> {
    // Entries of an earlier run would hide this run's work.
    Launcher::with_cache(&Device::new(0)?, Cache::none())
}

fn a_vector_add_of_1024() -> Outcome {
    let launcher = launcher()?;
    launcher.compile("add", ADD)?;
    let stream = launcher.stream();
    let (a, b) = (stream.upload(&[1.0f32; 1024])?, stream.upload(&[2.0f32; 1024])?);
    let mut sum = stream.zeros::<f32>(1024)?;
    // SAFETY: add touches 1024 elements of each.
    let ran = unsafe { launcher.run("add", 4, 256, (&a, &b, &mut sum, 1024u32))? };
    assert_eq!(ran, LaunchOutcome::Device);
    assert_all(&stream.download(&sum)?, 3.0, "the sum");
    // The same from a list.
    stream.fill(&mut sum, 0.0)?;
    let list =
        [Argument::read(&a), Argument::read(&b), Argument::write(&mut sum), Argument::integer(1024u32)];
    // SAFETY: as above.
    unsafe { launcher.run("add", 4, 256, &list)? };
    drop(list);
    assert_all(&stream.download(&sum)?, 3.0, "the sum of a list");
    Ok(())
}

/// `every_kind` of `tests/data/gpu/basic.cu`, as C++ and with the crate's own types.
const EVERY_KIND: &str = r#"#include <cstdint>
#include <selvedge/half.cuh>
#include <selvedge/bfloat16.cuh>
#include <selvedge/complex.cuh>
using selvedge::complex;
struct Mixed { uint8_t tag; uint32_t number; double weight; uint16_t tail[3]; };
template <typename T> __device__ uint64_t bits(T value) {
    uint64_t word = 0;
    for (int i = 0; i < (int)sizeof(T); ++i) word |= (uint64_t)((const unsigned char*)&value)[i] << (8 * i);
    return word;
}
__global__ void every_kind(uint64_t* out, int8_t i8, uint8_t u8, int16_t i16, uint16_t u16, int32_t i32, uint32_t u32,
                           int64_t i64, uint64_t u64, selvedge::f16 half, selvedge::bf16 brain, float f32, double f64,
                           bool flag, complex<float> c64, complex<double> c128, Mixed mixed) {
    uint64_t words[20] = {(uint64_t)(int64_t)i8, u8, (uint64_t)(int64_t)i16, u16, (uint64_t)(int64_t)i32, u32, (uint64_t)i64,
        u64, bits(half), bits(brain), bits(f32), bits(f64), flag ? 1u : 0u, bits(c64.real) | bits(c64.imaginary) << 32,
        bits(c128.real), bits(c128.imaginary), mixed.tag, mixed.number, bits(mixed.weight),
        mixed.tail[0] | (uint64_t)mixed.tail[1] << 16 | (uint64_t)mixed.tail[2] << 32};
    for (int i = 0; i < 20; ++i) out[i] = words[i];
}"#;

/// Runs it with a tuple and a list, and checks every word that arrived.
fn every_kind(launcher: &Launcher) -> Outcome {
    let stream = launcher.stream();
    let mut out = stream.zeros::<u64>(20)?;
    let (half, brain) = (f16::from_f32(-0.1), bf16::from_f32(3.5));
    let (c64, c128) = (Complex::new(3.5f32, 4.5), Complex::new(5.5f64, -6.5));
    // SAFETY: every_kind writes 20 elements.
    unsafe {
        let arguments = (
            &mut out,
            -7i8,
            250u8,
            -30_000i16,
            60_000u16,
            -2_000_000_000i32,
            4_000_000_000u32,
            i64::MIN,
            u64::MAX - 1,
            half,
            brain,
            1.1f32,
            -2.2f64,
            true,
            c64,
            c128,
            ByValue(MIXED),
        );
        launcher.run("every_kind", 1, 1, arguments)?;
    }
    assert_eq!(stream.download(&out)?, wanted());
    stream.fill(&mut out, 0)?;
    let list = vec![
        Argument::write(&mut out),
        Argument::integer(-7i8),
        Argument::integer(250u8),
        Argument::integer(-30_000i16),
        Argument::integer(60_000u16),
        Argument::integer(-2_000_000_000i32),
        Argument::integer(4_000_000_000u32),
        Argument::integer(i64::MIN),
        Argument::integer(u64::MAX - 1),
        Argument::float(half),
        Argument::float(brain),
        Argument::float(1.1f32),
        Argument::float(-2.2f64),
        Argument::integer(1u8),
        Argument::by_value(c64),
        Argument::by_value(c128),
        Argument::by_value(MIXED),
    ];
    // SAFETY: as above.
    unsafe { launcher.run("every_kind", 1, 1, &list)? };
    drop(list);
    assert_eq!(stream.download(&out)?, wanted());
    Ok(())
}

fn every_scalar_kind_by_name() -> Outcome {
    let launcher = launcher()?;
    launcher.load("every_kind", basic_ptx())?;
    every_kind(&launcher)
}

fn every_scalar_kind_from_source() -> Outcome {
    let launcher = launcher()?;
    launcher.compile("every_kind", EVERY_KIND)?;
    every_kind(&launcher)
}

fn a_struct_of_the_wrong_size_is_refused() -> Outcome {
    let launcher = launcher()?;
    launcher.load("large_struct", basic_ptx())?;
    let mut out = launcher.stream().zeros::<u32>(992)?;
    // SAFETY: each is refused.
    unsafe {
        let shorter = launcher.run("large_struct", 1, 128, (&mut out, ByValue([0u32; 512])));
        assert_error!(shorter, Error::ArgumentMismatch { index: 1, .. });
        let longer = launcher.run("large_struct", 1, 128, (&mut out, ByValue([0u32; 1024])));
        assert_error!(longer, Error::ArgumentMismatch { index: 1, .. });
        let list = [Argument::write(&mut out), Argument::by_value([0u32; 31])];
        assert_error!(launcher.run("large_struct", 1, 128, &list), Error::ArgumentMismatch { index: 1, .. });
        assert_error!(
            launcher.run("large_struct", 1, 128, &list[..1]),
            Error::ArgumentCount { wanted: 2, found: 1, .. }
        );
    }
    assert_all(&launcher.stream().download(&out)?, 0, "what nothing was launched on");
    Ok(())
}

fn memory_is_held_against_the_name() -> Outcome {
    let launcher = launcher()?;
    // From PTX and from a cubin alike: both have the name.
    launcher.compile("add", ADD)?;
    let stream = launcher.stream();
    let (a, wide) = (stream.upload(&[1.0f32; 64])?, stream.upload(&[1.0f64; 64])?);
    let mut sum = stream.zeros::<f32>(64)?;
    // SAFETY: what is not refused touches 64 elements.
    unsafe {
        let refused = launcher.run("add", 1, 64, (&a, &wide, &mut sum, 64u32));
        let text = refused.map(drop).unwrap_err().to_string();
        for words in ["argument 1", "_Z3addPKfS0_Pfj", "float const*", "f64", "reinterpret::<f32>()"] {
            assert!(text.contains(words), "no '{words}' in: {text}");
        }
        // The kinds that no cubin says.
        assert_error!(
            launcher.run("add", 1, 64, (&a, &a, &mut sum, 64.0f32)),
            Error::ArgumentMismatch { index: 3, .. }
        );
        assert_error!(
            launcher.run("add", 1, 64, (&a, a.address(), &mut sum, 64u32)),
            Error::ArgumentMismatch { index: 1, .. }
        );
        assert_all(&stream.download(&sum)?, 0.0, "what nothing was launched on");
        let seen = wide.reinterpret::<f32>()?;
        launcher.run("add", 1, 64, (RawAddress(a.address()), seen, &mut sum, 64u32))?;
    }
    Ok(stream.synchronize()?)
}

fn compile_errors_show_the_place() -> Outcome {
    let launcher = launcher()?;
    let failed = launcher.compile("wrong", "__global__ void wrong(float *x) {\n    x[0] = missing;\n}\n");
    let text = failed.map(drop).unwrap_err().to_string();
    for words in ["wrong.cu(2)", "missing", "x[0] = missing;", "^"] {
        assert!(text.contains(words), "no '{words}' in: {text}");
    }
    assert_error!(launcher.kernel("wrong"), Error::UnknownName { found, .. } if found.is_empty());
    let absent = Definition::new("absent").source(ADD).entry("absent");
    assert_error!(launcher.define(absent), Error::UnknownName { found, .. } if found == ["_Z3addPKfS0_Pfj"]);
    Ok(())
}

fn templates_and_headers() -> Outcome {
    let launcher = launcher()?;
    let source = "#include \"step.h\"\n
        template <typename T> __global__ void climb(T *x) { x[threadIdx.x] += T(STEP) * FACTOR; }";
    let program = Program::new("climb.cu", source)
        .header("step.h", "#define STEP 3")
        .define("FACTOR", 2)
        .expression("climb<int>")
        .expression("climb<double>");
    for name in ["climb<int>", "climb<double>"] {
        launcher.define(Definition::new(name).program(program.clone()))?;
    }
    let stream = launcher.stream();
    let (mut whole, mut real) = (stream.upload(&[1i32; 32])?, stream.upload(&[0.5f64; 32])?);
    // SAFETY: climb touches 32 elements.
    unsafe {
        launcher.run("climb<int>", 1, 32, (&mut whole,))?;
        launcher.run("climb<double>", 1, 32, (&mut real,))?;
        assert_error!(
            launcher.run("climb<int>", 1, 32, (&mut real,)),
            Error::ArgumentMismatch { index: 0, .. }
        );
    }
    assert_all(&stream.download(&whole)?, 7, "the whole numbers");
    assert_all(&stream.download(&real)?, 6.5, "the real numbers");
    Ok(())
}

/// Each of eight threads does its part of it on its own stream.
fn eight_threads(launcher: &Launcher, enter: impl Fn(usize) -> selvedge::Result<String> + Sync) -> Outcome {
    const THREADS: usize = 8;
    let together = Barrier::new(THREADS);
    let one = |number: usize| -> selvedge::Result<()> {
        let stream = launcher.device().stream()?;
        let x = stream.upload(&vec![number as f32; 10_000])?;
        let mut sum = stream.zeros::<f32>(10_000)?;
        together.wait();
        let name = enter(number);
        together.wait();
        let name = name?;
        for _ in 0..200 {
            let y = stream.upload(&vec![1.0f32; 10_000])?;
            // SAFETY: add touches 10,000 elements of each.
            unsafe {
                launcher.run_on(
                    &stream,
                    &name,
                    LaunchConfig::for_elements(10_000),
                    (&x, &y, &mut sum, 10_000u32),
                )?
            };
        }
        assert_all(&stream.download(&sum)?, number as f32 + 1.0, "the sum");
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                scope.spawn({
                    let one = &one;
                    move || one(number)
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| Ok(thread.join().map_err(|_| "a thread failed")??))
    })
}

fn eight_threads_compile_and_run() -> Outcome {
    let launcher = launcher()?;
    // Half of them the same, half of them their own.
    eight_threads(&launcher, |number| {
        let own = if number % 2 == 0 { 0 } else { number };
        let name = format!("add{own}");
        launcher.define(Definition::new(&name).source(format!("{ADD}\n// {own}")).entry("add"))?;
        Ok(name)
    })
}

fn eight_threads_run_an_image() -> Outcome {
    let launcher = launcher()?;
    eight_threads(&launcher, |_| launcher.load("add", basic_ptx()).map(|kernel| kernel.name().to_owned()))
}

/// A folder that is removed at the end.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        Folder(std::env::temp_dir().join(format!("selvedge-{name}-{}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn a_source_is_compiled_once() -> Outcome {
    let folder = Folder::new("once");
    let launcher = Launcher::with_cache(&Device::new(0)?, Cache::at(&folder.0))?;
    let source = format!("{ADD}\n__device__ unsigned flag = 1;");
    let first = launcher.compile("add", &source)?;
    assert_eq!(first.origin(), Some(Origin::Source { from_cache: false }));
    let second = launcher.compile("sum", &source)?;
    // They are of one module: what one writes, the other reads.
    let flag = |kernel: &Kernel| kernel.function()?.module().global::<u32>("flag");
    flag(&first)?.write(launcher.stream(), &[7])?;
    assert_eq!(flag(&second)?.read(launcher.stream())?, [7]);
    drop((launcher, first, second));
    let again = Launcher::with_cache(&Device::new(0)?, Cache::at(&folder.0))?.compile("add", &source)?;
    assert_eq!(again.origin(), Some(Origin::Source { from_cache: true }));
    Ok(())
}

fn a_damaged_cache_is_rebuilt() -> Outcome {
    fn files(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) -> std::io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { files(&path, found)? } else { found.push(path) }
        }
        Ok(())
    }
    let folder = Folder::new("damaged");
    for round in 0..3 {
        let launcher = Launcher::with_cache(&Device::new(0)?, Cache::at(&folder.0))?;
        launcher.compile("add", ADD)?;
        let stream = launcher.stream();
        let a = stream.upload(&[1.0f32; 256])?;
        let mut sum = stream.zeros::<f32>(256)?;
        // SAFETY: add touches 256 elements of each.
        unsafe { launcher.run("add", 1, 256, (&a, &a, &mut sum, 256u32))? };
        assert_all(&stream.download(&sum)?, 2.0, "the sum");
        let mut all = Vec::new();
        files(&folder.0, &mut all)?;
        assert!(!all.is_empty(), "nothing is cached");
        for path in all {
            let bytes = std::fs::read(&path)?;
            let damaged =
                if round == 0 { bytes[..bytes.len() / 2].to_vec() } else { vec![0x55; bytes.len()] };
            std::fs::write(&path, damaged)?;
        }
    }
    Ok(())
}

fn shapes_by_occupancy() -> Outcome {
    let launcher = launcher()?;
    let kernel = launcher.load("saxpy", basic_ptx())?;
    let stream = launcher.stream();
    for length in [1usize, 255, 256, 257, 1_000_003] {
        let x = stream.upload(&vec![2.0f32; length])?;
        let mut y = stream.zeros::<f32>(length)?;
        let config = kernel.function()?.config_for_elements(length, 0)?;
        assert!(config.grid.count() * config.block.count() >= length as u64, "{config:?}");
        // SAFETY: saxpy touches `length` elements of each.
        unsafe { kernel.run(stream, config, (3.0f32, &x, &mut y, length as u32))? };
        assert_all(&stream.download(&y)?, 6.0, "the sum");
    }
    let config = kernel.function()?.config_for_loop(1 << 40, 0)?;
    let most = kernel.function()?.suggested_block_size(0)?;
    assert_eq!((config.grid.x, config.block.x), most);
    assert_error!(kernel.function()?.config_for_elements(usize::MAX, 0), Error::LaunchLimit { .. });
    Ok(())
}

fn a_run_is_captured() -> Outcome {
    let launcher = launcher()?;
    let stream = launcher.stream();
    let x = stream.upload(&[1.0f32; 1000])?;
    let mut y = stream.zeros::<f32>(1000)?;
    let (graph, ran) = stream.capture(|stream| {
        // Also what is loaded for the first time: text of its own that nobody else has loaded.
        let text = [basic_ptx(), b"\n// in a capture\n"].concat();
        launcher.load("saxpy", text)?;
        // SAFETY: saxpy touches 1000 elements of each.
        unsafe {
            launcher.run_on(stream, "saxpy", LaunchConfig::for_elements(1000), (1.0f32, &x, &mut y, 1000u32))
        }
    })?;
    assert_eq!(ran, LaunchOutcome::Device);
    let graph = graph.instantiate()?;
    for _ in 0..3 {
        graph.launch(stream)?;
    }
    assert_all(&stream.download(&y)?, 3.0, "the sum");
    Ok(())
}

selvedge::kernel! {
    /// Of `tests/data/gpu/basic.cu`.
    unsafe fn saxpy(factor: f32, x: &[f32], y: &mut [f32], length: u32);
    unsafe fn short_saxpy(factor: f32, x: &[f32], y: &mut [f32]);
    unsafe fn swapped_saxpy(x: &[f32], factor: f32, y: &mut [f32], length: u32);
}

fn a_declared_kernel() -> Outcome {
    let launcher = launcher()?;
    let kernel = launcher.load("saxpy", basic_ptx())?;
    assert_error!(short_saxpy::bind(&kernel), Error::ArgumentCount { wanted: 4, found: 3, .. });
    assert_error!(swapped_saxpy::bind(&kernel), Error::ArgumentMismatch { index: 0, .. });
    let saxpy = saxpy::bind(kernel)?;
    let stream = launcher.stream();
    let x = stream.upload(&[1.0f32; 1000])?;
    let mut y = stream.zeros::<f32>(1000)?;
    let config = LaunchConfig::for_elements(500);
    // SAFETY: saxpy touches 500 elements of each.
    unsafe {
        saxpy.run(stream, config, 2.0, &x, &mut y, 500)?;
        saxpy.run(stream, config, 3.0, x.slice(500..)?, y.slice_mut(500..)?, 500)?;
    }
    let found = stream.download(&y)?;
    assert_all(&found[..500], 2.0, "the first half");
    assert_all(&found[500..], 3.0, "the second half");
    Ok(())
}

fn fallbacks_compute_on_the_cpu() -> Outcome {
    let launcher = launcher()?;
    let later = String::from_utf8(basic_ptx().to_vec())?.replacen(".version 8.0", ".version 99.0", 1);
    let on_the_cpu = Fallback::cpu(|launch| {
        let [factor, x, y, length] = launch.arguments()?;
        let (factor, length) = (factor.value::<f32>()?, length.value::<u32>()? as usize);
        let x = x.slice::<f32>()?;
        y.slice_mut::<f32>()?.iter_mut().zip(x).take(length).for_each(|(y, x)| *y += factor * x);
        Ok(())
    });
    let kernel = launcher.define(Definition::new("saxpy").image(later.as_bytes()).fallback(on_the_cpu))?;
    assert_error!(kernel.function(), Error::UnsupportedImage { .. });
    // Behind work of another stream, and before what comes after.
    let lab = crate::support::Lab::on(launcher.device())?;
    let mut x = lab.stream.zeros::<u32>(1000)?;
    lab.set(&lab.stream, x.slice_mut(..)?, 1.0f32.to_bits(), crate::support::SLOW)?;
    let x = x.reinterpret::<f32>()?;
    let mut y = launcher.stream().zeros::<f32>(1000)?;
    for round in 1..=2 {
        // SAFETY: nothing is launched.
        let ran = unsafe { launcher.run("saxpy", 4, 256, (2.0f32, x, &mut y, 1000u32))? };
        assert_eq!((ran, kernel.fallbacks_taken()), (LaunchOutcome::Fallback, round));
    }
    assert_all(&lab.stream.download(&y)?, 4.0, "the sum");
    Ok(())
}

fn without_nvrtc_the_rest_works() -> Outcome {
    let launcher = Launcher::new(&Device::new(0)?)?;
    let failed = launcher.compile("add", ADD).map(drop);
    assert_error!(failed, Error::LibraryUnavailable { library, tried }
        if library.contains("NVRTC") && tried.contains("SELVEDGE_LIBNVRTC"));
    for prefer in [Prefer::Source, Prefer::Image] {
        let both = Definition::new("add").source(ADD).image(basic_ptx()).prefer(prefer);
        assert_eq!(launcher.define(both)?.origin(), Some(Origin::Image));
    }
    let stream = launcher.stream();
    let a = stream.upload(&[1.0f32; 256])?;
    let mut sum = stream.zeros::<f32>(256)?;
    // SAFETY: add touches 256 elements of each.
    unsafe { launcher.run("add", 1, 256, (&a, &a, &mut sum, 256u32))? };
    assert_all(&stream.download(&sum)?, 2.0, "the sum");
    launcher.define(Definition::new("cpu").source(ADD).fallback(Fallback::cpu(|_| Ok(()))))?;
    // SAFETY: nothing is launched.
    assert_eq!(unsafe { launcher.run("cpu", 1, 256, (&a, &a, &mut sum, 256u32))? }, LaunchOutcome::Fallback);
    every_scalar_kind_by_name()
}
