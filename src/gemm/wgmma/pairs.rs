//! Large products, by pairs of blocks that stay for many tiles: `csrc/kernels/gemm_wgmma.cu`.

use super::super::epilogue::{Raw, WithEpilogue};
use super::super::maps::{Mapped, map, maps};
use super::super::problem::GemmProblem;
use super::super::product::Product;
use super::{PANEL, STORED, Work};
use crate::driver::image::ArgumentKind;
use crate::driver::{
    DeviceBuffer, DeviceSlice, DeviceSliceMut, KernelArgument, LaunchConfig, LaunchTarget, Stream,
    TensorSwizzle,
};
use crate::error::Result;
use crate::images::{self, DeviceProperties, Entry, MAP_ALIGNMENT};
use crate::types::DType;

/// Of f16 and of bf16; neither operand transposed, A, B, both.
const FAMILIES: [[&str; 4]; 2] = [
    ["gemm_wgmma_f16_nn", "gemm_wgmma_f16_tn", "gemm_wgmma_f16_nt", "gemm_wgmma_f16_tt"],
    ["gemm_wgmma_bf16_nn", "gemm_wgmma_bf16_tn", "gemm_wgmma_bf16_nt", "gemm_wgmma_bf16_tt"],
];

/// What has the kernels for operands of this type, stored so.
pub(super) fn family(operand: DType, product: &Product) -> &'static str {
    let (a, b) = (product.operation_a().transposes(), product.operation_b().transposes());
    FAMILIES[usize::from(operand == DType::BF16)][usize::from(a) | usize::from(b) << 1]
}

/// Blocks of a cluster, and rows of a tile of both.
const PAIR: u64 = 2;
/// Threads of a block: a warpgroup of which one thread copies, and two that multiply.
const THREADS: u32 = 384;
pub(super) const TILE_ROWS: u64 = 256;

/// The widths of a tile, what a block's 64 k of it cost, and what it costs beside them: in clocks, roughly, from the rates
/// of the instructions and of the copies (64 bytes a clock). They only decide which tile is used, never the bits.
const WIDTHS: [(u32, u64, u64); 4] = [(256, 1024, 1600), (192, 815, 2100), (128, 550, 1100), (64, 340, 850)];
/// What the first loads and the last stores take.
const ENDS: u64 = 5300;
/// What a divided round takes beside its products: the flags are cleared by a launch of their own, each column of a tile is
/// written to memory and read again, and the parts of a tile are added one after the other, 512 bytes of a column at 64 a clock.
const DIVIDES: (u64, u64, u64) = (4000, 64, 8);

/// Flags of a part: one of each warpgroup that multiplies.
const FLAGS: usize = 4;

/// Results of more bytes leave the L2 cache first, which is of 50 MB and has the operands to hold, where no more than so many
/// multiplications a number keep the stores apart: 64 products of 1024 x 1024 x 64 gain 2 %, what is kept of 65536 x 3072 x 768
/// for a backward pass 1 %, and without that this and larger k lose 0.3 % (measured on an H200).
const KEPT_BYTES: u64 = 32 << 20;
const FEW_MULTIPLICATIONS: u64 = 512;

/// How a product is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::gemm) struct Pairs {
    /// Columns of a tile.
    pub columns: u32,
    pub tiles: u64,
    /// Pairs of blocks.
    pub pairs: u32,
    /// Rows of tiles that are taken together.
    pub group: u32,
    /// Whether all pairs divide the last round of tiles.
    pub divided: bool,
    /// Steps of a run of each round in which they do; all steps where they do not.
    pub runs: [u32; ROUNDS],
    /// The most parts of a tile that are left for the pair that has its first run.
    pub parts: u32,
}

/// The kernels' parameter: exactly the `Shape` of gemm_wgmma.cu.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Shape {
    m: i32,
    n: i32,
    k: i32,
    batch: i32,
    c_row: i64,
    c_matrix: i64,
    a_matrix: i32,
    b_matrix: i32,
    group: i32,
    wide: i32,
    together: i32,
    alpha: f32,
    beta: f32,
    past: i32,
    epilogue: Raw,
    flags: u64,
    parts: u64,
    runs: [u32; ROUNDS],
}

