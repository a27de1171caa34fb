//! Products on the tensor cores of compute capability 9.0: `csrc/kernels/gemm_wgmma.cu`.

use super::engine::Lack;
use super::kernels::{self, Key, missing_image};
use super::packed::packed;
use super::plan::{Geometry, Machine, Situation};
use super::product::{Product, Stored};
use crate::driver::{
    ByValue, DeviceRead, DeviceSlice, DeviceSliceMut, LaunchConfig, Stream, TensorElement, TensorMap,
    TensorMapLayout, TensorPromotion, TensorSwizzle,
};
use crate::error::Result;
use crate::types::{DType, Element};

/// Bytes that rows and matrices in a tensor map begin at multiples of.
const MAP_ALIGNMENT: usize = 16;
/// Bytes from a row or matrix to the next that a tensor map can hold, less one.
const MAP_STRIDE: u64 = (1 << 40) - 1;
/// Blocks of a cluster, and rows of a tile of both.
const PAIR: u64 = 2;
const TILE_ROWS: u64 = 256;
const THREADS: u32 = 384;
/// Elements in the 128 bytes of a box's row, and k of a stage.
const PANEL: u32 = 64;

/// The operations of a product from which on operands are copied that no tensor map describes: below, ordinary
/// arithmetic takes no longer than a copy or two.
const COPY_PAYS: f64 = (1u64 << 28) as f64;

/// The widths of a tile, what a block's 64 k of it cost, and what it costs beside them: in clocks, roughly, from the rates
/// of the instructions and of the copies (64 bytes a clock). They only decide which tile is used, never the bits.
const WIDTHS: [(u32, u64, u64); 3] = [(256, 1024, 1600), (128, 560, 1100), (64, 340, 850)];

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
    staged: i32,
    alpha: f32,
    beta: f32,
    padding: i32,
}

fn family(operand: DType) -> Option<&'static str> {
    match operand {
        DType::F16 => Some("gemm_wgmma_f16"),
        DType::BF16 => Some("gemm_wgmma_bf16"),
        _ => None,
    }
}

/// Whether a tensor map can describe the matrices, at this address.
fn maps(stored: Stored, address: u64, element: usize) -> bool {
    let far = |distance: usize| (distance as u64).saturating_mul(element as u64) > MAP_STRIDE;
    address % MAP_ALIGNMENT as u64 == 0
        && stored.keeps_alignment(MAP_ALIGNMENT, element)
        && !(stored.rows > 1 && far(stored.leading))
        && !(stored.batch > 1 && far(stored.stride))
}

/// The operands that no tensor map describes as they are stored.
fn unmapped(situation: &Situation<'_>) -> impl Iterator<Item = char> {
    let (product, size) = (situation.product, situation.operand.size());
    let a = maps(product.stored_a(), situation.addresses[0], size);
    let b = maps(product.stored_b(), situation.addresses[1], size);
    [('A', a), ('B', b)].into_iter().filter(|(_, mapped)| !mapped).map(|(name, _)| name)
}

/// How a product is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Division {
    /// Columns of a tile.
    columns: u32,
    tiles: u64,
    /// Pairs of blocks.
    pairs: u32,
    /// Rows of tiles that are taken together.
    group: u32,
}

fn division(product: &Product, machine: Machine) -> Division {
    let (m, n, k) = (product.m() as u64, product.n() as u64, product.k() as u64);
    let most = u64::from(machine.multiprocessors / 2).max(1);
    let tiles = |columns: u32| {
        (m.div_ceil(TILE_ROWS) * n.div_ceil(u64::from(columns))).saturating_mul(product.count() as u64)
    };
    let cost = |&(columns, stage, rest): &(u32, u64, u64)| {
        let rounds = tiles(columns).div_ceil(most);
        rounds.saturating_mul(k.div_ceil(u64::from(PANEL)) * stage + rest)
    };
    // Of two that cost the same the wider one, which comes first.
    let (columns, ..) = WIDTHS.into_iter().min_by_key(cost).unwrap_or(WIDTHS[0]);
    // What one round of blocks reads should fit the L2 cache (measured at 4096, 8192 and 65536 rows).
    let group = if n * k > 30_000_000 && m < 20_000 { 8 } else { 4 };
    let tiles = tiles(columns);
    Division { columns, tiles, pairs: tiles.min(most) as u32, group }
}

