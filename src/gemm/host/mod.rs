//! Products on the CPU, of matrices in slices.
//!
//! C is divided into tiles, and each thread takes the next tile when it is free. Elements that are added in their own type take
//! one call for each tile. Narrow types are widened, added in a tile of sums and rounded once. A product of
//! few elements and a long k, such as the gradient of a weight, is divided along k too ([`slices_of_k`]). A transposed B
//! that many rows of tiles read is transposed once ([`transposed`]). A product of few rows streams B ([`row`]).
//!
//! Invariants: the division of C depends on the product alone, so the bits do not depend on the number of threads. (They depend
//! on the processor: its vectors, and its caches, which divide long sums.)
//!
//! On Linux the crate `gemm` reads the sizes of the caches at a process's first float product: about 45 files of
//! `/sys/devices/system/cpu` for each processor, without an option against it. With two processors this is 3 ms, once.

mod epilogue;
mod row;
mod slices_of_k;
mod sum;
mod transposed;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::element::{Sealed, SealedScalar};
use super::epilogue::{EpilogueParts, unsupported};
use super::product::{OPERATION, Operation, Product};
use super::{GemmElement, GemmResult};
use crate::error::{Error, Result};
use crate::images::MatrixLayout;
use crate::threads::{run_on_threads, thread_count};
pub use epilogue::HostEpilogue;
use epilogue::{Row, fuse};
pub use sum::Sum;
use sum::{Part, PartMut};

/// C = alpha · op(A) · op(B) + beta · C on the CPU, done when the call returns.
///
/// As [`gemm`](super::gemm), of slices: each may be longer than its matrices. Floats are added by fused multiplications and
/// additions in an order that depends on the product and the processor, not on the number of threads.
///
/// ```
/// use selvedge::gemm::{Operation, Product, gemm_host};
/// let a = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]; // 2 x 3
/// let b = [1.0f32, 0.0, 1.0, 0.0, 1.0, 0.0]; // 2 x 3, used as 3 x 2
/// let mut c = [0.0f32; 4];
/// gemm_host(&Product::new(2, 2, 3).b(Operation::Transpose), 1.0, &a, &b, 0.0, &mut c)?;
/// assert_eq!(c, [4.0, 2.0, 10.0, 5.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] where a size, a leading dimension or a slice does not fit (with both sides). Nothing is
/// written then.
pub fn gemm_host<T: GemmElement, C: GemmResult<T>>(
    product: &Product,
    alpha: T::Scalar,
    a: &[T],
    b: &[T],
    beta: T::Scalar,
    c: &mut [C],
) -> Result<()> {
    gemm_host_with(product, alpha, a, b, beta, c, HostEpilogue::new())
}

/// As [`gemm_host`], with a [`HostEpilogue`].
///
/// It computes in the type that the product is summed in, and rounds once. Bias, relu and residual are single IEEE
/// operations, so of the same sums they have the same bits as on a device; gelu and silu are within a few units in the last place of
/// that type, by the system's exponential function; a device has its own approximation.
///
/// # Errors
///
/// As `gemm_host`; also where a slice of the epilogue is too short, and where C's type is none of `f16`, `bf16`, `f32`
/// and `f64`.
pub fn gemm_host_with<T: GemmElement, C: GemmResult<T>>(
    product: &Product,
    alpha: T::Scalar,
    a: &[T],
    b: &[T],
    beta: T::Scalar,
    c: &mut [C],
    epilogue: HostEpilogue<'_, C>,
) -> Result<()> {
    multiply_by(thread_count(), product, (alpha, beta), a, b, c, epilogue)
}

