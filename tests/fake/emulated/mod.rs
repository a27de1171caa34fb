//! Matrix products by this crate's own kernels without a GPU: the kernels' sources run on an emulated machine
//! (`csrc/emulation`) behind the fake driver, so that host and device side are held together against the definition, by the
//! cases of the device suite.
//!
//! Each test runs with several seeds, which decide the order of everything that runs at a time.

#[cfg(feature = "nn")]
mod activations;
mod attention;
mod build;
#[cfg(feature = "burst")]
mod burst;
#[cfg(feature = "capi")]
mod burst_capi;
#[cfg(feature = "classifier")]
mod classifier;
mod decode;
#[cfg(feature = "srt")]
mod e8;
mod faults;
mod few_rows;
mod histogram;
#[cfg(feature = "nn")]
mod linear_layers;
mod select;
mod sort;
#[cfg(feature = "srt")]
mod srt;
mod topk;

use std::sync::OnceLock;

use half::{bf16, f16};
use libloading::Library;
use libtest_mimic::Failed;
use num_complex::Complex;
use selvedge::driver::{Device, Stream};
use selvedge::gemm::{Choice, DeviceProperties, Engine, Operation, Plan, Product};
use selvedge::types::DType;

use super::children;
use super::products::cases::{self, Case, LAYOUTS};
use super::products::chains::{self, Chain};
use super::products::numbers::{Number, ResultOf};
use super::products::{doubles, epilogues, slices};
use super::support::{Fake, FakeLaunch};
use super::variant::Variant;
use crate::common::sampling;
use crate::common::suite::Test;
use build::Family;
pub use faults::faults;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const MMA: Choice = Choice::Only(Engine::Mma);
const SIMT: Choice = Choice::Only(Engine::Simt);

const fn family(
    source: &'static str,
    defines: &'static [&'static str],
    cluster: u32,
    resident: u32,
) -> Family {
    Family { source, defines, cluster, resident, any_order: false, fault: None }
}

const PERSISTENT_BF16: Family = family("gemm_wgmma.cu", &["-DELEMENT=bf16"], 2, 2);
const PERSISTENT_F16: Family = family("gemm_wgmma.cu", &["-DELEMENT=f16"], 2, 2);
const SPLIT_K_BF16: Family = family("gemm_split.cu", &["-DELEMENT=bf16"], 1, 2);
const SPLIT_K_F16: Family = family("gemm_split.cu", &["-DELEMENT=f16"], 1, 2);
const MMA_BF16: Family = family("gemm_mma.cu", &["-DELEMENT=bf16", "-D__CUDA_ARCH__=800"], 1, 2);
const MMA_F16: Family = family("gemm_mma.cu", &["-DELEMENT=f16", "-D__CUDA_ARCH__=750"], 1, 2);
/// Doubles by the instructions of 9.0, and by that of 8.0.
const MMA_F64: Family = family("gemm_mma_double.cu", &["-DELEMENT=f64"], 1, 2);
const MMA_C128: Family = family("gemm_mma_double.cu", &["-DELEMENT=c128"], 1, 2);
const OLDER_F64: Family = family("gemm_mma_double.cu", &["-DELEMENT=f64", "-D__CUDA_ARCH__=800"], 1, 2);
const OLDER_C128: Family = family("gemm_mma_double.cu", &["-DELEMENT=c128", "-D__CUDA_ARCH__=800"], 1, 2);
const ASYNC_F32: Family = family("gemm_async.cu", &["-DELEMENT=f32"], 1, 2);
const ASYNC_F64: Family = family("gemm_async.cu", &["-DELEMENT=f64"], 1, 2);
const ASYNC_C64: Family = family("gemm_async.cu", &["-DELEMENT=c64"], 1, 2);
const ASYNC_C128: Family = family("gemm_async.cu", &["-DELEMENT=c128"], 1, 2);
/// The reduction of parallel split-K.
const REDUCE: Family = family("gemm_reduce.cu", &[], 1, 2);
const BULK_F32: Family = family("gemm_bulk.cu", &["-DELEMENT=f32"], 1, 2);
const BULK_C64: Family = family("gemm_bulk.cu", &["-DELEMENT=c64"], 1, 2);
const SIMT_F16: Family = family("gemm_simt.cu", &["-DELEMENT=f16", "-DF32_OUTPUT"], 1, 1);
const SIMT_U8: Family = family("gemm_simt.cu", &["-DELEMENT=u8"], 1, 1);
/// Copies of operands that no tensor map describes.
const PACK: Family = family("gemm_pack.cu", &[], 1, 2);

