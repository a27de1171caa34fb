//! Products of f64 and c128 bit by bit: sums of fma in the order that the table of engines tells.

use num_complex::Complex;
use selvedge::driver::Stream;
use selvedge::gemm::{Choice, DeviceProperties, Engine, Operation, Plan, Product, gemm};
use selvedge::types::DType;

use super::bounds::{Rounded, random};
use super::cases::LAYOUTS;
use crate::support::{Numbers, Outcome};

/// k that the tensor cores add of real by real parts before those of imaginary parts.
const TOGETHER: usize = 8;

/// The parts of a row times a column.
fn sum(row: &[(f64, f64)], column: &[(f64, f64)], complex: bool) -> (f64, f64) {
    let (mut re, mut im) = (0.0, 0.0);
    for (xs, ys) in row.chunks(TOGETHER).zip(column.chunks(TOGETHER)) {
        for ((x, _), (y, yi)) in xs.iter().zip(ys) {
            (re, im) = (x.mul_add(*y, re), x.mul_add(*yi, im));
        }
        for ((_, xi), (y, yi)) in xs.iter().zip(ys).filter(|_| complex) {
            (re, im) = ((-xi).mul_add(*yi, re), xi.mul_add(*y, im));
        }
    }
    (re, im)
}

fn bits((re, im): (f64, f64)) -> (u64, u64) {
    (re.to_bits(), im.to_bits())
}

/// Sizes that take every tile, by the multiprocessors of an H200.
pub const SIZES: [(usize, usize, usize); 3] = [(70, 65, 100), (700, 600, 21), (1535, 1405, 21)];
/// The tiles that they take, of f64 and c128.
const TILES: [[&str; 2]; 3] = [["small", "small"], ["medium", "large"], ["large", "large"]];

/// The same, of conjugated numbers.
pub fn conjugated(operation: Operation) -> Operation {
    if operation.transposes() { Operation::Adjoint } else { Operation::Conjugate }
}

/// Some rows of a product whose operands begin `start` elements into their buffers, in rows with so large a gap.
pub fn check<T: Rounded>(
    stream: &Stream,
    (m, n, k): (usize, usize, usize),
    (of_a, of_b): (Operation, Operation),
    (start, gap): (usize, usize),
    engine: Engine,
) -> Outcome {
    let mut numbers = Numbers((m + n + k) as u64);
    let (rows_a, columns_a) = if of_a.transposes() { (k, m) } else { (m, k) };
    let (rows_b, columns_b) = if of_b.transposes() { (n, k) } else { (k, n) };
    let (leading_a, leading_b) = (columns_a + gap, columns_b + gap);
    let a = random::<T>(&mut numbers, start + rows_a * leading_a);
    let b = random::<T>(&mut numbers, start + rows_b * leading_b);
    let product =
        Product::new(m, n, k).a(of_a).b(of_b).leading(leading_a, leading_b, n).by(Choice::Only(engine));
    let (on_a, on_b) = (stream.upload(&a)?, stream.upload(&b)?);
    let mut c = stream.upload(&vec![T::poison(); m * n])?;
    let (one, zero) = (T::scalar(Complex::new(1, 0)), T::scalar(Complex::new(0, 0)));
    gemm::<T, T>(stream, &product, one, &on_a.slice(start..)?, &on_b.slice(start..)?, zero, &mut c)?;
    let c = stream.download(&c)?;

    let seen = |element: T, operation: Operation| {
        let (re, im) = element.parts();
        (re, if operation.conjugates() { -im } else { im })
    };
    let at = |row: usize, column: usize, leading: usize, operation: Operation| {
        let (row, column) = if operation.transposes() { (column, row) } else { (row, column) };
        start + row * leading + column
    };
    let columns: Vec<Vec<(f64, f64)>> =
        (0..n).map(|j| (0..k).map(|p| seen(b[at(p, j, leading_b, of_b)], of_b)).collect()).collect();
    // All rows of a warp's instruction, and some of every tile.
    for i in (0..m).filter(|i| *i < 16 || i % 29 == 0 || i + 1 == m) {
        let row: Vec<(f64, f64)> = (0..k).map(|p| seen(a[at(i, p, leading_a, of_a)], of_a)).collect();
        for (j, column) in columns.iter().enumerate() {
            let (wanted, found) = (sum(&row, column, T::DTYPE == DType::C128), c[i * n + j].parts());
            if bits(wanted) != bits(found) {
                let what = format!("{product} of {}, {start} and {gap} beyond: [{i}][{j}]", T::DTYPE);
                return Err(format!("{what} is {found:?}, wanted {wanted:?}").into());
            }
        }
    }
    Ok(())
}

/// Every tile and layout, with what begins at multiples of 16 bytes and what does not; complex operands conjugated too.
pub fn bits_are_those_of_fma(stream: &Stream) -> Outcome {
    let properties = DeviceProperties::from_device(&stream.device())?;
    for (size, tiles) in SIZES.into_iter().zip(TILES) {
        for (of_a, of_b) in LAYOUTS {
            for (dtype, tile) in [DType::F64, DType::C128].into_iter().zip(tiles) {
                let product = Product::new(size.0, size.1, size.2).a(of_a).b(of_b);
                let plan = Plan::explain(&product, dtype, dtype, properties)?;
                let wanted = properties.multiprocessors != 132 || plan.kernel().ends_with(tile);
                assert!(wanted && plan.engine() == Engine::Mma, "{plan}");
            }
            for place in [(0, 0), (1, 0), (0, 1), (0, 3)] {
                check::<f64>(stream, size, (of_a, of_b), place, Engine::Mma)?;
                // Ordinary arithmetic has the same order.
                check::<f64>(stream, size, (of_a, of_b), place, Engine::Simt)?;
            }
            for a in [of_a, conjugated(of_a)] {
                for b in [of_b, conjugated(of_b)] {
                    check::<Complex<f64>>(stream, size, (a, b), (0, 0), Engine::Mma)?;
                }
            }
        }
    }
    for k in [1, 7, 8, 9, 15, 16, 17, 31, 48, 300] {
        for operations in LAYOUTS {
            check::<f64>(stream, (33, 31, k), operations, (0, 0), Engine::Mma)?;
            check::<Complex<f64>>(stream, (31, 33, k), operations, (1, 1), Engine::Mma)?;
        }
    }
    Ok(())
}
