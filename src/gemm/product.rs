//! [`Product`]: sizes, transposition, leading dimensions and batches, with the checks of buffers against them.
//!
//! Everything is row-major: a matrix of r rows and c columns with leading dimension l has element (i, j) at `i * l + j`. An
//! operand is described as it is *stored*; its [`Operation`] gives the matrix that is multiplied.
//!
//! Invariants: after [`Product::check`] no kernel of this module leaves its buffers, whatever the sizes. All arithmetic on sizes is
//! checked here, once.

use std::fmt;
use std::ops::Range;

use super::algorithm::GemmAlgorithm;
use super::engine::{Choice, Engine};
use crate::driver::LaunchConfig;
use crate::error::{Error, Result};
use crate::images::MatrixLayout;

/// The operation that errors name.
pub(super) const OPERATION: &str = "a matrix product";

/// The largest number of rows, columns and depth: kernels count them in 32 bits, rounded up to whole tiles.
const MAX_SIZE: usize = (i32::MAX - 255) as usize;

/// The operation op that a product applies to a stored operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The matrix itself.
    #[default]
    None,
    /// Its transpose.
    Transpose,
    /// Its conjugate; of real numbers the matrix itself.
    Conjugate,
    /// Its conjugate transpose; of real numbers the transpose.
    Adjoint,
}

impl Operation {
    /// Returns true where rows and columns are swapped.
    pub const fn transposes(self) -> bool {
        matches!(self, Operation::Transpose | Operation::Adjoint)
    }

    /// Returns true where imaginary parts change their sign.
    pub const fn conjugates(self) -> bool {
        matches!(self, Operation::Conjugate | Operation::Adjoint)
    }

    fn stored(self, (rows, columns): (usize, usize)) -> (usize, usize) {
        if self.transposes() { (columns, rows) } else { (rows, columns) }
    }
}

/// C = alpha · op(A) · op(B) + beta · C, where op(A) is m x k, op(B) k x n and C m x n; or a batch of such products.
///
/// ```
/// use selvedge::gemm::{Operation, Product};
/// // B is stored as 100 rows of 64, in rows of 80.
/// let product = Product::new(32, 100, 64).b(Operation::Transpose).leading(64, 80, 100);
/// assert_eq!(product.to_string(), "32x100x64 (nt)");
/// // Out of the stored shapes; inner sizes that differ are an error.
/// assert_eq!(Product::of((32, 64), Operation::None, (100, 64), Operation::Transpose)?.n(), 100);
/// assert!(Product::of((32, 64), Operation::None, (100, 64), Operation::None).is_err());
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    m: usize,
    n: usize,
    k: usize,
    a: Operation,
    b: Operation,
    /// Of A, B and C; those of contiguous matrices without it.
    leading: Option<[usize; 3]>,
    batch: usize,
    /// From a matrix to the next, of A, B and C.
    strides: [usize; 3],
    choice: Option<Choice>,
    algorithm: Option<GemmAlgorithm>,
    overlaps: bool,
    is_batch_invariant: bool,
}

impl Product {
    /// Returns the product of contiguous matrices that are stored as they are multiplied.
    pub const fn new(m: usize, n: usize, k: usize) -> Product {
        Product {
            m,
            n,
            k,
            a: Operation::None,
            b: Operation::None,
            leading: None,
            batch: 1,
            strides: [0; 3],
            choice: None,
            algorithm: None,
            overlaps: true,
            is_batch_invariant: false,
        }
    }

    /// Returns the product of contiguous matrices with these stored shapes (rows, columns).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with both shapes where the inner sizes differ.
    pub fn of(
        a_shape: (usize, usize),
        a: Operation,
        b_shape: (usize, usize),
        b: Operation,
    ) -> Result<Product> {
        let ((m, k), (inner, n)) = (a.stored(a_shape), b.stored(b_shape));
        if k != inner {
            let found = format!("A of {m} x {k} times B of {inner} x {n}");
            return Err(Error::invalid(OPERATION, found, "as many columns of A as rows of B"));
        }
        Ok(Product::new(m, n, k).a(a).b(b))
    }

    /// Sets the operation on A.
    #[must_use]
    pub const fn a(mut self, operation: Operation) -> Product {
        self.a = operation;
        self
    }

    /// Sets the operation on B.
    #[must_use]
    pub const fn b(mut self, operation: Operation) -> Product {
        self.b = operation;
        self
    }

    /// Sets the leading dimensions: elements from a stored row of A, B and C to the next.
    #[must_use]
    pub const fn leading(mut self, a: usize, b: usize, c: usize) -> Product {
        self.leading = Some([a, b, c]);
        self
    }

    /// Sets the batch: `count` products, with this many elements from a matrix of A, B and C to the next. With 0 all products share A
    /// or B.
    #[must_use]
    pub const fn batch(mut self, count: usize, a: usize, b: usize, c: usize) -> Product {
        self.batch = count;
        self.strides = [a, b, c];
        self
    }