type Run = unsafe extern "C" fn(*const FakeLaunch) -> i32;
type Seed = unsafe extern "C" fn(u64);

struct Emulated {
    run: Vec<Run>,
    seed: Vec<Seed>,
}

static EMULATED: OnceLock<Emulated> = OnceLock::new();

extern "C" fn runner(launch: *const FakeLaunch) -> i32 {
    // SAFETY: the fake gives a launch that lives as long as the call, and the libraries take it.
    EMULATED.get().map_or(0, |all| all.run.iter().map(|run| unsafe { run(launch) }).max().unwrap_or(0))
}

/// Builds the families, and has the fake run their kernels.
fn emulate(fake: &Fake, families: &[Family]) -> Outcome {
    let mut all = Emulated { run: Vec::new(), seed: Vec::new() };
    for family in families {
        // SAFETY: the library was just compiled; loading it runs nothing, and it is never unloaded.
        let library = Box::leak(Box::new(unsafe { Library::new(build::build(family)?)? }));
        // SAFETY: the types are those of the source in `build`.
        unsafe {
            all.run.push(*library.get::<Run>(b"emulated_run\0")?);
            all.seed.push(*library.get::<Seed>(b"emulated_seed\0")?);
        }
    }
    if crate::common::builds_only() {
        // A fault that ends well would be one that was not found.
        std::process::exit(families.iter().any(|family| family.fault.is_some()).into());
    }
    if EMULATED.set(all).is_err() {
        return Err("one set of families for each process".into());
    }
    fake.set_runner(Some(runner));
    Ok(())
}

/// Schedules that a sample reduces to one.
const FEW_SEEDS: u64 = 2;

/// Once for each seed.
fn with_seeds(count: u64, mut check: impl FnMut(&Stream) -> Outcome) -> Outcome {
    let stream = Device::new(0)?.stream()?;
    // Few schedules are a table, of which a sample takes one; many are a search, which ends at what it finds.
    let seeds = if count > FEW_SEEDS || sampling::is_whole("emulated") {
        0..count
    } else {
        let seed = sampling::number("emulated schedules") % count;
        seed..seed + 1
    };
    for seed in seeds {
        for start in EMULATED.get().iter().flat_map(|all| &all.seed) {
            // SAFETY: it takes any number.
            unsafe { start(0x9E37_79B9_7F4A_7C15u64.wrapping_mul(seed + 1)) };
        }
        check(&stream)?;
    }
    Ok(())
}

/// Every n-th case of a test; all where the emulated tests run whole. Three leaves cases of all four layouts.
fn every<T>(n: usize, test: &str, cases: impl IntoIterator<Item = T>) -> Vec<T> {
    sampling::every("emulated", n, test, cases)
}

fn passes(outcome: Result<(), Failed>) -> Outcome {
    outcome.map_err(|failed| failed.message().unwrap_or("failed").into())
}

/// One product with every kernel configuration, all of which give the same whole numbers.
fn with_every_algorithm<T: Number, C: ResultOf<T>>(
    stream: &Stream,
    case: Case,
    algorithms: &[&str],
) -> Outcome {
    for algorithm in algorithms {
        passes(case.check_in::<T, C>(stream, algorithm.parse()?))?;
    }
    Ok(())
}

/// As [`with_every_algorithm`], of bf16, and of f16 into f32 with factors.
fn in_both_types(stream: &Stream, case: Case, algorithms: &[&str]) -> Outcome {
    with_every_algorithm::<bf16, bf16>(stream, case, algorithms)?;
    with_every_algorithm::<f16, f32>(stream, Case { alpha: (3, 0), beta: (-2, 0), ..case }, algorithms)
}