/// Its divisions, and the clocks that each takes, roughly; of two that cost the same the wider one comes first.
pub(super) fn divisions(
    product: &Product,
    properties: DeviceProperties,
) -> impl Iterator<Item = (Pairs, u64)> {
    let (m, n, k) = (product.m() as u64, product.n() as u64, product.k() as u64);
    let most = u64::from(properties.multiprocessors / 2).max(1);
    let count = product.count() as u64;
    // What one round of blocks reads should fit the L2 cache; where B does not, it is read once for each group, so the
    // larger the better (8 against 4 measured at 8192 and 4 against 8 at 4096 rows).
    let group = match n * k {
        0..=30_000_000 => 4,
        _ if k <= 1536 => 16,
        _ => 8,
    };
    let steps = k.div_ceil(u64::from(PANEL));
    let all = WIDTHS.into_iter().flat_map(|width| [(width, false), (width, true)]);
    all.filter_map(move |((columns, stage, rest), divided)| {
        let tiles = (m.div_ceil(TILE_ROWS) * n.div_ceil(u64::from(columns))).saturating_mul(count);
        if divided {
            let last = tiles % most;
            if last * steps < most * LEAST_STEPS {
                return None;
            }
            let (runs, parts, busy) = divide(last, most, steps);
            // Each pair that is launched has something to do.
            let pairs = if tiles < most { busy } else { most };
            let ends = ENDS
                + 2 * rest
                + DIVIDES.0
                + DIVIDES.1 * u64::from(columns)
                + DIVIDES.2 * u64::from(columns) * u64::from(parts);
            let whole = (tiles / most).saturating_mul(steps * stage + rest);
            // A margin, not measured.
            let whole = whole.saturating_add(whole / 32);
            let clocks = whole.saturating_add(u64::from(runs[0]) * stage + ends);
            return Some((
                Pairs { columns, tiles, pairs: pairs as u32, group, divided, runs, parts },
                clocks,
            ));
        }
        let rounds = tiles.div_ceil(most);
        let clocks = rounds.saturating_mul(steps * stage + rest).saturating_add(ENDS);
        let runs = [steps as u32; ROUNDS];
        Some((
            Pairs { columns, tiles, pairs: tiles.min(most) as u32, group, divided, runs, parts: 0 },
            clocks,
        ))
    })
}

/// Rounds in which what is left of the tiles' steps is divided.
const ROUNDS: usize = 4;
/// Steps of a run that are worth a pair's while, and what it takes beside its steps, in steps too.
const LEAST_STEPS: u64 = 4;

/// How all pairs divide the steps of fewer tiles, as the kernel's `Round` has it: the steps of a run in each round, so that all
/// end at the same time, the most parts of a tile that are left, and how many of the pairs have something to do.
fn divide(mut tiles: u64, mut pairs: u64, steps: u64) -> ([u32; ROUNDS], u32, u64) {
    let mut runs = [steps as u32; ROUNDS];
    let (mut begin, mut parts, mut most_parts, mut busy) = (0, 0, 0, pairs);
    for (round, run) in runs.iter_mut().enumerate() {
        if round > 0 && tiles >= pairs {
            most_parts = most_parts.max(parts + 1);
        }
        tiles %= pairs;
        if tiles == 0 {
            break;
        }
        let (left, most) = (steps - begin, pairs / tiles);
        let others = pairs - most * tiles;
        // Those that are left make more pieces than one.
        let level = (tiles * left + LEAST_STEPS * tiles.saturating_sub(others)).div_ceil(pairs);
        let divides_again = others > 0 && round + 1 < ROUNDS && most * level + LEAST_STEPS <= left;
        let taken = if divides_again { level } else { left.div_ceil(most) };
        *run = taken as u32;
        let count = most.min(left.div_ceil(taken));
        // The one with the first run leaves none.
        parts += count - u64::from(round == 0);
        most_parts = most_parts.max(parts);
        if !divides_again {
            // In a later round there are fewer pairs than tiles, so each has a whole one.
            if round == 0 {
                busy = count * tiles;
            }
            break;
        }
        begin += most * taken;
        pairs = others;
    }
    (runs, most_parts as u32, busy)
}

/// Dynamic shared memory: barriers and notes, the stages, what C is staged in, and room to begin at a multiple of 1024.
fn shared_bytes(columns: u32) -> u32 {
    let stages = match columns {
        192.. => 4,
        128.. => 6,
        _ => 8,
    };
    let staging = 4 * 64 * 128;
    1024 + stages * (128 + columns) * PANEL * 2 + staging + 1024
}

impl Pairs {
    pub fn blocks(&self) -> u32 {
        self.pairs * PAIR as u32
    }

    /// Tiles of the last round, where that is divided.
    pub fn divided_tiles(&self) -> u64 {
        if self.divided { self.tiles % u64::from(self.pairs) } else { 0 }
    }

    /// The flags of all parts.
    fn flags(&self) -> usize {
        FLAGS * self.divided_tiles() as usize * self.parts as usize
    }

    /// Words that they take: what follows begins at a multiple of 128 bytes.
    fn flag_words(&self) -> usize {
        self.flags().next_multiple_of(32)
    }

    /// Where pairs leave their parts of divided tiles: words, of which the first ones are flags and 0.
    fn left(&self, stream: &Stream) -> Result<Option<DeviceBuffer<u32>>> {
        if self.parts == 0 {
            return Ok(None);
        }
        let words = self.flag_words() + self.flags() * 64 * self.columns as usize;
        let mut parts = stream.uninitialized::<u32>(words)?;
        stream.fill(&mut parts.slice_mut(..self.flag_words())?, 0)?;
        Ok(Some(parts))
    }

