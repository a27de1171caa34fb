//! Large products by persistent two-CTA clusters, with stream-K or without: `csrc/kernels/gemm_wgmma.cu`.
//!
//! Invariants: each launch has a stream-K workspace of its own. It is allocated and cleared on the launch's stream and freed there
//! after the launch, so no two launches share semaphores, and none finds those of a launch that failed.

use super::super::epilogue::{EpilogueParameters, WithEpilogue};
use super::super::maps::{Mapped, map, maps};
use super::super::problem::GemmProblem;
use super::super::product::Product;
use super::{LaunchArguments, PANEL, STORE_BYTES};
use crate::driver::image::ArgumentKind;
use crate::driver::{
    DeviceBuffer, DeviceSlice, DeviceSliceMut, KernelArgument, LaunchConfig, LaunchTarget, Stream,
    TensorSwizzle,
};
use crate::error::Result;
use crate::images::{self, DeviceProperties, Entry, MAP_ALIGNMENT};
use crate::types::DType;

/// The families of f16 and of bf16 with neither operand transposed, A, B, both.
const FAMILIES: [[&str; 4]; 2] = [
    ["gemm_wgmma_f16_nn", "gemm_wgmma_f16_tn", "gemm_wgmma_f16_nt", "gemm_wgmma_f16_tt"],
    ["gemm_wgmma_bf16_nn", "gemm_wgmma_bf16_tn", "gemm_wgmma_bf16_nt", "gemm_wgmma_bf16_tt"],
];

/// Returns the family for operands of this type and storage.
pub(super) fn family(operand: DType, product: &Product) -> &'static str {
    let (a, b) = (product.operation_a().transposes(), product.operation_b().transposes());
    FAMILIES[usize::from(operand == DType::BF16)][usize::from(a) | usize::from(b) << 1]
}

/// Blocks of a cluster.
const CLUSTER_SIZE: u64 = 2;
/// Threads of a block: a producer warpgroup and two consumer warpgroups.
const THREADS: u32 = 384;
pub(super) const TILE_ROWS: u64 = 256;

/// Estimated clock cycles by tile width: (columns, a step of 64 k of a block, a tile beside its steps), from the rates of the
/// instructions and of the copies (64 bytes a clock cycle). They decide which tile is used, never the bits.
const WIDTHS: [(u32, u64, u64); 4] = [(256, 1024, 1600), (192, 815, 2100), (128, 550, 1100), (64, 340, 850)];
/// Estimated clock cycles of the first loads and the last stores.
const FIXED_COST: u64 = 5300;
/// Estimated clock cycles of stream-K: the launch that clears the semaphores; each column of a tile, which is written to memory and
/// read again; each partial and column of a tile, added one after the other (512 bytes of a column at 64 a clock cycle).
const STREAM_K_COST: (u64, u64, u64) = (4000, 64, 8);

/// Semaphores of a partial: one a consumer warpgroup of the cluster.
const SEMAPHORES: usize = 4;

/// Results of more bytes are stored evict-first, so that the L2 cache of 50 MB holds the operands, up to this many multiplications an
/// element. 64 products of 1024 x 1024 x 64 gain 2 %, aux of 65536 x 3072 x 768 gains 1 %; larger k loses 0.3 % (measured on an
/// H200).
const EVICT_FIRST_BYTES: u64 = 32 << 20;
const EVICT_FIRST_DEPTH: u64 = 512;

/// A configuration of the persistent kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::gemm) struct Persistent {
    /// Columns of a tile.
    pub columns: u32,
    pub tiles: u64,
    /// Clusters of the grid.
    pub clusters: u32,
    /// Rows of tiles in a group of the raster order.
    pub group: u32,
    /// True where all clusters divide the last wave of tiles.
    pub stream_k: bool,
    /// Steps of a slice in each wave of stream-K; all steps without it.
    pub slice_steps: [u32; WAVES],
    /// The largest number of partials of a tile.
    pub partials: u32,
}