/// Child: persistent clusters, in tiles of every width.
fn persistent(fake: &Fake) -> Outcome {
    emulate(fake, &[PERSISTENT_BF16, PERSISTENT_F16])?;
    with_seeds(2, |stream| {
        for case in cases::around_tiles() {
            let case = Case { multiple: 8, ..case };
            let algorithms = ["persistent/64", "persistent/128", "persistent/256"];
            in_both_types(stream, case, &algorithms)?;
        }
        // More tiles than clusters, of fewer steps than a tile has parts, as many, and more; stored by TMA, and by threads.
        for (columns, k, more) in [(256, 130, 0), (256, 64, 4), (192, 70, 0), (192, 200, 8), (128, 328, 2)] {
            let case = Case { multiple: 8, ..Case::new(16, 67 * columns + more, k) };
            with_every_algorithm::<bf16, bf16>(stream, case, &[&format!("persistent/{columns}")])?;
        }
        Ok(())
    })
}

/// Child: stream-K, which divides the last wave in one wave or more of its own.
fn stream_k(fake: &Fake) -> Outcome {
    emulate(fake, &[PERSISTENT_BF16, PERSISTENT_F16])?;
    with_seeds(2, |stream| {
        let sizes = [
            (257, 72, 4800, "persistent/64/stream-k"),
            (40, 1000, 2888, "persistent/128/stream-k"),
            (300, 264, 5000, "persistent/256/stream-k"),
            // A wave of whole tiles, and one that is divided.
            (9 * 256, 8 * 64, 3208, "persistent/64/stream-k"),
            // 36 and 27 tiles for 66 clusters: the clusters without a slice take the ends of one whole tile and a slice, or of two
            // and one.
            (16, 36 * 64, 3208, "persistent/64/stream-k"),
            (16, 27 * 64, 5000, "persistent/64/stream-k"),
        ];
        let sizes = sizes.into_iter().zip(LAYOUTS.into_iter().cycle());
        for ((m, n, k, algorithm), operations) in every(2, "stream-K", sizes) {
            let case = Case { operations, multiple: 8, ..Case::new(m, n, k) };
            with_every_algorithm::<bf16, bf16>(stream, case, &[algorithm])?;
            if m < 1000 {
                with_every_algorithm::<f16, f32>(
                    stream,
                    Case { alpha: (3, 0), beta: (-2, 0), ..case },
                    &[algorithm],
                )?;
            }
        }
        Ok(())
    })
}

/// Child: split-K.
fn split_k(fake: &Fake) -> Outcome {
    emulate(fake, &[SPLIT_K_BF16, SPLIT_K_F16])?;
    with_seeds(2, |stream| {
        for case in cases::around_tiles() {
            let case = Case { multiple: 8, ..case };
            let algorithms = [
                "split-k/128x16x1",
                "split-k/128x64x2/swapped",
                "split-k/128x128x3",
                "split-k/64x64x2",
                "split-k/64x16x3/swapped",
                "split-k/128x32x4/swapped",
            ];
            in_both_types(stream, case, &algorithms)?;
        }
        Ok(())
    })
}

/// Child: `mma.sync`, also by the instructions of compute capability 7.5.
fn mma(fake: &Fake) -> Outcome {
    emulate(fake, &[MMA_BF16, MMA_F16])?;
    with_seeds(2, |stream| {
        for case in every(3, "mma", cases::around_tiles()) {
            for multiple in [1, 8] {
                let case = Case { multiple, alpha: (3, 0), beta: (1, 0), ..case };
                passes(case.check::<bf16, bf16>(stream, MMA))?;
                passes(case.check::<f16, f32>(stream, MMA))?;
            }
        }
        Ok(())
    })?;
    // As many products as take longer in smaller tiles, of which the last ones share numbers with those before.
    let [nn, nt, tn, tt] = LAYOUTS;
    with_seeds(1, |stream| {
        for ((m, n, k), operations, tile) in [
            ((136, 264, 72), nn, "nn_large"),
            ((133, 261, 72), nt, "nt_large"),
            ((136, 264, 33), tn, "tn_large"),
            ((136, 261, 72), tt, "tt_large"),
            ((133, 136, 72), nn, "nn_medium"),
            ((136, 133, 40), tt, "tt_medium"),
        ] {
            let case = Case { operations, multiple: 8, batch: 33, beta: (1, 0), ..Case::new(m, n, k) };
            let product = Product::new(m, n, k).a(operations.0).b(operations.1);
            let product = product.batch(case.batch, m * k, k * n, m * n).by(MMA);
            let plan =
                Plan::explain(&product, DType::BF16, DType::BF16, DeviceProperties::reference((9, 0)))?;
            assert!(plan.kernel().ends_with(tile), "{plan}");
            passes(case.check::<bf16, bf16>(stream, MMA))?;
        }
        Ok(())
    })
}

