//! The plan of a product of tensors as calls of [`gemm`](crate::gemm): the operands' storage orders, the merged batch
//! dimensions, and the number of calls.
//!
//! Invariants: the plan depends on shapes and strides alone, and on whether the thread asks for batch invariance, so the same call has the
//! same bits.

use crate::error::{Error, Result};
use crate::gemm::{Choice, Operation, Product, is_batch_invariant};
use crate::types::{Layout, Shape};

/// The most rows that a product may have; see [`Product::check`].
const MAX_ROWS: usize = (i32::MAX - 255) as usize;

/// The storage of a matrix, in a form that a product reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StorageOrder {
    pub transposed: bool,
    pub leading: usize,
}

/// Returns the storage order of a matrix of this layout's last two dimensions; `None` if neither its rows nor its columns are
/// contiguous, or if a stride of the batch is negative.
pub(super) fn storage_order(layout: &Layout) -> Option<StorageOrder> {
    let (&[.., rows, columns], &[ref batch @ .., row, column]) = (&layout.shape()[..], layout.strides())
    else {
        return None;
    };
    if layout.count() == 0 {
        // Nothing is read.
        return Some(StorageOrder { transposed: false, leading: columns });
    }
    if batch.iter().any(|stride| *stride < 0) {
        return None;
    }
    let along = |lines: usize, length: usize, line: isize, element: isize| {
        let leading = if lines == 1 { length } else { usize::try_from(line).ok()? };
        (leading >= length && (length == 1 || element == 1)).then_some(leading)
    };
    let plain = along(rows, columns, row, column).map(|leading| StorageOrder { transposed: false, leading });
    plain.or_else(|| {
        along(columns, rows, column, row).map(|leading| StorageOrder { transposed: true, leading })
    })
}

/// A dimension over which products are repeated: its size, and the strides of A, B and C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Repeated {
    size: usize,
    strides: [usize; 3],
}

/// One call of a product, and where A, B and C begin, in elements from their tensors' first ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GemmStep {
    pub product: Product,
    pub starts: [usize; 3],
    /// True if the operands are swapped, Cᵀ = Bᵀ · Aᵀ: A of the product is the right operand, and its start comes first.
    pub swapped: bool,
}

/// The operands of a product: layouts of at least two dimensions, with their storage orders.
pub(super) struct Matrices<'a> {
    pub layouts: [&'a Layout; 3],
    pub order: [StorageOrder; 3],
    pub conjugate: [bool; 2],
    pub choice: Option<Choice>,
    /// True if each matrix has a bias per row, so that its rows cannot join the next matrix's.
    pub has_row_bias: bool,
}

