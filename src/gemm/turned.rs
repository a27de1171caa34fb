//! Copies of operands of `f32` turned over: `csrc/kernels/gemm_turn.cu`.
//!
//! Why: the kernels of [`simt`](super::simt) that bulk copies bring operands to multiply what has k across its stored rows as it
//! comes, and turn over what has k along them, each block for itself. A copy of the whole operand takes the memory's time,
//! which is less where many blocks read the same.

use super::kernels::{self, missing_image};
use super::plan::Situation;
use super::product::{Operation, Product, Stored};
use super::way::Way;
use crate::driver::{ByValue, DeviceBuffer, DeviceSlice, LaunchConfig, Stream};
use crate::error::Result;
use crate::types::DType;

/// The kernel's family, which has one image.
const FAMILY: &str = "gemm_turn";

const THREADS: u32 = 256;
/// Rows and columns of a tile.
const SPAN: usize = 64;
/// Elements of 128 bytes, which a row of a copy is a whole number of.
const LINE: usize = 32;

/// What the copy of an element takes, and what the launch of a copy takes, in multiplications of which each takes as long as
/// turning over adds to one: that is 5 % of a product's time at 48 TFLOP/s. The copy is 8 bytes at 3.5 TB/s and a microsecond: on
/// an H200 it is worth its time from 2048 x 2048 x 1024 on.
const COPY_OF_ELEMENT: u64 = 1100;
const LAUNCH: u64 = 500_000_000;

/// The kernel's parameter: exactly the `Shape` of gemm_turn.cu.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Shape {
    row: i64,
    matrix: i64,
    line: i64,
    copy: i64,
    rows: u32,
    columns: u32,
    across: u32,
    tiles: u32,
}

/// How the copy is stored; a matrix that all products share is copied once.
fn turned(stored: Stored) -> Stored {
    let leading = stored.rows.next_multiple_of(LINE);
    let stride = if stored.matrices() > 1 { stored.columns * leading } else { 0 };
    Stored { rows: stored.columns, columns: stored.rows, leading, batch: stored.batch, stride }
}

/// Which of A and B are to be turned over first: those with k along their stored rows where that takes clearly less time than
/// it spares a product in large tiles, or where the way asks for it.
pub(super) fn asked(situation: &Situation<'_>, large: bool) -> [bool; 2] {
    let product = situation.product;
    if situation.operand != DType::F32 || missing_image(situation.machine, FAMILY).is_some() {
        return [false; 2];
    }
    let along = [!product.operation_a().transposes(), product.operation_b().transposes()];
    if let Some(turned) = situation.way.and_then(Way::turns) {
        return along.map(|along| along && turned);
    }
    if !large {
        return [false; 2];
    }
    let count =
        |factors: &[usize]| factors.iter().fold(1u64, |all, factor| all.saturating_mul(*factor as u64));
    let multiplications = count(&[product.m(), product.n(), product.k(), product.count()]);
    let pays = |stored: Stored| {
        let copy = (stored.elements() as u64).saturating_mul(COPY_OF_ELEMENT).saturating_add(LAUNCH);
        multiplications / 3 > copy / 2
    };
    [along[0] && pays(product.stored_a()), along[1] && pays(product.stored_b())]
}

/// The product of the copies of those that were asked for, and of the others as they are.
pub(super) fn product(product: &Product, [of_a, of_b]: [bool; 2]) -> Product {
    let [mut a, mut b] = [product.stored_a(), product.stored_b()];
    let c = product.stored_c();
    let mut other = *product;
    if of_a {
        (a, other) = (turned(a), other.a(Operation::Transpose));
    }
    if of_b {
        (b, other) = (turned(b), other.b(Operation::None));
    }
    other.leading(a.leading, b.leading, c.leading).batch(product.count(), a.stride, b.stride, c.stride)
}