    pub fn kernel(&self, operand: DType, product: &Product) -> String {
        format!("{}_{}", family(operand, product), self.columns)
    }

    pub(super) fn run(
        &self,
        stream: &Stream,
        work: &Work<'_>,
        a: &Mapped<'_>,
        b: &Mapped<'_>,
        c: DeviceSliceMut<'_, u8>,
    ) -> Result<()> {
        let GemmProblem { product, operand, result, .. } = *work.problem;
        let columns = self.columns;
        let (a_transposed, b_transposed) =
            (product.operation_a().transposes(), product.operation_b().transposes());
        let name = || self.kernel(operand, product);
        let entry = Entry::Number(columns.into(), &name);
        let function = images::kernel(&stream.device(), family(operand, product), entry)?;
        let map_a = a.map(if a_transposed { (PANEL, 64) } else { (PANEL, 128) })?;
        // Each block of a pair copies half: of the columns where k is contiguous, of the depth where it is not.
        let map_b = b.map(if b_transposed { (PANEL, columns / 2) } else { (PANEL, 32) })?;
        // Its memory goes back to the stream behind the launch.
        let mut left = self.left(stream)?;
        let left = left.as_mut().map(|parts| parts.slice_mut(..)).transpose()?;
        let flags = left.as_ref().map_or(0, DeviceSliceMut::address);
        let parts = flags + (self.flag_words() * size_of::<u32>()) as u64;
        let stored_c = product.stored_c();
        // A store by a map writes whole pieces of 16 bytes: where a row ends within one, it would write behind the row.
        let kept = work.epilogue.kept.as_ref().map(DeviceSlice::from);
        let addresses = [Some(c.address()), kept.as_ref().map(DeviceSlice::address)];
        let size = result.size();
        let staged = stored_c.is_whole(MAP_ALIGNMENT, size)
            && addresses.iter().flatten().all(|at| maps(stored_c, *at, size));
        // What no map describes, though its rows are whole, threads store too.
        let lie = |bytes: usize| addresses.iter().flatten().all(|address| address % bytes as u64 == 0);
        let by_threads: Vec<usize> = STORED[1..].iter().copied().filter(|bytes| lie(*bytes)).collect();
        let together = if staged { MAP_ALIGNMENT } else { stored_c.whole_blocks(&by_threads, size) };
        let sizes = [product.m(), product.n(), product.count(), size];
        let bytes = sizes.iter().fold(1u64, |bytes, size| bytes.saturating_mul(*size as u64));
        let results = 1 + u64::from(kept.is_some());
        let shape = Shape {
            m: product.m() as i32,
            n: product.n() as i32,
            k: product.k() as i32,
            batch: product.count() as i32,
            c_row: stored_c.leading as i64,
            c_matrix: stored_c.stride as i64,
            a_matrix: a.apart(),
            b_matrix: b.apart(),
            group: self.group as i32,
            wide: i32::from(operand != result),
            together: together as i32,
            alpha: work.alpha,
            beta: work.beta,
            past: (results.saturating_mul(bytes) > KEPT_BYTES
                && product.k() as u64 <= FEW_MULTIPLICATIONS * results)
                .into(),
            epilogue: work.epilogue.raw(),
            flags,
            parts,
            runs: self.runs,
        };
        let config =
            product.overlapped(LaunchConfig::new(self.blocks(), THREADS).shared(shared_bytes(columns)));
        let shape = WithParts { shape: WithEpilogue { shape, epilogue: work.epilogue }, parts: left };
        if staged {
            let size = ((128 / result.size()) as u32, 64);
            let of = |memory| map(memory, result, stored_c, size, TensorSwizzle::Bytes128);
            let map_c = of(DeviceSlice::from(&c))?;
            let map_kept = kept.map(of).transpose()?;
            let map_kept = map_kept.as_ref().unwrap_or(&map_c);
            // SAFETY: the kernel takes four maps, an address and this Shape; it reads what the first two describe and the
            // epilogue's buffers, which were checked, and writes what the others do, which lies inside C's buffer and that of
            // what is kept: both are entered as what they are beside their maps.
            unsafe { function.launch(stream, config, (&map_a, &map_b, &map_c, map_kept, c, shape)) }
        } else {
            // SAFETY: as above, but that the kernel does not use the last two maps, and writes the matrices that the Shape
            // describes.
            unsafe { function.launch(stream, config, (&map_a, &map_b, &map_a, &map_a, c, shape)) }
        }
    }
}