/// Whole numbers around the sizes of tiles and steps, of any alignment, and random ones bit by bit on every tile.
fn doubles(fake: &Fake, families: &[Family]) -> Outcome {
    emulate(fake, families)?;
    with_seeds(1, |stream| {
        for case in every(3, "doubles", cases::around_tiles()) {
            for multiple in [1, 8] {
                let case = Case { multiple, ..cases::scaled(case) };
                passes(case.check::<f64, f64>(stream, MMA))?;
                passes(case.check::<Complex<f64>, Complex<f64>>(stream, MMA))?;
            }
        }
        for (operations, place) in LAYOUTS.into_iter().zip([(0, 0), (1, 0), (0, 1), (0, 3)]) {
            for size in doubles::SIZES {
                passes(doubles::check::<f64>(stream, size, operations, place, Engine::Mma))?;
            }
            // The second one takes the largest tile.
            for size in &doubles::SIZES[..2] {
                let conjugated = (doubles::conjugated(operations.0), operations.1);
                passes(doubles::check::<Complex<f64>>(stream, *size, conjugated, (0, 0), Engine::Mma))?;
            }
        }
        for Case { size, operations, .. } in cases::conjugates_of(cases::CONJUGATED_SIZES[0]) {
            passes(doubles::check::<Complex<f64>>(stream, size, operations, (1, 1), Engine::Mma))?;
        }
        Ok(())
    })
}

/// Child: ordinary arithmetic, by copies that run beside it and without.
fn simt(fake: &Fake) -> Outcome {
    emulate(fake, &[BULK_F32, BULK_C64, ASYNC_F32, ASYNC_F64, ASYNC_C64, ASYNC_C128, SIMT_F16, SIMT_U8])?;
    with_seeds(1, |stream| {
        for case in every(3, "simt", cases::around_tiles()) {
            for multiple in [1, 8] {
                let case = Case { multiple, ..cases::scaled(case) };
                passes(case.check::<f32, f32>(stream, SIMT))?;
                passes(case.check::<f64, f64>(stream, SIMT))?;
                passes(case.check::<Complex<f32>, Complex<f32>>(stream, SIMT))?;
                passes(case.check::<Complex<f64>, Complex<f64>>(stream, SIMT))?;
                passes(case.check::<f16, f32>(stream, SIMT))?;
                passes(case.check::<u8, u8>(stream, SIMT))?;
            }
        }
        for case in cases::conjugates_of(cases::CONJUGATED_SIZES[0]) {
            passes(case.check::<Complex<f32>, Complex<f32>>(stream, SIMT))?;
            passes(case.check::<Complex<f64>, Complex<f64>>(stream, SIMT))?;
        }
        Ok(())
    })
}

/// As many products as take longer in small tiles.
const MANY: usize = 200;