/// The kernels' parameter: exactly the `GemmParameters` of gemm_wgmma.cu.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct GemmParameters {
    m: i32,
    n: i32,
    k: i32,
    batch: i32,
    c_row: i64,
    c_matrix: i64,
    a_matrix: i32,
    b_matrix: i32,
    group: i32,
    f32_output: i32,
    store_bytes: i32,
    alpha: f32,
    beta: f32,
    evict_first: i32,
    epilogue: EpilogueParameters,
    semaphores: u64,
    partials: u64,
    slice_steps: [u32; WAVES],
}

/// Returns the configurations with their estimated clock cycles. Of two that cost the same the wider one comes first.
pub(super) fn configurations(
    product: &Product,
    properties: DeviceProperties,
) -> impl Iterator<Item = (Persistent, u64)> {
    let (m, n, k) = (product.m() as u64, product.n() as u64, product.k() as u64);
    let most = u64::from(properties.multiprocessors / 2).max(1);
    let count = product.count() as u64;
    // The operands of one wave should fit the L2 cache. If B does not, each group reads it once, so larger groups are better (8
    // against 4 measured at 8192 and 4 against 8 at 4096 rows).
    let group = match n * k {
        0..=30_000_000 => 4,
        _ if k <= 1536 => 16,
        _ => 8,
    };
    let steps = k.div_ceil(u64::from(PANEL));
    let all = WIDTHS.into_iter().flat_map(|width| [(width, false), (width, true)]);
    all.filter_map(move |((columns, stage, rest), stream_k)| {
        let tiles = (m.div_ceil(TILE_ROWS) * n.div_ceil(u64::from(columns))).saturating_mul(count);
        if stream_k {
            let last = tiles % most;
            if last * steps < most * MIN_SLICE_STEPS {
                return None;
            }
            let (slice_steps, partials, busy) = divide(last, most, steps);
            // Each cluster of the grid has a work tile.
            let clusters = if tiles < most { busy } else { most };
            let ends = FIXED_COST
                + 2 * rest
                + STREAM_K_COST.0
                + STREAM_K_COST.1 * u64::from(columns)
                + STREAM_K_COST.2 * u64::from(columns) * u64::from(partials);
            let whole = (tiles / most).saturating_mul(steps * stage + rest);
            // A margin, not measured.
            let whole = whole.saturating_add(whole / 32);
            let clocks = whole.saturating_add(u64::from(slice_steps[0]) * stage + ends);
            return Some((
                Persistent {
                    columns,
                    tiles,
                    clusters: clusters as u32,
                    group,
                    stream_k,
                    slice_steps,
                    partials,
                },
                clocks,
            ));
        }
        let waves = tiles.div_ceil(most);
        let clocks = waves.saturating_mul(steps * stage + rest).saturating_add(FIXED_COST);
        let slice_steps = [steps as u32; WAVES];
        Some((
            Persistent {
                columns,
                tiles,
                clusters: tiles.min(most) as u32,
                group,
                stream_k,
                slice_steps,
                partials: 0,
            },
            clocks,
        ))
    })
}

/// Waves in which the steps of the remaining tiles are divided.
const WAVES: usize = 4;
/// The smallest number of steps of a slice, which is also its overhead in steps.
const MIN_SLICE_STEPS: u64 = 4;

/// Divides the steps of fewer tiles than clusters among all clusters, as the kernel's `Wave` does. Returns the steps of a slice in
/// each wave, such that all clusters end at the same time, the largest number of partials of a tile, and the clusters with work.
fn divide(mut tiles: u64, mut clusters: u64, steps: u64) -> ([u32; WAVES], u32, u64) {
    let mut slice_steps = [steps as u32; WAVES];
    let (mut begin, mut partials, mut most_partials, mut busy) = (0, 0, 0, clusters);
    for (round, run) in slice_steps.iter_mut().enumerate() {
        if round > 0 && tiles >= clusters {
            most_partials = most_partials.max(partials + 1);
        }
        tiles %= clusters;
        if tiles == 0 {
            break;
        }
        let (left, most) = (steps - begin, clusters / tiles);
        let others = clusters - most * tiles;
        // Clusters of the next wave have several work tiles.
        let level = (tiles * left + MIN_SLICE_STEPS * tiles.saturating_sub(others)).div_ceil(clusters);
        let has_next_wave = others > 0 && round + 1 < WAVES && most * level + MIN_SLICE_STEPS <= left;
        let taken = if has_next_wave { level } else { left.div_ceil(most) };
        *run = taken as u32;
        let count = most.min(left.div_ceil(taken));
        // The first slice leaves no partial.
        partials += count - u64::from(round == 0);
        most_partials = most_partials.max(partials);
        if !has_next_wave {
            // A later wave has fewer clusters than tiles, so each cluster has a whole tile.
            if round == 0 {
                busy = count * tiles;
            }
            break;
        }
        begin += most * taken;
        clusters = others;
    }
    (slice_steps, most_partials as u32, busy)
}

