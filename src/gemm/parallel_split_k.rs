//! Parallel split-K (CUTLASS's `GemmSplitKParallel`): a product of few tiles and a long k as a batch of products of slices of k. The
//! engine's own kernels write the partials into a workspace of the stream, and `csrc/kernels/gemm_reduce.cu` adds them.
//!
//! The engines `simt`, for f32 and c64, and `mma`, for f64 and c128, use it. f64 by `simt` stays one sum with k ascending, on
//! which bit-exact products depend. The engine `wgmma` divides k within a cluster instead (`wgmma/split_k.rs`).
//!
//! Invariants: the slices are a function of sizes, type, engine and the number of multiprocessors, not of alignment. Partials are added
//! with k ascending. So a product has the same bits every time on a card.

use super::blocks::{self, GemmParameters, Scalars};
use super::configuration::Configuration;
use super::engine::Engine;
use super::epilogue::{DeviceEpilogue, EpilogueParts, WithEpilogue};
use super::geometry::Geometry;
use super::problem::GemmProblem;
use super::product::Product;
use super::slices_of_k::SlicesOfK;
use crate::driver::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use crate::error::Result;
use crate::images::{self, Entry, missing_image};
use crate::types::DType;

/// The reduction's family, which has one kernel a type.
pub(super) const FAMILY: &str = "gemm_reduce";

/// The least k that is divided, and the least depth of a slice.
const MIN_K: usize = 1024;
const MIN_DEPTH: usize = 256;
/// Rows and columns of the tiles that estimates count. Kernels may use others: which ones depends on the alignment.
const TILE: u32 = 64;
/// Waves of tiles that the slices make at most.
const MAX_WAVES: u64 = 2;
/// Clock cycles of one more launch.
const LAUNCH: u64 = 3000;
/// Bytes of partials that the device writes, or reads, in a clock cycle.
const BYTES_PER_CLOCK: u64 = 2000;
/// Bytes of C that a thread of the reduction computes, and threads of its blocks.
const VECTOR_BYTES: usize = 16;
const THREADS: u32 = 128;

impl SlicesOfK {
    /// Returns the estimated clock cycles of the problem's product in these slices, by an engine that multiplies and adds `rate`
    /// numbers in one on a multiprocessor.
    fn clocks(&self, problem: &GemmProblem<'_>, rate: u64) -> u64 {
        let tiles = blocks::tiles(problem, TILE, TILE);
        let time = |count: usize, depth: usize| {
            let each = tiles.saturating_mul(count as u64).div_ceil(problem.properties.multiprocessors.into());
            // In percent: a tile alone on a multiprocessor waits longer for its loads.
            let wait = if each == 1 { 115 } else { 110 };
            each.saturating_mul(u64::from(TILE * TILE) * wait).saturating_mul(depth as u64) / (100 * rate)
        };
        let mut clocks = time(self.count, self.depth);
        if self.rest > 0 {
            clocks = clocks.saturating_add(LAUNCH + time(1, self.rest));
        }
        if self.partials() > 1 {
            let elements = (problem.product.m() * problem.product.n() * self.partials()) as u64;
            let bytes = elements.saturating_mul(2 * problem.operand.size() as u64);
            clocks = clocks.saturating_add(LAUNCH + bytes / BYTES_PER_CLOCK);
        }
        clocks
    }

    /// Returns the elements of a partial's row: whole vectors.
    fn row(&self, product: &Product) -> usize {
        product.n().next_multiple_of(VECTOR_BYTES / self.operand.size())
    }

    /// Returns the elements of a partial.
    fn partial(&self, product: &Product) -> usize {
        product.m() * self.row(product)
    }

    /// Returns the batch of the slices of one depth.
    fn batch(&self, product: &Product) -> Product {
        product.slices_of_k(self.count, self.depth, self.row(product))
    }

    /// Returns the product of the rest of k, if there is one, and the k at which it begins.
    fn rest(&self, product: &Product) -> Option<(Product, usize)> {
        let product = product.slices_of_k(1, self.rest, self.row(product));
        (self.rest > 0).then_some((product, self.count * self.depth))
    }
}

/// Returns the numbers that a multiprocessor multiplies and adds in a clock cycle, for the engines and types whose k is divided.
fn rate(engine: Engine, operand: DType) -> Option<u64> {
    match (engine, operand) {
        (Engine::Simt, DType::F32) | (Engine::Mma, DType::F64) => Some(128),
        (Engine::Simt, DType::C64) | (Engine::Mma, DType::C128) => Some(32),
        _ => None,
    }
}