/// What keeps it from running.
pub(super) fn lacks(situation: &Situation<'_>) -> Option<Lack> {
    let (operand, result, product) = (situation.operand, situation.result, situation.product);
    let Some(family) = family(operand).filter(|_| result == operand || result == DType::F32) else {
        return Some(Lack::Types(operand, result));
    };
    if let Some(error) = missing_image(situation.machine, family) {
        return Some(Lack::Image(error));
    }
    if product.k() == 0 {
        return Some(Lack::NoDepth);
    }
    if let Some(operand) = unmapped(situation).next().filter(|_| product.operations() < COPY_PAYS) {
        return Some(Lack::Alignment(operand, MAP_ALIGNMENT as u64));
    }
    // The kernels count in 32 bits, and one round past the end.
    if division(product, situation.machine).tiles > (i32::MAX / 2) as u64 {
        return Some(Lack::TooMany("tiles"));
    }
    None
}

fn kernel_name(situation: &Situation<'_>, columns: u32) -> String {
    format!("gemm_wgmma_{}_{}_{columns}", situation.operand, situation.product.layout())
}

/// What would run.
pub(super) fn geometry(situation: &Situation<'_>) -> Geometry {
    let division = division(situation.product, situation.machine);
    Geometry {
        family: family(situation.operand).unwrap_or(""),
        kernel: kernel_name(situation, division.columns),
        tile: (TILE_ROWS as u32, division.columns),
        tiles: division.tiles,
        blocks: division.pairs * PAIR as u32,
        copied: unmapped(situation).collect(),
    }
}

/// Dynamic shared memory: the stages, what C is staged in, two barriers a stage, and room to begin at a multiple of 1024.
fn shared_bytes(columns: u32) -> u32 {
    let (stages, staging) = (
        if columns == 256 {
            4
        } else if columns == 128 {
            6
        } else {
            8
        },
        4 * 64 * 128,
    );
    stages * ((128 + columns) * PANEL * 2 + 16) + staging + 1024
}

fn map<T: Element>(
    memory: &impl DeviceRead<T>,
    element: TensorElement,
    stored: Stored,
    (width, height): (u32, u32),
) -> Result<TensorMap> {
    let size = element.size() as u64;
    let (rows, columns) = (stored.rows as u64, stored.columns as u64);
    let aligned = |bytes: u64| bytes.next_multiple_of(MAP_ALIGNMENT as u64);
    // A batch that shares one matrix is described as that one; so is what there is only one of, whose distance to the
    // next is then any that a map takes.
    let shared = stored.batch <= 1 || stored.stride == 0;
    let row = if rows > 1 { stored.leading as u64 * size } else { aligned(columns * size) };
    let matrix = if shared { aligned(row) } else { stored.stride as u64 * size };
    TensorMap::tiled(
        memory,
        &TensorMapLayout {
            shape: vec![columns, rows, if shared { 1 } else { stored.batch as u64 }],
            strides: vec![row, matrix],
            swizzle: TensorSwizzle::Bytes128,
            promotion: TensorPromotion::Bytes128,
            ..TensorMapLayout::contiguous(element, &[], &[width, height, 1])
        },
    )
}

fn tensor_element(dtype: DType) -> TensorElement {
    match dtype {
        DType::F16 => TensorElement::F16,
        DType::BF16 => TensorElement::BF16,
        _ => TensorElement::F32,
    }
}