fn multiply_by<T: GemmElement, C: GemmResult<T>>(
    processors: usize,
    product: &Product,
    (alpha, beta): (T::Scalar, T::Scalar),
    a: &[T],
    b: &[T],
    c: &mut [C],
    mut epilogue: HostEpilogue<'_, C>,
) -> Result<()> {
    let product = if alpha == T::Scalar::ZERO { product.without_depth() } else { *product };
    product.check()?;
    fn bytes<E>(slice: &[E]) -> std::ops::Range<u64> {
        let range = slice.as_ptr_range();
        range.start.addr() as u64..range.end.addr() as u64
    }
    let sizes = [size_of::<T>(), size_of::<T>(), size_of::<C>()];
    let ranges = [bytes(a), bytes(b), bytes(c)];
    product.check_buffers(ranges.clone(), sizes)?;
    let parts = &epilogue.parts;
    parts.seen(|slice| bytes(slice), |slice| bytes(slice)).check(&product, &ranges, size_of::<C>())?;
    if let Some(lack) = unsupported(C::DTYPE).filter(|_| !parts.is_none()) {
        let found = format!("{product} of {} into {} on the CPU; {lack}", T::DTYPE, C::DTYPE);
        return Err(Error::invalid(OPERATION, found, "a result that epilogues are for"));
    }
    if product.is_empty() {
        return Ok(());
    }
    let tile = match product.is_batch_invariant() {
        true => row::batch_invariant_tile(&product, T::IS_SUM),
        false => tile(&product),
    };
    let tiles = (product.m().div_ceil(tile.0), product.n().div_ceil(tile.1));
    let mut operand_of_b = MatrixOperand::of(b, product.stored_b(), product.operation_b());
    let is_read_often = tiles.0 >= transposed::MIN_READS && !product.is_batch_invariant();
    let by_rows = match T::IS_SUM && is_read_often && product.count() == 1 {
        true => transposed::by_rows(processors, &operand_of_b, (product.k(), product.n())),
        false => None,
    };
    if let Some(by_rows) = &by_rows {
        operand_of_b = MatrixOperand { start: by_rows.as_ptr(), row: product.n(), column: 1, ..operand_of_b };
    }
    let job = Job::<T, C> {
        product: &product,
        a: MatrixOperand::of(a, product.stored_a(), product.operation_a()),
        b: operand_of_b,
        c: c.as_mut_ptr(),
        stored_c: product.stored_c(),
        alpha: sum_of_words(alpha.sum()),
        beta: sum_of_words(beta.sum()),
        epilogue: epilogue.raw(),
        tile,
        tiles,
    };
    match job.depth_of_slices() {
        Some(depth) => job.in_slices(processors, depth),
        None => job.all(processors),
    }
}

/// Alpha or beta out of the form that kernels take them in.
fn sum_of_words<S: Sum>(words: [u64; 2]) -> S {
    bytemuck::pod_read_unaligned(&bytemuck::bytes_of(&words)[..size_of::<S>()])
}

/// Operations that are worth a thread's start.
const OPERATIONS_OF_A_THREAD: f64 = 4e6;
/// Columns of A and rows of B that are widened together.
const DEPTH: usize = 512;

/// Rows and columns of a tile: nearly square, and small enough that there are some for every thread, but not so small that
/// threads mostly copy the operands.
fn tile(product: &Product) -> (usize, usize) {
    let elements = product.m() as f64 * product.n() as f64 * product.count() as f64;
    let side: usize = match elements {
        elements if elements < (1 << 18) as f64 => 64,
        elements if elements < (1 << 22) as f64 => 128,
        elements if elements < (1 << 24) as f64 => 256,
        _ => 512,
    };
    if let Some(columns) = row::columns_of_tile(product) {
        return (product.m(), columns);
    }
    // Of a matrix with few rows a tile has more columns, and vice versa.
    let rows = side.min(product.m());
    let columns = (side * side / rows).min(product.n());
    (product.m().min(side * side / columns), columns)
}

/// A batch of matrices that is read, as the product sees it.
struct MatrixOperand<T> {
    start: *const T,
    stride: usize,
    row: usize,
    column: usize,
    conjugate: bool,
}

impl<T> MatrixOperand<T> {
    fn of(slice: &[T], stored: MatrixLayout, operation: Operation) -> MatrixOperand<T> {
        let (row, column) = if operation.transposes() { (1, stored.leading) } else { (stored.leading, 1) };
        let conjugate = operation.conjugates();
        MatrixOperand { start: slice.as_ptr(), stride: stored.stride, row, column, conjugate }
    }

    /// From this row and column of one of the matrices on.
    ///
    /// # Safety
    ///
    /// There are such a matrix, row and column.
    unsafe fn part(&self, matrix: usize, row: usize, column: usize) -> Part<T> {
        // SAFETY: what is there lies inside of the slice, whose distances fit `isize`.
        let start = unsafe { self.start.add(matrix * self.stride + row * self.row + column * self.column) };
        Part { start, row: self.row, column: self.column, conjugate: self.conjugate }
    }
}

/// A product under way, as its threads share it.
struct Job<'a, T: GemmElement, C> {
    product: &'a Product,
    a: MatrixOperand<T>,
    b: MatrixOperand<T>,
    c: *mut C,
    stored_c: MatrixLayout,
    alpha: T::Sum,
    beta: T::Sum,
    epilogue: EpilogueParts<*const C, *mut C>,
    tile: (usize, usize),
    tiles: (usize, usize),
}