/// Returns the fastest slices of k, or `None` where one kernel for all of k is estimated to be as fast.
fn slices(problem: &GemmProblem<'_>, engine: Engine) -> Option<SlicesOfK> {
    let (product, operand) = (problem.product, problem.operand);
    let rate = rate(engine, operand)?;
    let multiprocessors = u64::from(problem.properties.multiprocessors);
    let tiles = blocks::tiles(problem, TILE, TILE);
    let is_divided = product.count() == 1
        && product.k() >= MIN_K
        && operand == problem.result
        && (1..=multiprocessors / 2).contains(&tiles)
        && missing_image(problem.properties, FAMILY).is_none();
    if !is_divided {
        return None;
    }
    let most = (MAX_WAVES * multiprocessors / tiles).min((product.k() / MIN_DEPTH) as u64) as usize;
    let all = (1..=most).map(|count| SlicesOfK::new(product.k(), count, operand));
    all.min_by_key(|slices| slices.clocks(problem, rate)).filter(|slices| slices.count > 1)
}

/// A problem whose k is divided, and the configurations of the engine for its slices.
#[derive(Clone, Copy)]
pub(super) struct ParallelSplitK {
    slices: SlicesOfK,
    configuration: Configuration,
    of_rest: Option<Configuration>,
}

/// Returns the problem of slices that begin so many elements after the first of A and B, into partials at this address.
fn of_slices<'a>(
    problem: &GemmProblem<'_>,
    product: &'a Product,
    elements: [usize; 2],
    partials: u64,
) -> GemmProblem<'a> {
    let &GemmProblem { operand, result, addresses: [a, b, _], properties, .. } = problem;
    let [a, b] = [(a, elements[0]), (b, elements[1])]
        .map(|(address, elements)| address.wrapping_add((elements * operand.size()) as u64));
    let (addresses, epilogue) = ([a, b, partials], EpilogueParts::NONE);
    GemmProblem { product, operand, result, addresses, properties, reads_c: false, epilogue }
}

/// Divides the problem of an engine that computes it, where that pays.
pub(super) fn select(problem: &GemmProblem<'_>, engine: Engine) -> Option<ParallelSplitK> {
    let slices = slices(problem, engine)?;
    let select = |product: &Product, first: usize| {
        let elements = problem.product.elements_to_k(first);
        Configuration::select(engine, &of_slices(problem, product, elements, 0)).ok()
    };
    let configuration = select(&slices.batch(problem.product), 0)?;
    let of_rest = match slices.rest(problem.product) {
        Some((product, first)) => Some(select(&product, first)?),
        None => None,
    };
    Some(ParallelSplitK { slices, configuration, of_rest })
}

impl ParallelSplitK {
    /// Returns the geometry of the slices.
    pub fn geometry(&self, problem: &GemmProblem<'_>) -> Geometry {
        let product = self.slices.batch(problem.product);
        let geometry = self.configuration.geometry(&of_slices(problem, &product, [0; 2], 0));
        Geometry { slices: Some(self.slices), ..geometry }
    }

