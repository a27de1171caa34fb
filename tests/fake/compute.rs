//! `GpuCompute` on the fake driver: a vector sum by its fallback, wrong arguments, consumed buffers, and launches of compiled
//! source where there is an NVRTC.

use std::sync::Mutex;

use half::{bf16, f16};
use selvedge::Error;
use selvedge::driver::{Argument, Device};
use selvedge::launcher::{GpuArg, GpuCompute, HostLaunch, LaunchOutcome, Launcher};
use selvedge::nvrtc::{self, Cache};

use super::children;
use super::support::Fake;
use super::variant::Variant;
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const SOURCE: &str = "__global__ void vector_add(const float *a, const float *b, float *sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sum[i] = a[i] + b[i];
}";

/// Warnings and errors of the crate.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Lines;

impl log::Log for Lines {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            LINES.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

macro_rules! ensure {
    ($condition:expr, $($words:tt)*) => {
        if !$condition {
            return Err(format!("{}: {}", line!(), format!($($words)*)).into());
        }
    };
}

fn compute() -> selvedge::Result<GpuCompute> {
    Ok(Launcher::with_cache(&Device::new(0)?, Cache::none())?.into())
}

fn add(launch: &mut HostLaunch<'_>) -> selvedge::Result<()> {
    let threads = launch.config().grid.x * launch.config().block.x;
    let [a, b, sum, n] = launch.arguments()?;
    let n = n.value::<i32>()?.min(threads as i32) as usize;
    let (a, b) = (a.slice::<f32>()?, b.slice::<f32>()?);
    sum.slice_mut::<f32>()?.iter_mut().zip(a.iter().zip(b)).take(n).for_each(|(sum, (a, b))| *sum = a + b);
    Ok(())
}

fn fallback(fake: &Fake) -> Outcome {
    log::set_logger(&Lines).map_err(|error| error.to_string())?;
    log::set_max_level(log::LevelFilter::Warn);
    let gpu = compute()?;
    // Without a fallback, the missing compiler is an error.
    let refused = gpu.compile_kernel("vector_add", SOURCE).map(drop);
    ensure!(matches!(refused, Err(Error::LibraryUnavailable { .. })), "{refused:?}");
    ensure!(gpu.fallbacks_taken() == 0 && gpu.launcher().names().is_empty(), "nothing is defined");

    let kernel = gpu.compile_kernel_or("vector_add", SOURCE, add)?;
    let (a, b) = (gpu.upload(&[1.0f32; 1024])?, gpu.upload(&[2.0f32; 1024])?);
    let mut sum = gpu.allocate::<f32>(1024)?;
    let launches = fake.launches();
    for round in 1..=3 {
        let arguments = vec![GpuArg::from(&a), (&b).into(), (&mut sum).into(), 1024i32.into()];
        // SAFETY: nothing is launched.
        let ran = unsafe { gpu.run_kernel("vector_add", (4, 1, 1), (256, 1, 1), arguments)? };
        ensure!(ran == LaunchOutcome::Fallback, "{ran:?}");
        ensure!(gpu.fallbacks_taken() == round && kernel.fallbacks_taken() == round, "round {round}");
    }
    ensure!(fake.launches() == launches, "a launch");
    let lines = LINES.lock().unwrap().clone();
    let [defined, line] = &lines[..] else { return Err(format!("{lines:?}").into()) };
    ensure!(defined.contains("'vector_add' is unavailable and will run on the CPU"), "{defined}");
    ensure!(line.contains("'vector_add' runs on the CPU") && line.contains("NVRTC"), "{line}");

    // Both forms of a download, of a buffer by reference and by value.
    ensure!(gpu.download(&sum)? == [3.0; 1024], "the sum");
    let mut elements = [0.0f32; 1024];
    gpu.download_into(&sum, &mut elements)?;
    ensure!(elements == [3.0; 1024], "the sum in a slice");
    ensure!(gpu.download_into(&sum, &mut elements[1..]).is_err(), "a slice that is too short");
    ensure!(gpu.download(sum)? == [3.0; 1024], "the sum by value");

    // Consumed operands, and an array of arguments.
    let mut sum = gpu.allocate::<f32>(1024)?;
    let arguments = [GpuArg::from(a), GpuArg::from(b), GpuArg::from(&mut sum), GpuArg::I32(1000)];
    // SAFETY: nothing is launched.
    unsafe { gpu.run_kernel("vector_add", 4, 256, arguments)? };
    ensure!(gpu.download(&sum)?[..1000] == [3.0; 1000], "of consumed buffers");
    gpu.download_into(sum, &mut elements)?;
    ensure!(elements[999..1001] == [3.0, 0.0], "1000 elements");

    // A fallback's error reaches the caller.
    let wrong = [GpuArg::F64(1.0)];
    // SAFETY: nothing is launched.
    let found = unsafe { gpu.run_kernel("vector_add", 4, 256, wrong) };
    ensure!(matches!(found, Err(Error::ArgumentCount { wanted: 4, found: 1, .. })), "{found:?}");
    Ok(())
}

/// A kernel of a buffer and each kind of scalar, which does nothing.
const EVERY_KIND: &str = "\
.version 7.0
.target sm_60
.address_size 64
.visible .entry every_kind(.param .u64 every_kind_read_a, .param .u8 every_kind_b, .param .u8 every_kind_c,
    .param .u8 every_kind_d, .param .u16 every_kind_e, .param .u16 every_kind_f, .param .u32 every_kind_g,
    .param .u32 every_kind_h, .param .u64 every_kind_i, .param .u64 every_kind_j, .param .b16 every_kind_k,
    .param .b16 every_kind_l, .param .f32 every_kind_m, .param .f64 every_kind_n) { ret; }
";

fn scalars(fake: &Fake) -> Outcome {
    let gpu = compute()?;
    gpu.launcher().load("every_kind", EVERY_KIND)?;
    let a = gpu.upload(&[1u8; 16])?;
    let arguments = || {
        vec![
            GpuArg::from(&a),
            true.into(),
            1i8.into(),
            1u8.into(),
            1i16.into(),
            1u16.into(),
            1i32.into(),
            1u32.into(),
            1i64.into(),
            1u64.into(),
            f16::ONE.into(),
            bf16::ONE.into(),
            1f32.into(),
            1f64.into(),
        ]
    };
    let launches = fake.launches();
    // SAFETY: every_kind does nothing.
    let ran = unsafe { gpu.run_kernel("every_kind", 1, 32, arguments())? };
    ensure!(ran == LaunchOutcome::Device && fake.launches() == launches + 1, "{ran:?}");
    for (index, wrong) in
        [(1, GpuArg::I32(1)), (6, GpuArg::U64(1)), (12, GpuArg::F64(1.0)), (13, GpuArg::F32(1.0))]
    {
        let mut list = arguments();
        list[index] = wrong;
        // SAFETY: it is refused.
        let found = unsafe { gpu.run_kernel("every_kind", 1, 32, list) };
        ensure!(
            matches!(found, Err(Error::ArgumentMismatch { index: at, .. }) if at == index),
            "{index}: {found:?}"
        );
    }
    let part = a.slice(8..)?;
    let mut list = arguments();
    list[0] = Argument::read(&part).into();
    list.pop();
    // SAFETY: it is refused.
    let found = unsafe { gpu.run_kernel("every_kind", 1, 32, list) };
    ensure!(matches!(found, Err(Error::ArgumentCount { wanted: 14, found: 13, .. })), "{found:?}");
    // SAFETY: it is refused.
    let found = unsafe { gpu.run_kernel("absent", 1, 32, arguments()) };
    ensure!(matches!(found, Err(Error::UnknownName { .. })), "{found:?}");
    ensure!(fake.launches() == launches + 1, "a launch");
    Ok(())
}

/// From source, with an NVRTC that can be used beside this driver.
fn source(fake: &Fake) -> Outcome {
    match nvrtc::version() {
        Ok(version) if version <= (12, 0) => {}
        other => {
            println!("not run with NVRTC {other:?}");
            return Ok(());
        }
    }
    let gpu = compute()?;
    gpu.compile_kernel_or("vector_add", SOURCE, add)?;
    let (a, b) = (gpu.upload(&[1.0f32; 1024])?, gpu.upload(&[2.0f32; 1024])?);
    let mut sum = gpu.allocate::<f32>(1024)?;
    let launches = fake.launches();
    let arguments = vec![GpuArg::from(a), (&b).into(), (&mut sum).into(), 1024i32.into()];
    // SAFETY: vector_add touches 1024 elements of each.
    let ran = unsafe { gpu.run_kernel("vector_add", 4, 256, arguments)? };
    ensure!(ran == LaunchOutcome::Device && fake.launches() == launches + 1, "{ran:?}");
    // The first buffer was dropped behind the launch.
    gpu.launcher().stream().synchronize()?;
    ensure!(gpu.fallbacks_taken() == 0, "no fallback");
    let broken = gpu.compile_kernel("broken", "__global__ void broken() { nonsense; }").map(drop);
    ensure!(matches!(&broken, Err(Error::Compilation { log, .. }) if log.contains("nonsense")), "{broken:?}");
    let replaced = gpu.compile_kernel_or("broken", "nonsense", |_| Ok(()))?;
    ensure!(replaced.origin().is_none(), "a source that does not compile is a reason");
    Ok(())
}

pub fn child(fake: &Fake, arguments: &[String]) -> Outcome {
    let test = TESTS.iter().find(|(name, ..)| arguments.first().is_some_and(|asked| asked == name));
    test.ok_or("no such test")?.1(fake)?;
    let violations = fake.violations();
    ensure!(violations.is_empty(), "{violations:?}");
    Ok(())
}

type Run = fn(&Fake) -> Outcome;

/// Each with whether NVRTC may be there.
const TESTS: &[(&str, Run, bool)] = &[
    ("a_vector_sum_falls_back_with_a_log_line_and_a_count", fallback, false),
    ("buffers_and_every_scalar_go_in_one_vector", scalars, false),
    ("source_is_compiled_where_there_is_nvrtc", source, true),
];

pub fn tests() -> Vec<Test> {
    let test = |&(name, _, nvrtc): &(&'static str, Run, bool)| {
        Test::new(format!("compute::{name}"), move || {
            let settings: &[(&str, &str)] = if nvrtc { &[] } else { &[("SELVEDGE_LIBNVRTC", "none")] };
            let arguments = [name.to_owned()];
            children::must_succeed(&Variant::new(12040), "compute", &arguments, settings).map(drop)
        })
    };
    TESTS.iter().map(test).collect()
}