// SAFETY: threads read A, B, bias and residual, and write tiles of C and aux that no other thread has.
unsafe impl<T: GemmElement, C: Send> Sync for Job<'_, T, C> {}

/// A thread's own memory: widened parts of the operands, sums, and a row of them that is being finished.
struct Scratch<S> {
    a: Vec<S>,
    b: Vec<S>,
    sums: Vec<S>,
    row: Vec<S>,
}

/// The operands of a tile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    /// Of nothing: a product without depth.
    Zeros,
    /// Of the scratch memory's sums.
    Sums,
    /// They are in C, alpha and beta applied.
    InPlace,
}

/// A tile of C.
struct Tile<C> {
    /// Its rows and columns.
    size: (usize, usize),
    /// Its first row and column.
    first: (usize, usize),
    /// Its first element, counted from the first matrix on.
    offset: usize,
    c: PartMut<C>,
}

impl<T: GemmElement, C: GemmResult<T>> Job<'_, T, C> {
    fn all(&self, processors: usize) -> Result<()> {
        let count = (self.tiles.0 * self.tiles.1).saturating_mul(self.product.count());
        self.share(processors, count, &|index, scratch| self.one(index, scratch))
    }

    /// Runs `unit` for each index below `count`, each on one thread.
    fn share(
        &self,
        processors: usize,
        count: usize,
        unit: &(dyn Fn(usize, &mut Scratch<T::Sum>) + Sync),
    ) -> Result<()> {
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            let mut scratch = Scratch { a: Vec::new(), b: Vec::new(), sums: Vec::new(), row: Vec::new() };
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count || failed.load(Ordering::Relaxed) {
                    break;
                }
                // The kernels are another crate's, which reads the system's description of its caches.
                let done = catch_unwind(AssertUnwindSafe(|| unit(index, &mut scratch)));
                if done.is_err() {
                    failed.store(true, Ordering::Relaxed);
                }
            }
        };
        let worth = match row::threads(self.product) {
            Some(threads) => threads,
            None => (self.product.operations() / OPERATIONS_OF_A_THREAD) as usize,
        };
        run_on_threads(processors.min(worth).min(count), &work);
        match failed.load(Ordering::Relaxed) {
            true => Err(Error::invalid(
                OPERATION,
                format!("{} on the CPU, whose kernels panicked", self.product),
                "a processor that they know",
            )),
            false => Ok(()),
        }
    }

    /// Computes one tile.
    fn one(&self, index: usize, scratch: &mut Scratch<T::Sum>) {
        let per_matrix = self.tiles.0 * self.tiles.1;
        let (matrix, index) = (index / per_matrix, index % per_matrix);
        let (top, left) = (index / self.tiles.1 * self.tile.0, index % self.tiles.1 * self.tile.1);
        let rows = self.tile.0.min(self.product.m() - top);
        let columns = self.tile.1.min(self.product.n() - left);
        let offset = matrix * self.stored_c.stride + top * self.stored_c.leading + left;
        // SAFETY: the product was checked against the slices, so all of this lies in them; no other tile has this part of C.
        unsafe {
            let c = PartMut { start: self.c.add(offset), row: self.stored_c.leading };
            let tile = Tile { size: (rows, columns), first: (top, left), offset, c };
            if self.product.k() == 0 {
                self.finish(tile, Made::Zeros, scratch);
            } else if T::IS_SUM && size_of::<C>() == size_of::<T>() {
                let (a, b) = (as_sums(self.a.part(matrix, top, 0)), as_sums(self.b.part(matrix, 0, left)));
                let sums = PartMut { start: c.start.cast::<T::Sum>(), row: c.row };
                T::Sum::multiply((rows, columns, self.product.k()), self.alpha, a, b, self.beta, sums);
                if !self.epilogue.is_none() {
                    self.finish(tile, Made::InPlace, scratch);
                }
            } else {
                self.widened(matrix, (top, left), (rows, columns), scratch);
                self.finish(tile, Made::Sums, scratch);
            }
        }
    }

    /// Fills the sums of a tile.
    ///
    /// # Safety
    ///
    /// The tile lies in C.
    unsafe fn widened(
        &self,
        matrix: usize,
        (top, left): (usize, usize),
        (rows, columns): (usize, usize),
        scratch: &mut Scratch<T::Sum>,
    ) {
        let k = self.product.k();
        scratch.sums.clear();
        scratch.sums.resize(rows * columns, T::Sum::ZERO);
        for first in (0..k).step_by(DEPTH) {
            let depth = DEPTH.min(k - first);
            // SAFETY: the tile lies in C, so its rows are A's and its columns B's; the copies are as large as they say.
            unsafe {
                let a = widen(self.a.part(matrix, top, first), (rows, depth), &mut scratch.a);
                let b = widen(self.b.part(matrix, first, left), (depth, columns), &mut scratch.b);
                let beta = if first == 0 { T::Sum::ZERO } else { T::Sum::ONE };
                let c = PartMut { start: scratch.sums.as_mut_ptr(), row: columns };
                T::Sum::multiply((rows, columns, depth), T::Sum::ONE, a, b, beta, c);
            }
        }
    }

    /// Applies the epilogue to a tile's sums and rounds them into C.
    ///
    /// # Safety
    ///
    /// The tile lies in C, and nobody else uses it.
    unsafe fn finish(&self, tile: Tile<C>, made: Made, scratch: &mut Scratch<T::Sum>) {
        let (rows, columns) = tile.size;
        let reads = self.beta != T::Sum::ZERO;
        for i in 0..rows {
            let sums = scratch.sums.get(i * columns..(i + 1) * columns).unwrap_or_default();
            // SAFETY: the caller vouches for the tile, of which this is a row.
            let row = unsafe { std::slice::from_raw_parts_mut(tile.c.start.add(i * tile.c.row), columns) };
            let old = |element: &C| if reads { Some(element.summand()) } else { None };
            scratch.row.clear();
            match made {
                Made::InPlace => scratch.row.extend(row.iter().map(|element| element.summand())),
                Made::Sums => {
                    let elements = sums.iter().zip(&*row);
                    let finished =
                        elements.map(|(sum, element)| sum.finished(self.alpha, self.beta, old(element)));
                    scratch.row.extend(finished);
                }
                Made::Zeros => {
                    let zero = |element| T::Sum::ZERO.finished(T::Sum::ONE, self.beta, old(element));
                    scratch.row.extend(row.iter().map(zero));
                }
            }
            if !self.epilogue.is_none() {
                let (first, column) = tile.first;
                let at = Row { row: first + i, column, offset: tile.offset + i * tile.c.row };
                // SAFETY: the epilogue was checked with the product.
                unsafe { fuse::<T, C>(&self.epilogue, at, &mut scratch.row) };
            }
            for (element, value) in row.iter_mut().zip(&scratch.row) {
                *element = C::rounded(*value);
            }
        }
    }
}

