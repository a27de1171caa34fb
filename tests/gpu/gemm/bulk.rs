//! Products of f32 and c64 bit by bit: sums of fma in the order that the table of engines tells, whether bulk copies bring
//! the operands in or threads copy them.

use num_complex::Complex;
use selvedge::driver::Stream;
use selvedge::gemm::{Choice, DeviceProperties, Engine, Operation, Plan, Product, gemm};

use super::cases::LAYOUTS;
use super::numbers::{Number, ResultOf};
use crate::support::{Numbers, Outcome};

type Parts = Complex<f32>;

/// A type of which a number is a real and perhaps an imaginary part of `f32`.
trait OfParts: Number + ResultOf<Self> {
    fn of_parts(parts: Parts) -> Self;
    fn parts(self) -> Parts;
}

impl OfParts for f32 {
    fn of_parts(parts: Parts) -> f32 {
        parts.re
    }
    fn parts(self) -> Parts {
        Complex::new(self, 0.0)
    }
}

impl OfParts for Parts {
    fn of_parts(parts: Parts) -> Parts {
        parts
    }
    fn parts(self) -> Parts {
        self
    }
}

fn random<T: OfParts>(numbers: &mut Numbers, count: usize) -> Vec<T> {
    let mut part = || numbers.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0;
    (0..count).map(|_| T::of_parts(Complex::new(part(), part()))).collect()
}

/// The sum of products with k ascending, of `parts` sums that take 8 k in turn.
fn sum(factors: impl Iterator<Item = (Parts, Parts)>, parts: usize) -> Parts {
    let mut sums = vec![Complex::new(0.0f32, 0.0); parts];
    for (k, (x, y)) in factors.enumerate() {
        let sum = &mut sums[k / 8 % parts];
        let re = (-x.im).mul_add(y.im, x.re.mul_add(y.re, sum.re));
        *sum = Complex::new(re, x.im.mul_add(y.re, x.re.mul_add(y.im, sum.im)));
    }
    sums.into_iter().reduce(|first, second| first + second).unwrap_or_default()
}

/// Some rows of a product whose operands' rows begin at multiples of `multiple` elements and no more. Bulk copies, where the
/// device `has` them, bring in rows that begin at multiples of 16 bytes, or of which there is one alone.
fn check<T: OfParts>(
    stream: &Stream,
    (m, n, k): (usize, usize, usize),
    (of_a, of_b): (Operation, Operation),
    multiple: usize,
    has: bool,
) -> Outcome {
    let mut numbers = Numbers((m + n + k) as u64);
    let stored = |operation: Operation, rows: usize, columns: usize| {
        let (rows, columns) = if operation.transposes() { (columns, rows) } else { (rows, columns) };
        let leading = columns.next_multiple_of(multiple);
        (rows, if multiple == 1 && leading % 2 == 0 { leading + 1 } else { leading })
    };
    let ((rows_a, leading_a), (rows_b, leading_b)) = (stored(of_a, m, k), stored(of_b, k, n));
    let (a, b) =
        (random::<T>(&mut numbers, rows_a * leading_a), random::<T>(&mut numbers, rows_b * leading_b));
    let product =
        Product::new(m, n, k).a(of_a).b(of_b).leading(leading_a, leading_b, n).by(Choice::Only(Engine::Simt));
    let (on_a, on_b) = (stream.upload(&a)?, stream.upload(&b)?);
    let mut c = stream.upload(&vec![T::poison(); m * n])?;
    let (one, zero) = (T::scalar(Complex::new(1, 0)), T::scalar(Complex::new(0, 0)));
    gemm::<T, T>(stream, &product, one, &on_a, &on_b, zero, &mut c)?;
    let c = stream.download(&c)?;

    let plan = Plan::explain(&product, T::DTYPE, T::DTYPE, DeviceProperties::from_device(&stream.device())?)?;
    // Of a small tile of f32 two slices of a block divide k.
    let slices = if size_of::<T>() == 4 && plan.kernel().ends_with("small") { 2 } else { 1 };
    // Of few tiles and a long k slices are products of their own.
    let depths = if plan.slices().is_empty() { vec![k] } else { plan.slices() };
    let at = |matrix: &[T], row: usize, column: usize, leading: usize, operation: Operation| {
        let (row, column) = if operation.transposes() { (column, row) } else { (row, column) };
        let parts = matrix[row * leading + column].parts();
        if operation.conjugates() { parts.conj() } else { parts }
    };
    for row in (0..m).step_by(m / 7 + 1).chain([m - 1]) {
        for column in 0..n {
            let factors = |k: usize| (at(&a, row, k, leading_a, of_a), at(&b, k, column, leading_b, of_b));
            let mut first = 0;
            let partials = depths.iter().map(|depth| {
                first += depth;
                sum((first - depth..first).map(factors), slices)
            });
            let wanted = partials.reduce(|before, next| before + next).unwrap_or_default();
            let found = c[row * n + column].parts();
            let same = |found: f32, wanted: f32| found.to_bits() == wanted.to_bits();
            let real = size_of::<T>() == 4;
            assert!(
                same(found.re, wanted.re) && (real || same(found.im, wanted.im)),
                "{} of {product}: C[{row}][{column}] is {found}, not {wanted}",
                plan.kernel()
            );
        }
    }
    let bulk = has && (multiple > 1 || (rows_a == 1 && rows_b == 1));
    assert_eq!(plan.kernel().starts_with("gemm_bulk"), bulk, "{} of {product}", plan.kernel());
    Ok(())
}

/// In small tiles and large ones, in every layout, with conjugation where the type has it.
pub fn bits(stream: &Stream) -> Outcome {
    let bulk = DeviceProperties::from_device(&stream.device())?.capability == (9, 0);
    let adjoint = Operation::Adjoint;
    let conjugating = [(adjoint, Operation::None), (Operation::Transpose, adjoint), (adjoint, adjoint)];
    for size in [(200, 136, 100), (129, 65, 8), (1, 1, 37), (2100, 2052, 84), (100, 72, 1500)] {
        for operations in LAYOUTS {
            for multiple in [4, 1] {
                check::<f32>(stream, size, operations, multiple, bulk)?;
            }
        }
        for operations in LAYOUTS.into_iter().chain(conjugating) {
            for multiple in [2, 1] {
                check::<Parts>(stream, size, operations, multiple, bulk)?;
            }
        }
    }
    Ok(())
}