/// Returns the dynamic shared memory: barriers and descriptors, stages, staging buffers, and alignment to 1024 bytes.
fn shared_bytes(columns: u32) -> u32 {
    let stages = match columns {
        192.. => 4,
        128.. => 6,
        _ => 8,
    };
    let staging = 4 * 64 * 128;
    1024 + stages * (128 + columns) * PANEL * 2 + staging + 1024
}

impl Persistent {
    pub fn blocks(&self) -> u32 {
        self.clusters * CLUSTER_SIZE as u32
    }

    /// Returns the number of tiles that stream-K divides.
    pub fn stream_k_tiles(&self) -> u64 {
        if self.stream_k { self.tiles % u64::from(self.clusters) } else { 0 }
    }

    /// Returns the number of semaphores of all partials.
    fn semaphores(&self) -> usize {
        SEMAPHORES * self.stream_k_tiles() as usize * self.partials as usize
    }

    /// Returns their words, rounded up so that the partials begin at a multiple of 128 bytes.
    fn semaphore_words(&self) -> usize {
        self.semaphores().next_multiple_of(32)
    }

    /// Allocates the stream-K workspace: semaphores, which are cleared, and then partials. `None` where there are no partials.
    fn workspace(&self, stream: &Stream) -> Result<Option<DeviceBuffer<u32>>> {
        if self.partials == 0 {
            return Ok(None);
        }
        let words = self.semaphore_words() + self.semaphores() * 64 * self.columns as usize;
        let mut partials = stream.uninitialized::<u32>(words)?;
        stream.fill(&mut partials.slice_mut(..self.semaphore_words())?, 0)?;
        Ok(Some(partials))
    }

    pub fn kernel(&self, operand: DType, product: &Product) -> String {
        format!("{}_{}", family(operand, product), self.columns)
    }