    /// Sets the engines that may compute it, in place of `SELVEDGE_GEMM`.
    #[must_use]
    pub const fn by(mut self, choice: Choice) -> Product {
        self.choice = Some(choice);
        self
    }

    /// Forces this kernel configuration of the `wgmma` engine, for tests and measurements. It is an error for a product that does not
    /// have it.
    #[must_use]
    pub const fn with_algorithm(mut self, algorithm: GemmAlgorithm) -> Product {
        self.choice = Some(Choice::Only(Engine::Wgmma));
        self.algorithm = Some(algorithm);
        self
    }

    /// Sets programmatic dependent launch, for measurements: whether a kernel of `wgmma`, or of `simt` with TMA loads, may be set up while
    /// the kernel ahead of it on the stream ends. The default is true. It changes no bits.
    #[must_use]
    pub const fn overlapping(mut self, overlaps: bool) -> Product {
        self.overlaps = overlaps;
        self
    }

    /// Sets batch invariance: the bits of a row of C depend neither on the number of rows nor on the other rows. The configuration is that
    /// of few rows, so many rows may take longer. Real A is stored by rows.
    ///
    /// ```
    /// use selvedge::gemm::{Product, gemm_host};
    /// let (a, b) = ([0.1f32; 3 * 70], [0.3f32; 70 * 40]);
    /// let (mut three, mut one) = ([0.0; 3 * 40], [0.0; 40]);
    /// gemm_host(&Product::new(3, 40, 70).batch_invariant(true), 1.0, &a, &b, 0.0, &mut three)?;
    /// gemm_host(&Product::new(1, 40, 70).batch_invariant(true), 1.0, &a[..70], &b, 0.0, &mut one)?;
    /// assert_eq!(three[..40], one);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    #[must_use]
    pub const fn batch_invariant(mut self, is_batch_invariant: bool) -> Product {
        self.is_batch_invariant = is_batch_invariant;
        self
    }

    /// Rows of C.
    pub const fn m(&self) -> usize {
        self.m
    }

    /// Columns of C.
    pub const fn n(&self) -> usize {
        self.n
    }

    /// Columns of op(A), which are rows of op(B).
    pub const fn k(&self) -> usize {
        self.k
    }

    /// Products in the batch.
    pub const fn count(&self) -> usize {
        self.batch
    }

    /// The operation on A.
    pub const fn operation_a(&self) -> Operation {
        self.a
    }

    /// The operation on B.
    pub const fn operation_b(&self) -> Operation {
        self.b
    }

    /// The engines that the caller allows.
    pub const fn choice(&self) -> Option<Choice> {
        self.choice
    }

    /// Returns true where the bits of a row do not depend on the number of rows.
    pub const fn is_batch_invariant(&self) -> bool {
        self.is_batch_invariant
    }

    /// Returns the product that the algorithm is chosen for: one of so many rows if the product is batch-invariant, otherwise itself.
    pub(super) const fn deciding(mut self, rows: usize) -> Product {
        if self.is_batch_invariant {
            self.m = rows;
            self.batch = 1;
        }
        self
    }

    /// The kernel configuration that the caller forces.
    pub(super) const fn algorithm(&self) -> Option<GemmAlgorithm> {
        self.algorithm
    }

    /// Enables programmatic dependent launch, unless the caller disabled it. The kernel must wait for the kernels ahead of it in every
    /// thread before it touches memory.
    pub(super) fn overlapped(&self, config: LaunchConfig) -> LaunchConfig {
        if self.overlaps { config.programmatic_dependent() } else { config }
    }

    /// Floating-point (or integer) operations: a multiplication and an addition for each of m n k, of every product.
    pub fn operations(&self) -> f64 {
        2.0 * self.m as f64 * self.n as f64 * self.k as f64 * self.batch as f64
    }

    /// Returns true where C has no elements.
    pub const fn is_empty(&self) -> bool {
        self.m == 0 || self.n == 0 || self.batch == 0
    }

    /// Returns the same product with a depth of 0, which reads neither A nor B.
    pub(super) const fn without_depth(mut self) -> Product {
        self.k = 0;
        self
    }

    /// Returns the products of `count` slices of k, of `depth` each, as a batch into contiguous matrices with rows of `row` elements.
    pub(super) fn slices_of_k(mut self, count: usize, depth: usize, row: usize) -> Product {
        let [a, b] = self.elements_to_k(depth);
        self.leading = Some([self.stored_a().leading, self.stored_b().leading, row]);
        self.k = depth;
        self.batch = count;
        self.strides = [a, b, self.m * row];
        self
    }