    /// Launches the products of the slices and the reduction, for a problem that was checked against the buffers.
    pub fn run_on(
        &self,
        stream: &Stream,
        problem: &GemmProblem<'_>,
        scalars: Scalars,
        (a, b, c): (DeviceSlice<'_, u8>, DeviceSlice<'_, u8>, DeviceSliceMut<'_, u8>),
        epilogue: &DeviceEpilogue<'_>,
    ) -> Result<()> {
        let ParallelSplitK { slices, configuration, of_rest } = self;
        let (product, size) = (problem.product, problem.operand.size());
        let partial = slices.partial(product);
        let mut partials = stream.uninitialized::<u8>(slices.partials() * partial * size)?;
        let batch = slices.batch(product);
        let rest = slices.rest(product).zip(*of_rest);
        let products = std::iter::once((batch, 0, *configuration, 0)).chain(
            rest.map(|((product, first), configuration)| (product, first, configuration, slices.count)),
        );
        for (slice, first, configuration, before) in products {
            let elements = product.elements_to_k(first);
            let to = partials.slice_mut(before * partial * size..)?;
            let part = of_slices(problem, &slice, elements, to.address());
            let memory = (a.slice(elements[0] * size..)?, b.slice(elements[1] * size..)?, to);
            configuration.run_on(stream, &part, scalars.neutral(), memory, &DeviceEpilogue::NONE)?;
        }
        let (row, vector) = (slices.row(product), VECTOR_BYTES / size);
        let parameters = GemmParameters::new(problem, scalars, epilogue, [vector; 3], false).of_partials(
            slices.partials(),
            row,
            partial,
        );
        let threads = product.m() * (row / vector);
        let config = LaunchConfig::new(threads.div_ceil(THREADS as usize) as u32, THREADS);
        let function = images::kernel(&stream.device(), FAMILY, Entry::Name(slices.kernel()))?;
        // SAFETY: the kernel takes two addresses and these parameters. It reads the partials, which are whole rows of vectors, and
        // stays inside C's matrix and the epilogue's buffers, which were checked.
        unsafe { function.launch(stream, config, (&partials, c, WithEpilogue { parameters, epilogue })) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::slices_of_k::DEPTH_UNIT;
    use super::*;
    use crate::gemm::{Choice, DeviceProperties, Operation, Plan};

    fn depths(product: Product, dtype: DType) -> Vec<usize> {
        let plan = Plan::explain(&product, dtype, dtype, DeviceProperties::reference((9, 0))).unwrap();
        plan.slices()
    }

    #[test]
    fn few_tiles_and_a_long_k_are_divided() {
        for ((m, n, k), dtype, wanted) in [
            // Weight gradients of training.
            ((128, 128, 8192), DType::F32, vec![256; 32]),
            ((512, 128, 8192), DType::F32, vec![1024; 8]),
            ((128, 512, 8192), DType::F32, vec![1024; 8]),
            ((512, 512, 8192), DType::F32, vec![2048; 4]),
            ((512, 512, 1024), DType::F32, vec![512; 2]),
            ((128, 128, 8192), DType::F64, vec![256; 32]),
            ((128, 128, 8192), DType::C64, vec![256; 32]),
            ((128, 128, 8192), DType::C128, vec![256; 32]),
            // Slices are whole stages, and the rest of k is a slice of its own.
            ((33, 20, 1100), DType::F32, vec![256, 256, 256, 256, 76]),
            // Too many tiles, too short a k, no tile; types that other mechanisms divide, or none.
            ((576, 512, 8192), DType::F32, vec![]),
            ((128, 128, 1023), DType::F32, vec![]),
            ((0, 128, 8192), DType::F32, vec![]),
            ((128, 128, 8192), DType::BF16, vec![]),
            ((128, 128, 8192), DType::I32, vec![]),
        ] {
            let product = Product::new(m, n, k);
            assert_eq!(depths(product, dtype), wanted, "{product} of {dtype}");
            // Neither storage order nor alignment changes them.
            let stored = product.a(Operation::Transpose).b(Operation::Transpose);
            assert_eq!(depths(stored, dtype), wanted, "{stored} of {dtype}");
            let odd = product.leading(k + 1, n + 1, n + 1);
            assert_eq!(depths(odd, dtype), wanted, "odd rows of {product} of {dtype}");
        }
        const NONE: [usize; 0] = [];
        // A batch fills the device by itself; f64 by ordinary arithmetic stays one sum.
        let product = Product::new(128, 128, 8192);
        assert_eq!(depths(product.batch(2, 0, 0, 128 * 128), DType::F32), NONE);
        assert_eq!(depths(product.by(Choice::Only(Engine::Simt)), DType::F64), NONE);
    }

    #[test]
    fn slices_are_all_of_k_and_begin_at_whole_vectors() {
        for k in (1024..40_000).step_by(371) {
            let product = Product::new(128, 384, k);
            let depths = depths(product, DType::F32);
            assert_eq!(depths.iter().sum::<usize>(), k);
            let last = depths.len() - 1;
            assert!(depths[..last].iter().all(|depth| depth % DEPTH_UNIT == 0), "{k}: {depths:?}");
        }
    }

    #[test]
    fn the_plan_names_the_slices_and_the_reduction() {
        let explain = |product, dtype| {
            Plan::explain(&product, dtype, dtype, DeviceProperties::reference((9, 0))).unwrap()
        };
        let plan = explain(Product::new(128, 128, 8192).a(Operation::Transpose), DType::F32);
        assert_eq!((plan.kernel(), plan.work()), ("gemm_bulk_f32_tn_small", (128, 128)));
        let text = plan.to_string();
        assert!(text.contains("32 slices of 256 k") && text.contains("gemm_reduce_f32 adds"), "{text}");
        let text = explain(Product::new(33, 20, 1100), DType::C128).to_string();
        assert!(text.contains("and one of 76") && text.contains("gemm_reduce_c128 adds"), "{text}");
    }
}