    pub(super) fn run(
        &self,
        stream: &Stream,
        arguments: &LaunchArguments<'_>,
        a: &Mapped<'_>,
        b: &Mapped<'_>,
        c: DeviceSliceMut<'_, u8>,
    ) -> Result<()> {
        let GemmProblem { product, operand, result, .. } = *arguments.problem;
        let columns = self.columns;
        let (a_transposed, b_transposed) =
            (product.operation_a().transposes(), product.operation_b().transposes());
        let name = || self.kernel(operand, product);
        let entry = Entry::Number(columns.into(), &name);
        let function = images::kernel(&stream.device(), family(operand, product), entry)?;
        let map_a = a.map(if a_transposed { (PANEL, 64) } else { (PANEL, 128) })?;
        // Each block loads half of B: of the columns where B is k-contiguous, else of the depth.
        let map_b = b.map(if b_transposed { (PANEL, columns / 2) } else { (PANEL, 32) })?;
        // The workspace is freed on the stream, after the launch.
        let mut workspace = self.workspace(stream)?;
        let workspace = workspace.as_mut().map(|partials| partials.slice_mut(..)).transpose()?;
        let semaphores = workspace.as_ref().map_or(0, DeviceSliceMut::address);
        let partials = semaphores + (self.semaphore_words() * size_of::<u32>()) as u64;
        let stored_c = product.stored_c();
        // TMA stores whole chunks of 16 bytes, also past the end of a row.
        let aux = arguments.epilogue.aux.as_ref().map(DeviceSlice::from);
        let addresses = [Some(c.address()), aux.as_ref().map(DeviceSlice::address)];
        let size = result.size();
        let staged = stored_c.is_whole(MAP_ALIGNMENT, size)
            && addresses.iter().flatten().all(|at| maps(stored_c, *at, size));
        // Threads also store whole rows that no tensor map describes.
        let lie = |bytes: usize| addresses.iter().flatten().all(|address| address % bytes as u64 == 0);
        let by_threads: Vec<usize> = STORE_BYTES[1..].iter().copied().filter(|bytes| lie(*bytes)).collect();
        let store_bytes = if staged { MAP_ALIGNMENT } else { stored_c.whole_blocks(&by_threads, size) };
        let sizes = [product.m(), product.n(), product.count(), size];
        let bytes = sizes.iter().fold(1u64, |bytes, size| bytes.saturating_mul(*size as u64));
        let results = 1 + u64::from(aux.is_some());
        let parameters = GemmParameters {
            m: product.m() as i32,
            n: product.n() as i32,
            k: product.k() as i32,
            batch: product.count() as i32,
            c_row: stored_c.leading as i64,
            c_matrix: stored_c.stride as i64,
            a_matrix: a.apart(),
            b_matrix: b.apart(),
            group: self.group as i32,
            f32_output: i32::from(operand != result),
            store_bytes: store_bytes as i32,
            alpha: arguments.alpha,
            beta: arguments.beta,
            evict_first: (results.saturating_mul(bytes) > EVICT_FIRST_BYTES
                && product.k() as u64 <= EVICT_FIRST_DEPTH * results)
                .into(),
            epilogue: arguments.epilogue.raw(),
            semaphores,
            partials,
            slice_steps: self.slice_steps,
        };
        let config =
            product.overlapped(LaunchConfig::new(self.blocks(), THREADS).shared(shared_bytes(columns)));
        let parameters = WithPartials {
            parameters: WithEpilogue { parameters, epilogue: arguments.epilogue },
            partials: workspace,
        };
        if staged {
            let size = ((128 / result.size()) as u32, 64);
            let of = |memory| map(memory, result, stored_c, size, TensorSwizzle::Bytes128);
            let map_c = of(DeviceSlice::from(&c))?;
            let pre_activation = arguments.epilogue.aux_in.filter(|_| arguments.epilogue.is_derivative);
            let map_aux = aux.or(pre_activation).map(of).transpose()?;
            let map_aux = map_aux.as_ref().unwrap_or(&map_c);
            // SAFETY: the kernel takes four maps, an address and these parameters. It reads the memory of the first two maps and of the
            // epilogue, which was checked, and writes that of the other maps, which is inside the buffers of C and aux. All of it
            // is entered beside the maps.
            unsafe { function.launch(stream, config, (&map_a, &map_b, &map_c, map_aux, c, parameters)) }
        } else {
            // SAFETY: as above, except that the kernel uses neither of the last two maps and writes the matrices that the parameters
            // describe.
            unsafe { function.launch(stream, config, (&map_a, &map_b, &map_a, &map_a, c, parameters)) }
        }
    }
}

/// The kernels' last parameter, with the memory at its addresses.
struct WithPartials<'a> {
    parameters: WithEpilogue<'a, GemmParameters>,
    partials: Option<DeviceSliceMut<'a, u32>>,
}