/// The kernels' last parameter, with the memory that its addresses name.
struct WithParts<'a> {
    shape: WithEpilogue<'a, Shape>,
    parts: Option<DeviceSliceMut<'a, u32>>,
}

// SAFETY: it is its shape, and the memory that parts are left in is entered too.
unsafe impl KernelArgument for WithParts<'_> {
    const KIND: ArgumentKind = WithEpilogue::<'_, Shape>::KIND;
    const SIZE: usize = WithEpilogue::<'_, Shape>::SIZE;

    fn enter(&self, target: LaunchTarget<'_>) -> Result<()> {
        self.shape.enter(target)?;
        match &self.parts {
            Some(parts) => <DeviceSliceMut<'_, u32> as KernelArgument>::enter(parts, target),
            None => Ok(()),
        }
    }

    fn pointer(&self) -> *mut std::ffi::c_void {
        self.shape.pointer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: DeviceProperties =
        DeviceProperties { capability: (9, 0), driver_isa: (8, 0), multiprocessors: 132 };

    #[test]
    fn the_shape_is_the_kernels() {
        assert_eq!(size_of::<Shape>(), 64 + 32 + 16 + 16);
        assert_eq!(std::mem::offset_of!(Shape, c_row), 16);
        assert_eq!(std::mem::offset_of!(Shape, alpha), 52);
        assert_eq!(std::mem::offset_of!(Shape, epilogue), 64);
    }

    #[test]
    fn stages_fit_a_block() {
        for (columns, ..) in WIDTHS {
            assert!((190 << 10..=227 << 10).contains(&shared_bytes(columns)), "{columns}");
        }
    }

    #[test]
    fn runs_reach_the_last_step_and_end_together() {
        for (pairs, steps) in [(66, 1024), (66, 48), (57, 333), (7, 5), (1, 4)] {
            for tiles in (1..pairs).filter(|tiles| tiles * steps >= LEAST_STEPS * pairs) {
                let (runs, parts, busy) = divide(tiles, pairs, steps);
                let (mut tiles_left, mut pairs_left, mut begin) = (tiles, pairs, 0);
                for run in runs.map(u64::from) {
                    let whole = tiles_left / pairs_left;
                    tiles_left %= pairs_left;
                    let taken =
                        whole * (steps - begin) + if tiles_left > 0 { run.min(steps - begin) } else { 0 };
                    let even = (tiles * steps).div_ceil(pairs);
                    assert!(
                        taken <= even + even / 3 + LEAST_STEPS || runs[0] as u64 == steps,
                        "{tiles} of {pairs}"
                    );
                    if tiles_left == 0 {
                        begin = steps;
                        break;
                    }
                    let count = (pairs_left / tiles_left).min((steps - begin).div_ceil(run));
                    begin += count * run;
                    if begin >= steps {
                        break;
                    }
                    pairs_left -= count * tiles_left;
                }
                assert!(begin >= steps, "{tiles} of {pairs}: {runs:?} end at {begin} of {steps}");
                assert!(u64::from(parts) < pairs && busy <= pairs, "{tiles} of {pairs}: {parts}, {busy}");
            }
        }
        // Nine tiles, seven pairs each, and three pairs that take the last steps of three.
        assert_eq!(divide(9, 66, 1024), ([140, 1024, 1024, 1024], 7, 66));
        assert_eq!(divide(27, 66, 1024), ([420, 46, 1024, 1024], 5, 66));
        // 4 tiles of 75 steps in 15 runs each.
        assert_eq!(divide(4, 66, 75), ([5, 75, 75, 75], 14, 60));
    }

    #[test]
    fn large_products_take_wide_tiles_and_small_ones_fill_the_device() {
        let best = |product: &Product| divisions(product, H200).min_by_key(|(_, clocks)| *clocks).unwrap().0;
        let of = |m, n, k| best(&Product::new(m, n, k));
        assert_eq!(
            of(8192, 8192, 8192),
            Pairs { columns: 256, tiles: 1024, pairs: 66, group: 8, runs: [128; ROUNDS], ..Pairs::default() }
        );
        // Gradients of weights have few tiles and a long k.
        assert_eq!(of(768, 3072, 65536).divided_tiles(), 36);
        assert_eq!(of(65536, 2304, 768).columns, 256);
        assert_eq!(of(65536, 50304, 768).group, 16);
        // 4 x 16 tiles of 64 columns are one round of 66 pairs; 16 of 256 columns would leave 50 pairs idle.
        assert_eq!(
            of(1024, 1024, 1024),
            Pairs { columns: 64, tiles: 64, pairs: 64, group: 4, runs: [16; ROUNDS], ..Pairs::default() }
        );
        assert_eq!(of(1, 1, 1).pairs, 1);
        // A batch counts as more tiles.
        assert_eq!(best(&Product::new(1024, 1024, 64).batch(64, 65536, 65536, 1 << 20)).pairs, 66);
    }
}