/// Runs it. The product was checked against the buffers, and nothing is lacking.
pub(super) fn run_on<T: Element, C: Element>(
    stream: &Stream,
    situation: &Situation<'_>,
    (alpha, beta): (f32, f32),
    a: DeviceSlice<'_, T>,
    b: DeviceSlice<'_, T>,
    c: DeviceSliceMut<'_, C>,
) -> Result<()> {
    let product = situation.product;
    let Division { columns, pairs, group, .. } = division(product, situation.machine);
    let (a_transposed, b_transposed) =
        (product.operation_a().transposes(), product.operation_b().transposes());
    let key: Key = (
        family(T::DTYPE).unwrap_or(""),
        u64::from(a_transposed) | u64::from(b_transposed) << 1 | u64::from(columns) << 2,
    );
    let function = kernels::function(&stream.device(), key, || kernel_name(situation, columns))?;

    let stored_c = product.stored_c();
    // The copies live until the product is launched, which orders their memory's next use behind it.
    let copied = |source: DeviceSlice<'_, T>, stored: Stored, address: u64| {
        let mapped = maps(stored, address, size_of::<T>());
        if mapped { Ok(None) } else { packed(stream, source, stored, MAP_ALIGNMENT).map(Some) }
    };
    let (copy_a, copy_b) = (
        copied(a, product.stored_a(), situation.addresses[0])?,
        copied(b, product.stored_b(), situation.addresses[1])?,
    );
    let (a, stored_a) = match &copy_a {
        Some((copy, stored)) => (copy.slice(..)?, *stored),
        None => (a, product.stored_a()),
    };
    let (b, stored_b) = match &copy_b {
        Some((copy, stored)) => (copy.slice(..)?, *stored),
        None => (b, product.stored_b()),
    };
    let element = tensor_element(T::DTYPE);
    let map_a = map(&a, element, stored_a, if a_transposed { (PANEL, 64) } else { (PANEL, 128) })?;
    // Each block of a pair copies half: of the columns where k is contiguous, of the depth where it is not.
    let map_b = map(&b, element, stored_b, if b_transposed { (PANEL, columns / 2) } else { (PANEL, 32) })?;
    // A store by a map writes whole pieces of 16 bytes: where a row ends within one, it would write behind the row.
    let whole = stored_c.columns * size_of::<C>() % MAP_ALIGNMENT == 0;
    let staged = whole && maps(stored_c, situation.addresses[2], size_of::<C>());
    let apart = |stored: Stored| i32::from(stored.batch > 1 && stored.stride > 0);
    let shape = Shape {
        m: product.m() as i32,
        n: product.n() as i32,
        k: product.k() as i32,
        batch: product.count() as i32,
        c_row: stored_c.leading as i64,
        c_matrix: stored_c.stride as i64,
        a_matrix: apart(stored_a),
        b_matrix: apart(stored_b),
        group: group as i32,
        wide: i32::from(T::DTYPE != C::DTYPE),
        staged: staged.into(),
        alpha,
        beta,
        padding: 0,
    };
    let config = LaunchConfig::new(pairs * PAIR as u32, THREADS).shared(shared_bytes(columns));
    if staged {
        let mut map_c = map(&c, tensor_element(C::DTYPE), stored_c, ((128 / size_of::<C>()) as u32, 64))?;
        // SAFETY: the kernel takes three maps, an address and this Shape; it reads what the first two describe and writes
        // what the third does, which lies inside C's buffer.
        unsafe { function.launch(stream, config, (&map_a, &map_b, &mut map_c, c, ByValue(shape))) }
    } else {
        // SAFETY: as above, but that the kernel does not use the third map, and writes the matrices that the Shape describes.
        unsafe { function.launch(stream, config, (&map_a, &map_b, &map_a, c, ByValue(shape))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Machine = Machine { capability: (9, 0), driver_isa: (8, 0), multiprocessors: 132 };

    #[test]
    fn the_shape_is_the_kernels() {
        assert_eq!(size_of::<Shape>(), 64);
        assert_eq!(std::mem::offset_of!(Shape, c_row), 16);
        assert_eq!(std::mem::offset_of!(Shape, alpha), 52);
    }

    #[test]
    fn stages_fit_a_block() {
        for (columns, ..) in WIDTHS {
            assert!((200 << 10..=227 << 10).contains(&shared_bytes(columns)), "{columns}");
        }
    }

    #[test]
    fn large_products_take_wide_tiles_and_small_ones_fill_the_device() {
        let of = |m, n, k| division(&Product::new(m, n, k), H200);
        assert_eq!(of(8192, 8192, 8192), Division { columns: 256, tiles: 1024, pairs: 66, group: 8 });
        assert_eq!(of(65536, 2304, 768).columns, 256);
        // 4 x 16 tiles of 64 columns are one round of 66 pairs; 16 of 256 columns would leave 50 pairs idle.
        assert_eq!(of(1024, 1024, 1024), Division { columns: 64, tiles: 64, pairs: 64, group: 4 });
        assert_eq!(of(1, 1, 1).pairs, 1);
        // A batch counts as more tiles.
        assert_eq!(division(&Product::new(1024, 1024, 64).batch(64, 65536, 65536, 1 << 20), H200).pairs, 66);
    }

    #[test]
    fn maps_take_multiples_of_16_bytes_and_distances_below_2_to_the_40() {
        let stored = Stored { rows: 8, columns: 8, leading: 8, batch: 1, stride: 0 };
        assert!(maps(stored, 0x100, 2));
        assert!(!maps(stored, 0x108, 2));
        assert!(!maps(Stored { leading: 12, ..stored }, 0x100, 2));
        assert!(maps(Stored { leading: 12, ..stored }, 0x100, 4));
        assert!(maps(Stored { leading: 13, rows: 1, ..stored }, 0x100, 2));
        assert!(!maps(Stored { leading: 1 << 39, ..stored }, 0x100, 2));
        assert!(!maps(Stored { batch: 2, stride: 1 << 39, ..stored }, 0x100, 2));
    }
}