// SAFETY: the pointer is that of the parameters, and the workspace is entered too.
unsafe impl KernelArgument for WithPartials<'_> {
    const KIND: ArgumentKind = WithEpilogue::<'_, GemmParameters>::KIND;
    const SIZE: usize = WithEpilogue::<'_, GemmParameters>::SIZE;

    fn enter(&self, target: LaunchTarget<'_>) -> Result<()> {
        self.parameters.enter(target)?;
        match &self.partials {
            Some(partials) => <DeviceSliceMut<'_, u32> as KernelArgument>::enter(partials, target),
            None => Ok(()),
        }
    }

    fn pointer(&self) -> *mut std::ffi::c_void {
        self.parameters.pointer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: DeviceProperties =
        DeviceProperties { capability: (9, 0), driver_isa: (8, 0), multiprocessors: 132 };

    #[test]
    fn the_parameters_are_the_kernels() {
        assert_eq!(size_of::<GemmParameters>(), 64 + 32 + 16 + 16);
        assert_eq!(std::mem::offset_of!(GemmParameters, c_row), 16);
        assert_eq!(std::mem::offset_of!(GemmParameters, alpha), 52);
        assert_eq!(std::mem::offset_of!(GemmParameters, epilogue), 64);
    }

    #[test]
    fn stages_fit_a_block() {
        for (columns, ..) in WIDTHS {
            assert!((190 << 10..=227 << 10).contains(&shared_bytes(columns)), "{columns}");
        }
    }

    #[test]
    fn slices_reach_the_last_step_and_end_together() {
        for (clusters, steps) in [(66, 1024), (66, 48), (57, 333), (7, 5), (1, 4)] {
            for tiles in (1..clusters).filter(|tiles| tiles * steps >= MIN_SLICE_STEPS * clusters) {
                let (slice_steps, partials, busy) = divide(tiles, clusters, steps);
                let (mut tiles_left, mut clusters_left, mut begin) = (tiles, clusters, 0);
                for run in slice_steps.map(u64::from) {
                    let whole = tiles_left / clusters_left;
                    tiles_left %= clusters_left;
                    let taken =
                        whole * (steps - begin) + if tiles_left > 0 { run.min(steps - begin) } else { 0 };
                    let even = (tiles * steps).div_ceil(clusters);
                    assert!(
                        taken <= even + even / 3 + MIN_SLICE_STEPS || slice_steps[0] as u64 == steps,
                        "{tiles} of {clusters}"
                    );
                    if tiles_left == 0 {
                        begin = steps;
                        break;
                    }
                    let count = (clusters_left / tiles_left).min((steps - begin).div_ceil(run));
                    begin += count * run;
                    if begin >= steps {
                        break;
                    }
                    clusters_left -= count * tiles_left;
                }
                assert!(begin >= steps, "{tiles} of {clusters}: {slice_steps:?} end at {begin} of {steps}");
                assert!(
                    u64::from(partials) < clusters && busy <= clusters,
                    "{tiles} of {clusters}: {partials}, {busy}"
                );
            }
        }
        // Nine tiles, seven clusters each, and three clusters that take the last steps of three.
        assert_eq!(divide(9, 66, 1024), ([140, 1024, 1024, 1024], 7, 66));
        assert_eq!(divide(27, 66, 1024), ([420, 46, 1024, 1024], 5, 66));
        // 4 tiles of 75 steps in 15 slices each.
        assert_eq!(divide(4, 66, 75), ([5, 75, 75, 75], 14, 60));
    }

    #[test]
    fn large_products_take_wide_tiles_and_small_ones_fill_the_device() {
        let best =
            |product: &Product| configurations(product, H200).min_by_key(|(_, clocks)| *clocks).unwrap().0;
        let of = |m, n, k| best(&Product::new(m, n, k));
        assert_eq!(
            of(8192, 8192, 8192),
            Persistent {
                columns: 256,
                tiles: 1024,
                clusters: 66,
                group: 8,
                slice_steps: [128; WAVES],
                ..Persistent::default()
            }
        );
        // Gradients of weights have few tiles and a long k.
        assert_eq!(of(768, 3072, 65536).stream_k_tiles(), 36);
        assert_eq!(of(65536, 2304, 768).columns, 256);
        assert_eq!(of(65536, 50304, 768).group, 16);
        // 4 x 16 tiles of 64 columns are one wave of 66 clusters; 16 of 256 columns would leave 50 clusters idle.
        assert_eq!(
            of(1024, 1024, 1024),
            Persistent {
                columns: 64,
                tiles: 64,
                clusters: 64,
                group: 4,
                slice_steps: [16; WAVES],
                ..Persistent::default()
            }
        );
        assert_eq!(of(1, 1, 1).clusters, 1);
        // A batch counts as more tiles.
        assert_eq!(best(&Product::new(1024, 1024, 64).batch(64, 65536, 65536, 1 << 20)).clusters, 66);
    }
}