/// A copy of the matrices, turned over. Its memory is the stream's own, and goes back to it when it is dropped. It is
/// launched as the product's kernels are.
pub(super) fn copy(
    stream: &Stream,
    source: DeviceSlice<'_, u8>,
    stored: Stored,
    product: &Product,
) -> Result<DeviceBuffer<u8>> {
    let (matrices, to) = (stored.matrices(), turned(stored));
    let mut copy = stream.uninitialized::<u8>(matrices * to.rows * to.leading * size_of::<f32>())?;
    let (down, across) = (stored.rows.div_ceil(SPAN), stored.columns.div_ceil(SPAN));
    let shape = Shape {
        row: stored.leading as i64,
        matrix: stored.stride as i64,
        line: to.leading as i64,
        copy: to.stride as i64,
        rows: stored.rows as u32,
        columns: stored.columns as u32,
        across: across as u32,
        tiles: (down * across) as u32,
    };
    let function = kernels::function(&stream.device(), (FAMILY, 0), &|| FAMILY.to_owned())?;
    let config = product.overlapped(LaunchConfig::new((matrices * down * across) as u32, THREADS));
    // SAFETY: the kernel takes an address to read, one to write and this Shape, which describes matrices that lie inside the
    // source, as the product was checked, and their copies, which there is room for.
    unsafe { function.launch(stream, config, (source, &mut copy, ByValue(shape)))? };
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::{Machine, Plan};

    const HOPPER: Machine = Machine::typical((9, 0));

    fn explain(product: Product) -> Plan {
        Plan::explain(&product, DType::F32, DType::F32, HOPPER).unwrap()
    }

    #[test]
    fn the_shape_is_the_kernels() {
        assert_eq!(size_of::<Shape>(), 4 * 8 + 4 * 4);
        assert_eq!(std::mem::offset_of!(Shape, rows), 32);
    }

    #[test]
    fn large_operands_with_k_along_their_rows_are_copied_first() {
        let square = |size| Product::new(size, size, size);
        let plan = explain(square(4096));
        assert_eq!((plan.kernel(), plan.turned()), ("gemm_bulk_f32_tn_large", &['A'][..]));
        assert!(plan.to_string().contains("\n  A is copied first, turned over"), "{plan}");
        let both = explain(square(4096).b(Operation::Transpose));
        assert_eq!((both.kernel(), both.turned()), ("gemm_bulk_f32_tn_large", &['A', 'B'][..]));
        let neither = explain(square(4096).a(Operation::Adjoint));
        assert_eq!((neither.kernel(), neither.turned()), ("gemm_bulk_f32_tn_large", &[][..]));
        assert_eq!(explain(square(2048)).turned(), ['A']);
        // Too small to pay.
        assert!(explain(square(1024)).turned().is_empty());
        // B is read by too few blocks, which are those of few rows; A by too few, which are those of few columns.
        let wide = Product::new(1024, 65536, 4096).b(Operation::Transpose);
        assert_eq!((explain(wide).kernel(), explain(wide).turned()), ("gemm_bulk_f32_tt_large", &['A'][..]));
        let tall = Product::new(65536, 1024, 4096).b(Operation::Transpose);
        assert_eq!((explain(tall).kernel(), explain(tall).turned()), ("gemm_bulk_f32_nn_large", &['B'][..]));
        // What a batch shares is copied once.
        let batch = Product::new(4096, 1024, 1024);
        assert!(explain(batch.batch(8, 1 << 22, 1 << 20, 1 << 22)).turned().is_empty());
        assert_eq!(explain(batch.batch(8, 0, 1 << 20, 1 << 22)).turned(), ['A']);
        // Other types, and other devices.
        let other = |dtype, machine| Plan::explain(&square(8192), dtype, dtype, machine).unwrap();
        assert!(other(DType::C64, HOPPER).turned().is_empty());
        assert!(other(DType::F32, Machine::typical((8, 0))).turned().is_empty());
    }

    #[test]
    fn ways_say_whether_operands_are_turned_over() {
        let in_way = |size, way: &str| explain(Product::new(size, size, size).in_way(way.parse().unwrap()));
        assert_eq!(in_way(1024, "simt/turned").kernel(), "gemm_bulk_f32_tn_small");
        assert_eq!(in_way(2048, "simt/turned").turned(), ['A']);
        assert_eq!(in_way(4096, "simt/stored").kernel(), "gemm_bulk_f32_nn_large");
    }

    #[test]
    fn copies_have_rows_of_whole_lines() {
        let stored = Stored { rows: 65, columns: 33, leading: 36, batch: 3, stride: 65 * 36 };
        let copies = Stored { rows: 33, columns: 65, leading: 96, batch: 3, stride: 33 * 96 };
        assert_eq!(turned(stored), copies);
        assert_eq!(turned(Stored { stride: 0, ..stored }), Stored { stride: 0, ..copies });
        let other = product(
            &Product::new(65, 70, 33).leading(36, 72, 72).batch(3, 65 * 36, 0, 65 * 72),
            [true, false],
        );
        assert_eq!((other.stored_a(), other.operation_a()), (copies, Operation::Transpose));
        assert_eq!(
            (other.stored_b().leading, other.stored_c().leading, other.stored_c().stride),
            (72, 72, 65 * 72)
        );
    }
}