/// The same bits under another name: of signed integers, and of a type parameter that is its own sum.
fn as_sums<T: Sealed>(part: Part<T>) -> Part<T::Sum> {
    Part { start: part.start.cast(), row: part.row, column: part.column, conjugate: part.conjugate }
}

/// A copy of a matrix in the type of its sums, row by row as they are stored.
///
/// # Safety
///
/// The matrix has so many rows and columns.
unsafe fn widen<T: Sealed>(
    source: Part<T>,
    (rows, columns): (usize, usize),
    copy: &mut Vec<T::Sum>,
) -> Part<T::Sum> {
    copy.clear();
    let transposed = source.column != 1;
    let (outer, inner) = if transposed { (columns, rows) } else { (rows, columns) };
    let leading = if transposed { source.column } else { source.row };
    for line in 0..outer {
        // SAFETY: the line is one of the matrix's, whose elements lie one behind another.
        let line = unsafe { std::slice::from_raw_parts(source.start.add(line * leading), inner) };
        copy.extend(line.iter().map(|element| element.widened()));
    }
    let (row, column) = if transposed { (1, rows) } else { (columns, 1) };
    Part { start: copy.as_ptr(), row, column, conjugate: source.conjugate }
}

#[cfg(test)]
mod tests {
    use super::super::Activation;
    use super::*;