impl Matrices<'_> {
    /// Returns the calls whose products make up C.
    ///
    /// # Errors
    ///
    /// As [`Product::check`] for sizes.
    pub(super) fn steps(&self) -> Result<Vec<GemmStep>> {
        let [a, b, c] = self.layouts;
        let (Some(&[m, k]), Some(&[_, n])) = (a.shape().last_chunk(), b.shape().last_chunk()) else {
            return Err(Error::invalid("a matrix product", format!("{a:?} and {b:?}"), "two dimensions"));
        };
        let sizes = &c.shape()[..c.rank() - 2];
        let strides = [a, b, c].map(|layout| batch_strides(layout, sizes.len()));
        let mut repeated: Vec<Repeated> = Vec::new();
        for (axis, &size) in sizes.iter().enumerate().filter(|(_, size)| **size != 1) {
            let next = Repeated { size, strides: strides.each_ref().map(|strides| strides[axis]) };
            match repeated.last_mut() {
                // The two are evenly spaced together: they are one dimension.
                Some(last) if (0..3).all(|which| last.strides[which] == next.strides[which] * size) => {
                    *last = Repeated { size: last.size * size, strides: next.strides };
                }
                _ => repeated.push(next),
            }
        }
        let mut rows = m;
        let mut leading = self.order.map(|order| order.leading);
        // Products that share B, and whose rows of A and C are evenly spaced, are one product of more rows.
        while let Some(last) = repeated.last() {
            let of = |which: usize| if rows == 1 { last.strides[which] } else { leading[which] };
            let together = last.strides[1] == 0
                && !self.has_row_bias
                && !self.order[0].transposed
                && !self.order[2].transposed
                && last.strides[0] == rows * of(0)
                && last.strides[2] == rows * of(2)
                && of(0) >= k
                && of(2) >= n
                && rows.checked_mul(last.size).is_some_and(|rows| rows <= MAX_ROWS);
            if !together {
                break;
            }
            leading = [of(0), leading[1], of(2)];
            rows *= last.size;
            repeated.pop();
        }
        // The longest remaining dimension is the batch, and the others are a loop of calls.
        let longest = (0..repeated.len()).max_by_key(|index| repeated[*index].size);
        let batch = longest.map_or(Repeated { size: 1, strides: [0; 3] }, |index| repeated.remove(index));
        let mut transposed = self.order.map(|order| order.transposed);
        // A product of one column is computed as its transpose, one row: engines are faster for few rows than for few columns.
        let is_batch_invariant = is_batch_invariant();
        let column = n == 1 && rows > 1 && leading[2] == 1 && !is_batch_invariant;
        if column {
            leading[2] = rows;
            // A vector without steps is a row as well as a column.
            if !transposed[1] && leading[1] == 1 {
                (transposed[1], leading[1]) = (true, k);
            }
        }
        // The transpose of a column-major result is row-major.
        let swapped = column || transposed[2];
        let mut sides =
            [0, 1].map(|which| (transposed[which] != swapped, self.conjugate[which], leading[which]));
        let mut order = [0, 1, 2];
        let mut size = (rows, n);
        if swapped {
            sides.reverse();
            order = [1, 0, 2];
            size = (n, rows);
        }
        let operation = |which: usize| match (sides[which].0, sides[which].1) {
            (false, false) => Operation::None,
            (true, false) => Operation::Transpose,
            (false, true) => Operation::Conjugate,
            (true, true) => Operation::Adjoint,
        };
        let strides = order.map(|which| batch.strides[which]);
        let mut product = Product::new(size.0, size.1, k)
            .a(operation(0))
            .b(operation(1))
            .leading(sides[0].2, sides[1].2, leading[2])
            .batch(batch.size, strides[0], strides[1], strides[2])
            .batch_invariant(is_batch_invariant);
        if let Some(choice) = self.choice {
            product = product.by(choice);
        }
        product.check()?;
        let step =
            |starts: [usize; 3]| GemmStep { product, starts: order.map(|which| starts[which]), swapped };
        Ok(walk(&repeated).map(step).collect())
    }
}

/// The strides of the batch's dimensions in a layout that is broadcast to so many.
fn batch_strides(layout: &Layout, dimensions: usize) -> Vec<usize> {
    let matrix_axis = layout.rank() - 2;
    let of = |axis: usize| match axis.checked_sub(dimensions - matrix_axis) {
        Some(axis) if layout.shape()[axis] != 1 => layout.strides()[axis].unsigned_abs(),
        _ => 0,
    };
    (0..dimensions).map(of).collect()
}

/// The starts of A, B and C for every index of these dimensions.
fn walk(dimensions: &[Repeated]) -> impl Iterator<Item = [usize; 3]> + '_ {
    let count: usize = dimensions.iter().map(|dimension| dimension.size).product();
    (0..count).map(|index| {
        let mut starts = [0; 3];
        let mut rest = index;
        for dimension in dimensions.iter().rev() {
            let at = rest % dimension.size;
            rest /= dimension.size;
            for (start, stride) in starts.iter_mut().zip(dimension.strides) {
                *start += at * stride;
            }
        }
        starts
    })
}