    /// Returns the elements from the first of A, and of B, to the first that is multiplied at this k.
    pub(super) fn elements_to_k(&self, k: usize) -> [usize; 2] {
        let (row_a, row_b) = (self.stored_a().leading, self.stored_b().leading);
        [if self.a.transposes() { k * row_a } else { k }, if self.b.transposes() { k } else { k * row_b }]
    }

    fn stored(&self, (rows, columns): (usize, usize), which: usize) -> MatrixLayout {
        let leading = self.leading.map_or(columns, |leading| leading[which]);
        MatrixLayout { rows, columns, leading, batch: self.batch, stride: self.strides[which] }
    }

    pub(super) fn stored_a(&self) -> MatrixLayout {
        self.stored(self.a.stored((self.m, self.k)), 0)
    }

    pub(super) fn stored_b(&self) -> MatrixLayout {
        self.stored(self.b.stored((self.k, self.n)), 1)
    }

    pub(super) fn stored_c(&self) -> MatrixLayout {
        self.stored((self.m, self.n), 2)
    }

    /// Fails if sizes or leading dimensions are invalid for any buffers.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`]: a size past 2³¹ - 256, a leading dimension that is less than a row, matrices of C that
    /// overlap, elements that `usize` cannot count.
    pub fn check(&self) -> Result<()> {
        let wrong = |found: String, wanted: &str| Err(Error::invalid(OPERATION, found, wanted));
        for (name, size) in [("m", self.m), ("n", self.n), ("k", self.k)] {
            if size > MAX_SIZE {
                return wrong(format!("{name} = {size}"), "at most 2^31 - 256 in each dimension");
            }
        }
        for (name, stored) in self.all_stored() {
            // A leading dimension past the address space is no array's, even where it is never walked.
            if stored.rows > 0 && (stored.leading < stored.columns || stored.leading > isize::MAX as usize) {
                let wanted =
                    format!("a leading dimension of at least {} and at most isize::MAX", stored.columns);
                return Err(Error::invalid(OPERATION, format!("{name} of {stored}"), wanted));
            }
            if stored.span().is_none_or(|span| span > isize::MAX as usize / 16) {
                return wrong(format!("{name} of {stored}"), "elements that an address space can hold");
            }
        }
        let c = self.stored_c();
        if !c.apart() {
            return wrong(format!("C of {c}"), "matrices that do not overlap, for they are written");
        }
        Ok(())
    }

    fn all_stored(&self) -> [(&'static str, MatrixLayout); 3] {
        [("A", self.stored_a()), ("B", self.stored_b()), ("C", self.stored_c())]
    }

    /// Fails if buffers of A, B and C at these bytes are too short, or if C overlaps an operand.
    pub(super) fn check_buffers(&self, bytes: [Range<u64>; 3], element: [usize; 3]) -> Result<()> {
        let [a, b, c] = &bytes;
        for (((name, stored), bytes), element) in self.all_stored().into_iter().zip(&bytes).zip(element) {
            let (needed, there) =
                (stored.span().unwrap_or(usize::MAX), (bytes.end - bytes.start) as usize / element);
            if needed > there {
                let wanted = format!("a buffer of at least {needed} elements");
                return Err(Error::invalid(
                    OPERATION,
                    format!("{name} of {stored} in {there} elements"),
                    wanted,
                ));
            }
        }
        for (name, operand) in [("A", a), ("B", b)] {
            if operand.start < c.end && c.start < operand.end {
                let found = format!(
                    "C at {:#x}..{:#x} and {name} at {:#x}..{:#x}",
                    c.start, c.end, operand.start, operand.end
                );
                return Err(Error::invalid(OPERATION, found, "memory of C's own"));
            }
        }
        Ok(())
    }
}

/// As `MxNxK (nn)`, with the letters n and t for what is stored transposed.
impl fmt::Display for Product {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.batch != 1 {
            write!(formatter, "{} of ", self.batch)?;
        }
        write!(formatter, "{}x{}x{} ({})", self.m, self.n, self.k, self.layout())
    }
}