    /// Numbers whose sums depend on their order.
    fn elements(count: usize) -> Vec<f32> {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 1e7 - 0.8
        };
        (0..count).map(|_| next()).collect()
    }

    /// Sizes and batches: plain, of few rows or columns, many small ones, and cut along k.
    const PRODUCTS: [(usize, usize, usize, usize); 7] = [
        (300, 260, 700, 1),
        (1, 3000, 900, 1),
        (5, 700, 900, 1),
        (3000, 1, 900, 2),
        (64, 64, 64, 20),
        (33, 40, 4500, 1),
        (20, 17, 2300, 2),
    ];

    #[test]
    fn bits_do_not_depend_on_the_number_of_threads() {
        for (m, n, k, batch) in PRODUCTS {
            let (a, b) = (elements(m * k * batch), elements(k * n * batch));
            let product = Product::new(m, n, k).batch(batch, m * k, k * n, m * n);
            let (bias, residual) = (elements(n), elements(m * n * batch));
            let by = |threads: usize| {
                let (mut c, mut aux) = (vec![0.0f32; m * n * batch], vec![0.0f32; m * n * batch]);
                let epilogue = HostEpilogue::new().bias_of_columns(&bias).activation(Activation::GeluTanh);
                let epilogue = epilogue.aux(&mut aux).residual(&residual);
                multiply_by(threads, &product, (1.0, 0.0), &a, &b, &mut c, epilogue).unwrap();
                (c, aux)
            };
            let alone = by(1);
            assert!(alone.0.iter().chain(&alone.1).all(|x| *x != 0.0));
            for threads in [2, 3, 16] {
                assert!(by(threads) == alone, "{product} by {threads} threads");
            }
        }
    }

    #[test]
    fn each_algorithm_has_the_sums_of_the_definition() {
        // Cut along k with and without a batch, one row with and without rows that are left over, B transposed once.
        let products = [
            (33, 40, 4500, 1),
            (20, 17, 2300, 2),
            (1, 40, 77, 3),
            (1, 16, 8, 1),
            (700, 70, 30, 1),
            // Few rows, of an even and an odd number, cut into slices and in one part, with columns that are left over.
            (5, 1301, 301, 1),
            (8, 43, 37, 2),
        ];
        for (m, n, k, batch) in products {
            for transposes in [false, true] {
                let (a, b, old) = (elements(m * k * batch), elements(k * n * batch), elements(m * n * batch));
                let bias = elements(n);
                let product = Product::new(m, n, k).batch(batch, m * k, k * n, m * n);
                let product = if transposes { product.b(Operation::Transpose) } else { product };
                let mut c = old.clone();
                let epilogue = HostEpilogue::new().bias_of_columns(&bias);
                multiply_by(2, &product, (0.5, 2.0), &a, &b, &mut c, epilogue).unwrap();
                for (index, found) in c.iter().enumerate() {
                    let (matrix, row, column) = (index / (m * n), index / n % m, index % n);
                    let of_b =
                        |index: usize| if transposes { column * k + index } else { index * n + column };
                    let term = |index: usize| {
                        let a = f64::from(a[matrix * m * k + row * k + index]);
                        a * f64::from(b[matrix * k * n + of_b(index)])
                    };
                    let sum: f64 = (0..k).map(term).sum();
                    let wanted = 0.5 * sum + 2.0 * f64::from(old[index]) + f64::from(bias[column]);
                    let far = (f64::from(*found) - wanted).abs();
                    assert!(far < 1e-6 * k as f64 + 1e-5, "{product} at {index}: {found}, not {wanted}");
                }
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn bits_of_a_row_do_not_depend_on_the_others_of_few_rows() {
        if !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")) {
            return;
        }
        let (n, k) = (1301, 301);
        for operation in [Operation::None, Operation::Transpose] {
            let (a, b) = (elements(8 * k), elements(k * n));
            let by = |rows: std::ops::Range<usize>| {
                let product = Product::new(rows.len(), n, k).b(operation);
                let mut c = vec![0.0f32; rows.len() * n];
                let a = &a[rows.start * k..rows.end * k];
                multiply_by(2, &product, (1.0, 0.0), a, &b, &mut c, HostEpilogue::new()).unwrap();
                c
            };
            let all = by(0..8);
            for rows in [0..1, 5..6, 0..2, 3..6, 1..8] {
                assert!(by(rows.clone()) == all[rows.start * n..rows.end * n], "{operation:?} {rows:?}");
            }
        }
    }

    #[test]
    fn tiles_are_of_the_product() {
        assert_eq!(tile(&Product::new(100, 100, 5)), (64, 64));
        assert_eq!(tile(&Product::new(1, 1 << 20, 5)), (1, 1 << 14));
        assert_eq!(tile(&Product::new(1 << 20, 1, 5)), (1 << 14, 1));
        assert_eq!(tile(&Product::new(8192, 8192, 5)), (512, 512));
        assert_eq!(tile(&Product::new(3, 2, 5)), (3, 2));
    }
}