/// Child: ordinary arithmetic on what bulk copies bring in, in small tiles and in large ones.
fn bulk(fake: &Fake) -> Outcome {
    emulate(fake, &[BULK_F32, BULK_C64])?;
    with_seeds(2, |stream| {
        for case in every(3, "bulk", cases::around_tiles()) {
            let case = Case { multiple: 4, ..cases::scaled(case) };
            passes(case.check::<f32, f32>(stream, SIMT))?;
            passes(case.check::<Complex<f32>, Complex<f32>>(stream, SIMT))?;
        }
        // An operand that is conjugated and not transposed takes a kernel of `gemm_async`.
        let is_bulk = |case: &Case| ![case.operations.0, case.operations.1].contains(&Operation::Conjugate);
        for case in cases::conjugates_of(cases::CONJUGATED_SIZES[0]).into_iter().filter(is_bulk) {
            let case = Case { multiple: 4, ..case };
            passes(case.check::<f32, f32>(stream, SIMT))?;
            passes(case.check::<Complex<f32>, Complex<f32>>(stream, SIMT))?;
        }
        Ok(())
    })?;
    // Tiles that are not whole, in batches that share a matrix or not.
    with_seeds(1, |stream| {
        for operations in LAYOUTS {
            let case = Case {
                operations,
                multiple: 4,
                gaps: (4, 8, 4),
                starts: (4, 8, 0),
                ..Case::new(70, 133, 97)
            };
            for (batch, shared) in [(1, (false, false)), (3, (true, false)), (3, (false, true))] {
                let case = Case { batch, shared, ..case };
                passes(case.check::<f32, f32>(stream, SIMT))?;
                passes(case.check::<Complex<f32>, Complex<f32>>(stream, SIMT))?;
            }
        }
        Ok(())
    })?;
    // Each has two small tiles.
    let large = |m, n, dtype| {
        let product = Product::new(m, n, 108).batch(MANY, m * 108, n * 108, m * n);
        Plan::explain(&product, dtype, dtype, DeviceProperties::reference((9, 0)))
            .map(|plan| plan.kernel().to_owned())
    };
    assert_eq!(large(8, 68, DType::F32)?, "gemm_bulk_f32_nn_large");
    assert_eq!(large(68, 8, DType::C64)?, "gemm_bulk_c64_nn_large");
    with_seeds(1, |stream| {
        for operations in LAYOUTS {
            let case = Case { operations, multiple: 4, batch: MANY, ..Case::new(8, 68, 108) };
            passes(case.check::<f32, f32>(stream, SIMT))?;
            let case = Case { size: (68, 8, 108), ..case };
            passes(case.check::<Complex<f32>, Complex<f32>>(stream, SIMT))?;
        }
        Ok(())
    })
}

/// Child: batches, gaps, and starts where no vector can be read, which are copied first where that pays.
fn batches(fake: &Fake) -> Outcome {
    emulate(fake, &[PERSISTENT_BF16, SPLIT_K_BF16, MMA_BF16, BULK_F32, ASYNC_F32, PACK])?;
    with_seeds(1, |stream| {
        // The kernels' batches: a batch of one is every other test's, and an empty one launches nothing.
        for case in cases::batches_of(cases::BATCHED).into_iter().filter(|case| case.batch > 1) {
            let algorithms = ["persistent/64", "split-k/128x64x1"];
            with_every_algorithm::<bf16, bf16>(stream, case.aligned(), &algorithms)?;
            passes(case.aligned().check::<f32, f32>(stream, SIMT))?;
            passes(case.unaligned().check::<bf16, bf16>(stream, Choice::Auto))?;
            passes(case.unaligned().check::<f32, f32>(stream, Choice::Auto))?;
        }
        Ok(())
    })
}

/// Child: few tiles and a long k, whose slices are products that a reduction adds.
fn parallel_split_k(fake: &Fake) -> Outcome {
    emulate(fake, &[BULK_F32, BULK_C64, ASYNC_F32, ASYNC_C64, MMA_F64, MMA_C128, REDUCE])?;
    with_seeds(1, |stream| {
        for (index, case) in cases::of_long_k().enumerate() {
            let [one, other] = [Case { multiple: 8, ..case }, case.unaligned()];
            passes(one.check::<f32, f32>(stream, Choice::Own))?;
            passes(other.check::<f32, f32>(stream, Choice::Own))?;
            let case = if index % 2 == 0 { one } else { other };
            passes(case.check::<f64, f64>(stream, Choice::Own))?;
            passes(case.check::<Complex<f32>, Complex<f32>>(stream, Choice::Own))?;
            if index < 2 {
                passes(case.check::<Complex<f64>, Complex<f64>>(stream, Choice::Own))?;
            }
        }
        passes(epilogues::of_long_k(stream, &every(3, "epilogues of a long k", epilogues::all())))?;
        passes(slices::in_graphs(stream))
    })
}