impl Product {
    /// `nn`, `nt`, `tn` or `tt`.
    pub(super) const fn layout(&self) -> &'static str {
        match (self.a.transposes(), self.b.transposes()) {
            (false, false) => "nn",
            (false, true) => "nt",
            (true, false) => "tn",
            (true, true) => "tt",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_make_a_product_or_are_both_named() {
        use Operation::{Adjoint, Conjugate, None, Transpose};
        for (a, a_shape) in [(None, (3, 5)), (Conjugate, (3, 5)), (Transpose, (5, 3)), (Adjoint, (5, 3))] {
            for (b, b_shape) in [(None, (5, 7)), (Transpose, (7, 5))] {
                let product = Product::of(a_shape, a, b_shape, b).unwrap();
                assert_eq!((product.m(), product.n(), product.k()), (3, 7, 5));
                assert_eq!((product.stored_a().rows, product.stored_a().leading), a_shape);
                assert_eq!((product.stored_b().rows, product.stored_b().leading), b_shape);
            }
        }
        let error = Product::of((3, 5), None, (7, 5), None).unwrap_err().to_string();
        assert!(error.contains("3 x 5") && error.contains("7 x 5"), "{error}");
    }

    #[test]
    fn leading_dimensions_hold_a_row_and_fit_the_address_space() {
        let product = Product::new(4, 6, 8);
        assert!(product.leading(8, 6, 6).check().is_ok());
        for (leading, name) in [((7, 6, 6), "A of"), ((8, 5, 6), "B of"), ((8, 6, 5), "C of")] {
            let error = product.leading(leading.0, leading.1, leading.2).check().unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        // Transposed, B has rows of 8.
        assert!(product.b(Operation::Transpose).leading(8, 6, 6).check().is_err());
        for huge in [usize::MAX, usize::MAX / 4, isize::MAX as usize] {
            let error = product.leading(huge, 6, 6).check().unwrap_err().to_string();
            assert!(error.contains("A of"), "{error}");
            assert!(product.batch(3, huge, 0, 24).check().is_err());
        }
        assert!(Product::new(1 << 31, 1, 1).check().unwrap_err().to_string().contains("m = 2147483648"));
        assert!(Product::new(1, 1, MAX_SIZE).check().is_ok());
    }

    #[test]
    fn matrices_of_the_result_do_not_overlap() {
        let product = Product::new(4, 6, 8);
        assert!(product.batch(3, 0, 0, 24).check().is_ok());
        assert!(product.batch(3, 0, 0, 23).check().is_err());
        assert!(product.batch(3, 0, 0, 0).check().is_err());
        assert!(product.batch(1, 0, 0, 0).check().is_ok());
        // Three matrices side by side in rows of 18, and in rows that are one too short.
        assert!(product.leading(8, 6, 18).batch(3, 0, 0, 6).check().is_ok());
        assert!(product.leading(8, 6, 17).batch(3, 0, 0, 6).check().is_err());
        assert!(product.leading(8, 6, 18).batch(3, 0, 0, 5).check().is_err());
        // Without elements nothing overlaps.
        assert!(Product::new(0, 6, 8).batch(3, 0, 0, 0).check().is_ok());
    }

    #[test]
    fn buffers_are_long_enough_and_apart() {
        let product = Product::new(4, 6, 8).leading(10, 6, 6).batch(2, 40, 0, 24);
        // 40 + 3 * 10 + 8, 7 * 6 + 6 and 24 + 3 * 6 + 6 elements.
        let at = |start: u64, elements: u64| start..start + 4 * elements;
        let good = [at(0x1000, 78), at(0x2000, 48), at(0x3000, 48)];
        assert!(product.check_buffers(good.clone(), [4; 3]).is_ok());
        for short in 0..3 {
            let mut bytes = good.clone();
            bytes[short].end -= 4;
            assert!(product.check_buffers(bytes, [4; 3]).is_err(), "{short}");
        }
        let mut bytes = good.clone();
        bytes[2] = at(0x2000 + 4 * 47, 48);
        let error = product.check_buffers(bytes.clone(), [4; 3]).unwrap_err().to_string();
        assert!(error.contains("C at 0x20bc") && error.contains("B at 0x2000"), "{error}");
        bytes[2] = at(0x2000 + 4 * 48, 48);
        assert!(product.check_buffers(bytes, [4; 3]).is_ok());
        // A product without depth needs nothing of A and B.
        let none = [0..0, 0..0, at(0x3000, 48)];
        assert!(product.without_depth().check_buffers(none, [4; 3]).is_ok());
    }

    #[test]
    fn alignment_is_of_rows_and_matrices() {
        let stored = MatrixLayout { rows: 4, columns: 6, leading: 8, batch: 2, stride: 40 };
        assert!(stored.keeps_alignment(16, 2));
        assert!(!MatrixLayout { leading: 9, ..stored }.keeps_alignment(16, 2));
        assert!(MatrixLayout { leading: 9, rows: 1, ..stored }.keeps_alignment(16, 2));
        assert!(!MatrixLayout { stride: 41, ..stored }.keeps_alignment(16, 2));
        assert!(MatrixLayout { stride: 41, batch: 1, ..stored }.keeps_alignment(16, 2));
        assert!(MatrixLayout { stride: 0, ..stored }.keeps_alignment(16, 2));
        // Rows that end within 16 bytes.
        assert!(!stored.is_whole(16, 2) && stored.is_whole(4, 2));
        assert!(MatrixLayout { columns: 8, ..stored }.is_whole(16, 2));
        assert!(!MatrixLayout { columns: 8, leading: 9, ..stored }.is_whole(16, 2));
    }
}