/// The shape of a product of tensors: vectors count as a row on the left and a column on the right, and those dimensions
/// are then left out.
///
/// # Errors
///
/// [`Error::InvalidArgument`] with both shapes.
pub(super) fn result_shape(operation: &'static str, a: &Shape, b: &Shape) -> Result<Shape> {
    let wrong = |wanted: &str| Err(Error::invalid(operation, format!("shapes {a} and {b}"), wanted));
    let (Some(&inner), true) = (a.last(), b.rank() > 0) else {
        return wrong("two of at least one dimension each");
    };
    let rows_of_b = if b.rank() == 1 { b[0] } else { b[b.rank() - 2] };
    if inner != rows_of_b {
        return wrong("as many columns on the left as rows on the right");
    }
    let batch = |shape: &Shape| Shape::new(&shape[..shape.rank().saturating_sub(2)]);
    let Ok(batch) = batch(a)?.broadcast(&batch(b)?) else {
        return wrong("dimensions before the last two that are equal or 1, counted from the last");
    };
    let rows = if a.rank() > 1 { &a[a.rank() - 2..a.rank() - 1] } else { &[] };
    let columns = if b.rank() > 1 { &b[b.rank() - 1..] } else { &[] };
    Shape::new(&[&batch[..], rows, columns].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sizes: &[usize], strides: &[isize]) -> Layout {
        Layout::strided(sizes, strides, 1000).unwrap()
    }

    fn layout_of(sizes: &[usize], strides: &[isize]) -> Option<(bool, usize)> {
        storage_order(&of(sizes, strides)).map(|order| (order.transposed, order.leading))
    }

    #[test]
    fn rows_columns_and_lines_are_read_as_they_lie() {
        assert_eq!(layout_of(&[3, 4], &[4, 1]), Some((false, 4)));
        assert_eq!(layout_of(&[3, 4], &[9, 1]), Some((false, 9)));
        assert_eq!(layout_of(&[3, 4], &[1, 3]), Some((true, 3)));
        assert_eq!(layout_of(&[3, 4], &[1, 8]), Some((true, 8)));
        // A row and a column with steps: of one line the other stride is any.
        assert_eq!(layout_of(&[1, 4], &[77, 5]), Some((true, 5)));
        assert_eq!(layout_of(&[4, 1], &[5, 77]), Some((false, 5)));
        assert_eq!(layout_of(&[4, 1], &[1, 1]), Some((false, 1)));
        assert_eq!(layout_of(&[1, 1], &[-3, -4]), Some((false, 1)));
        // Rows and columns with steps, backwards, the same row again, rows that overlap.
        for strides in [[8, 2], [-4, 1], [4, -1], [0, 1], [2, 1], [1, 2]] {
            assert_eq!(layout_of(&[3, 4], &strides), None, "{strides:?}");
        }
        assert_eq!(layout_of(&[2, 3, 4], &[-12, 4, 1]), None);
        assert_eq!(layout_of(&[0, 3, 4], &[-12, 5, 7]), Some((false, 4)));
    }

    fn steps(a: &Layout, b: &Layout, c: &Layout) -> Vec<GemmStep> {
        steps_with(a, b, c, false)
    }

    fn steps_with(a: &Layout, b: &Layout, c: &Layout, has_row_bias: bool) -> Vec<GemmStep> {
        let layouts = [a, b, c];
        let order = layouts.map(|layout| storage_order(layout).unwrap());
        Matrices { layouts, order, conjugate: [false; 2], choice: None, has_row_bias }.steps().unwrap()
    }

    fn dense(sizes: &[usize]) -> Layout {
        Layout::contiguous(sizes).unwrap()
    }

    #[test]
    fn a_shared_right_side_makes_one_product_of_all_rows() {
        let made = steps(&dense(&[5, 6, 3, 4]), &dense(&[4, 7]), &dense(&[5, 6, 3, 7]));
        assert_eq!(made.len(), 1);
        assert_eq!((made[0].product.m(), made[0].product.count()), (90, 1));
        // Single rows too, even where they lie apart.
        let made = steps(&of(&[6, 1, 4], &[9, 4, 1]), &dense(&[4, 7]), &dense(&[6, 1, 7]));
        assert_eq!((made[0].product.m(), made[0].product.count()), (6, 1));
        assert_eq!(made[0].product, Product::new(6, 7, 4).leading(9, 7, 7));
        // Not where a number is added to each row of a matrix.
        let made = steps_with(&dense(&[6, 3, 4]), &dense(&[4, 7]), &dense(&[6, 3, 7]), true);
        assert_eq!((made[0].product.m(), made[0].product.count()), (3, 6));
        // Nor where the rows of two matrices do not follow each other, or A is read by columns.
        let made = steps(&of(&[6, 3, 4], &[20, 4, 1]), &dense(&[4, 7]), &dense(&[6, 3, 7]));
        assert_eq!((made[0].product.m(), made[0].product.count()), (3, 6));
        let made = steps(&of(&[6, 3, 4], &[12, 1, 3]), &dense(&[4, 7]), &dense(&[6, 3, 7]));
        assert_eq!((made[0].product.m(), made[0].product.count()), (3, 6));
    }

    #[test]
    fn one_column_is_computed_as_one_row() {
        // A batch of matrices times one vector: all rows at once, and the vector on the left.
        let made = steps(&dense(&[5, 3, 4]), &dense(&[4, 1]), &dense(&[5, 3, 1]));
        assert_eq!((made.len(), made[0].swapped), (1, true));
        let swapped = Product::new(1, 15, 4).b(Operation::Transpose).leading(4, 4, 15);
        assert_eq!(made[0].product, swapped.batch(1, 0, 0, 0));
        // A vector with steps stays a column.
        let made = steps(&dense(&[3, 4]), &of(&[4, 1], &[7, 1]), &dense(&[3, 1]));
        assert_eq!((made[0].product.operation_a(), made[0].swapped), (Operation::Transpose, true));
        // A column of a matrix is written as it is.
        let made = steps(&dense(&[3, 4]), &dense(&[4, 1]), &of(&[3, 1], &[8, 1]));
        assert_eq!(made[0].product, Product::new(3, 1, 4).leading(4, 1, 8));
    }

    #[test]
    fn a_result_that_lies_by_columns_is_the_transpose_of_one_that_does_not() {
        let made = steps(&dense(&[2, 3, 4]), &of(&[4, 5], &[1, 6]), &of(&[2, 3, 5], &[20, 1, 3]));
        let swapped = Product::new(5, 3, 4).b(Operation::Transpose).leading(6, 4, 3).batch(2, 0, 12, 20);
        assert_eq!(made, [GemmStep { product: swapped, starts: [0; 3], swapped: true }]);
    }

    #[test]
    fn batches_are_merged_and_the_longest_is_one_call() {
        let made = steps(&dense(&[5, 6, 3, 4]), &dense(&[5, 6, 4, 7]), &dense(&[5, 6, 3, 7]));
        assert_eq!((made.len(), made[0].product.count()), (1, 30));
        // A broadcast along the first, B along the second.
        let made = steps(&dense(&[6, 3, 4]), &dense(&[5, 1, 4, 7]), &dense(&[5, 6, 3, 7]));
        // B is shared by the six: they are rows of one product, five times.
        assert_eq!((made.len(), made[0].product.m(), made[0].product.count()), (1, 18, 5));
        let made = steps(&dense(&[5, 1, 3, 4]), &dense(&[6, 4, 7]), &dense(&[5, 6, 3, 7]));
        assert_eq!((made.len(), made[0].product.count()), (5, 6));
        assert_eq!(made[2].starts, [24, 0, 2 * 6 * 21]);
        assert_eq!(made[0].product, Product::new(3, 7, 4).leading(4, 7, 7).batch(6, 0, 28, 21));
    }

    #[test]
    fn shapes_meet_or_both_are_named() {
        let of = |a: &[usize], b: &[usize]| {
            result_shape("matmul", &Shape::new(a).unwrap(), &Shape::new(b).unwrap())
        };
        for (a, b, c) in [
            (&[3][..], &[3][..], &[][..]),
            (&[3], &[3, 4], &[4]),
            (&[2, 3], &[3], &[2]),
            (&[2, 3], &[3, 4], &[2, 4]),
            (&[5, 2, 3], &[3], &[5, 2]),
            (&[3], &[5, 3, 4], &[5, 4]),
            (&[7, 1, 2, 3], &[5, 3, 4], &[7, 5, 2, 4]),
            (&[0, 3], &[3, 4], &[0, 4]),
        ] {
            assert_eq!(&of(a, b).unwrap()[..], c, "{a:?} {b:?}");
        }
        for (a, b) in [
            (&[3][..], &[4][..]),
            (&[2, 3], &[2, 3]),
            (&[2, 3], &[2]),
            (&[4, 2, 3], &[5, 3, 2]),
            (&[], &[3]),
            (&[3], &[]),
        ] {
            let error = of(a, b).unwrap_err().to_string();
            let shapes = [a, b].map(|sizes| Shape::new(sizes).unwrap().to_string());
            assert!(shapes.iter().all(|shape| error.contains(shape)), "{error}");
        }
    }
}