/// Child: every part of an epilogue, on every engine.
fn epilogue(fake: &Fake) -> Outcome {
    emulate(
        fake,
        &[
            PERSISTENT_BF16,
            PERSISTENT_F16,
            SPLIT_K_BF16,
            SPLIT_K_F16,
            MMA_BF16,
            MMA_F16,
            MMA_F64,
            BULK_F32,
            ASYNC_F32,
            ASYNC_F64,
        ],
    )?;
    with_seeds(1, |stream| {
        let parts = every(3, "epilogues", epilogues::all());
        passes(epilogues::every_part(stream, &[Engine::Wgmma, Engine::Mma], &parts))?;
        passes(epilogues::by_persistent_clusters(stream, &parts))
    })
}

/// Child: products that read what the ones before them wrote, each of which may begin before that has ended.
fn chains(fake: &Fake) -> Outcome {
    emulate(fake, &[PERSISTENT_BF16, SPLIT_K_BF16, MMA_BF16])?;
    let other = Device::new(0)?.stream()?;
    with_seeds(2, |stream| {
        for algorithm in [None, Some("persistent/64".parse()?), Some("split-k/64x32x1/swapped".parse()?)] {
            let chain = Chain { rows: 72, columns: 64, products: 8, algorithm };
            let streams = [stream.clone(), other.clone()];
            passes(chains::on_streams(&streams, chain))?;
            passes(chains::in_graphs(&streams, chain))?;
        }
        Ok(())
    })
}

/// One child of this module by name.
pub fn child(fake: &Fake, arguments: &[String]) -> Outcome {
    let name = match arguments {
        #[cfg(feature = "classifier")]
        [name] if name == "classifier_without_an_image" => return classifier::without_an_image(fake),
        [name] => name,
        [name, number] if name == "faulty" => return faults::faulty(fake, number),
        other => return Err(format!("no child {other:?}").into()),
    };
    children().find(|(known, _)| known == name).ok_or("no such child")?.1(fake)?;
    match fake.violations() {
        violations if violations.is_empty() => Ok(()),
        violations => Err(violations.join("\n").into()),
    }
}

type Child = fn(&Fake) -> Outcome;

/// The children of this module and of those in it.
fn children() -> impl Iterator<Item = &'static (&'static str, Child)> {
    let all = CHILDREN.iter().chain(attention::CHILDREN).chain(decode::CHILDREN).chain(few_rows::CHILDREN);
    #[cfg(feature = "burst")]
    let all = all.chain(burst::CHILDREN);
    #[cfg(feature = "classifier")]
    let all = all.chain(classifier::CHILDREN);
    #[cfg(feature = "nn")]
    let all = all.chain(activations::CHILDREN).chain(linear_layers::CHILDREN);
    #[cfg(feature = "srt")]
    let all = all.chain(e8::CHILDREN);
    #[cfg(feature = "srt")]
    let all = all.chain(srt::CHILDREN);
    all
}

static CHILDREN: &[(&str, Child)] = &[
    ("persistent", persistent),
    ("stream_k", stream_k),
    ("split_k", split_k),
    ("mma", mma),
    ("doubles", |fake| doubles(fake, &[MMA_F64, MMA_C128])),
    ("doubles_of_older_devices", |fake| doubles(fake, &[OLDER_F64, OLDER_C128])),
    ("simt", simt),
    ("bulk", bulk),
    ("batches", batches),
    ("chains", chains),
    ("parallel_split_k", parallel_split_k),
    ("epilogues", epilogue),
    ("firsts", topk::firsts),
    ("histograms", histogram::histograms),
    ("selections", select::selections),
    ("sorts", sort::sorts),
];

pub fn tests() -> Vec<Test> {
    let test = |(name, _): (&'static str, Child)| {
        Test::new(format!("emulated::{name}"), move || {
            children::must_succeed(&Variant::new(12040), "emulated", &[name.to_owned()], &[]).map(drop)
        })
    };
    let all = children().copied().map(test);
    #[cfg(feature = "classifier")]
    let all = all.chain(classifier::tests());
    all.collect()
}
