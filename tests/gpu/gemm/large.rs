//! Products that are too large for the definition: whole numbers, checked by C x = A (B x) with a random x (Freivalds 1977),
//! exactly. A wrong element escapes with the chance that the errors of its row cancel.

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::driver::Stream;
use selvedge::gemm::{Choice, DeviceProperties, Engine, GemmAlgorithm, Plan, Product, gemm};
use selvedge::types::DType;

use super::cases::LAYOUTS;
use super::numbers::{Number, ResultOf};
use crate::support::{Numbers, Outcome, assert_all};

fn small(numbers: &mut Numbers, count: usize) -> Vec<i64> {
    (0..count).map(|_| numbers.below(5) as i64 - 2).collect()
}

/// Rows of op(matrix) times x.
fn times(
    matrix: &[i64],
    (rows, columns, leading): (usize, usize, usize),
    transposed: bool,
    x: &[i64],
) -> Vec<i64> {
    let mut result = vec![0; rows];
    if transposed {
        for (column, x) in x.iter().enumerate().take(columns) {
            let stored = &matrix[column * leading..][..rows];
            result.iter_mut().zip(stored).for_each(|(sum, value)| *sum += value * x);
        }
    } else {
        for (row, sum) in result.iter_mut().enumerate() {
            *sum = matrix[row * leading..][..columns].iter().zip(x).map(|(value, x)| value * x).sum();
        }
    }
    result
}

fn check<T>(stream: &Stream, size: (usize, usize, usize), multiple: usize, choice: Choice) -> Outcome
where
    T: Number,
    f32: ResultOf<T>,
{
    check_in::<T>(stream, size, multiple, choice, None)
}

/// The rows of the operands begin at multiples of `multiple` elements; with that kernel configuration, where one is given.
fn check_in<T>(
    stream: &Stream,
    (m, n, k): (usize, usize, usize),
    multiple: usize,
    choice: Choice,
    algorithm: Option<GemmAlgorithm>,
) -> Outcome
where
    T: Number,
    f32: ResultOf<T>,
{
    let mut numbers = Numbers((m + n + k) as u64);
    for (of_a, of_b) in LAYOUTS {
        let stored = |transposed: bool, rows: usize, columns: usize| {
            let (rows, columns) = if transposed { (columns, rows) } else { (rows, columns) };
            (rows, columns.next_multiple_of(multiple))
        };
        let (rows_a, leading_a) = stored(of_a.transposes(), m, k);
        let (rows_b, leading_b) = stored(of_b.transposes(), k, n);
        let (a, b) = (small(&mut numbers, rows_a * leading_a), small(&mut numbers, rows_b * leading_b));
        let x = small(&mut numbers, n);
        let bx = times(&b, (k, n, leading_b), of_b.transposes(), &x);
        let wanted = times(&a, (m, k, leading_a), of_a.transposes(), &bx);

        let upload = |values: &[i64]| {
            stream.upload(&values.iter().map(|value| T::of(Complex::new(*value, 0))).collect::<Vec<T>>())
        };
        let (on_a, on_b) = (upload(&a)?, upload(&b)?);
        let (one, zero) = (T::scalar(Complex::new(1, 0)), T::scalar(Complex::new(0, 0)));
        let product = Product::new(m, n, k).a(of_a).b(of_b).leading(leading_a, leading_b, n).by(choice);
        let product = algorithm.map_or(product, |algorithm| product.with_algorithm(algorithm));
        let mut c = stream.upload(&vec![f32::NAN; m * n])?;
        gemm::<T, f32>(stream, &product, one, &on_a, &on_b, zero, &mut c)?;
        let c = stream.download(&c)?;
        for (row, wanted) in wanted.iter().enumerate() {
            let found: f64 = c[row * n..][..n].iter().zip(&x).map(|(c, x)| f64::from(*c) * *x as f64).sum();
            if found != *wanted as f64 {
                return Err(format!("{product} of {} by {choice}: row {row} is wrong", T::DTYPE).into());
            }
        }
        // Rounded at the store, it is the same.
        let mut narrow = stream.upload(&vec![T::poison(); m * n])?;
        gemm::<T, T>(stream, &product, one, &on_a, &on_b, zero, &mut narrow)?;
        let narrow = stream.download(&narrow)?;
        let differs = |(wide, narrow): &(&f32, &T)| T::of(Complex::new(**wide as i64, 0)) != **narrow;
        if let Some(place) = c.iter().zip(&narrow).position(|pair| differs(&pair)) {
            return Err(format!("{product} of {} by {choice}: element {place}, rounded", T::DTYPE).into());
        }
    }
    Ok(())
}

/// Products by every engine and kernel configuration, more tiles than blocks, and sizes that are no multiple of anything.
pub fn products(stream: &Stream, engines: &[Engine]) -> Outcome {
    let wgmma = engines.contains(&Engine::Wgmma);
    let properties = DeviceProperties::from_device(&stream.device())?;
    for size in [
        (300, 200, 500),
        (300, 200, 2000),
        (16, 1023, 2000),
        (700, 760, 3000),
        (1400, 1501, 2000),
        (1000, 1000, 500),
        (1025, 1100, 333),
        (2600, 2500, 200),
        // In medium and in large tiles of `mma`, of which the last ones begin inside of those before.
        (1528, 1400, 72),
        (2600, 2504, 200),
        (4097, 4099, 129),
    ] {
        if wgmma {
            let by = Choice::Only(Engine::Wgmma);
            check::<bf16>(stream, size, 8, by)?;
            check::<f16>(stream, size, 8, by)?;
        }
        if engines.contains(&Engine::Mma) {
            check::<bf16>(stream, size, 8, Choice::Only(Engine::Mma))?;
            check::<f16>(stream, size, 1, Choice::Only(Engine::Mma))?;
        }
        check::<bf16>(stream, size, 8, Choice::Only(Engine::Simt))?;
        check::<f32>(stream, size, 8, Choice::Auto)?;
    }
    if wgmma {
        // Rows that begin anywhere are copied first; of the second, in pairs of elements.
        for size in [(1025, 1027, 333), (1026, 1030, 334)] {
            check::<bf16>(stream, size, 1, Choice::Only(Engine::Wgmma))?;
            check::<f16>(stream, size, 1, Choice::Only(Engine::Wgmma))?;
        }
    }
    // Every width of a tile; of those that divide the last round, those whose round an H200's pairs can divide.
    for (algorithm, divided) in [
        ("persistent/64", false),
        ("persistent/128", false),
        ("persistent/192", false),
        ("persistent/256", false),
        ("persistent/64/stream-k", true),
        ("persistent/192/stream-k", true),
        ("persistent/256/stream-k", true),
        ("split-k/128x16x1", false),
        ("split-k/128x32x2/swapped", false),
        ("split-k/128x64x3", false),
        ("split-k/64x64x2", false),
        ("split-k/64x128x1/swapped", false),
        ("split-k/128x128x4/swapped", false),
        ("split-k/128x256x2", false),
    ] {
        if !wgmma || (divided && properties.multiprocessors != 132) {
            continue;
        }
        let (m, n, k) = (700, 760, 3000);
        let by = Choice::Only(Engine::Wgmma);
        let product = Product::new(m, n, k).by(by).with_algorithm(algorithm.parse()?);
        let plan = Plan::explain(&product, DType::BF16, DType::BF16, properties)?;
        // Of 128x64x3 the last is no size of the tile.
        let sizes = algorithm.split('/').nth(1).unwrap_or_default();
        let tile = sizes.rsplit_once('x').map_or(sizes, |(tile, _)| tile);
        assert!(plan.kernel().ends_with(&format!("_{tile}")), "{algorithm}: {plan}");
        assert_eq!(plan.to_string().contains("divide the k of the last"), divided, "{algorithm}: {plan}");
        check_in::<bf16>(stream, (m, n, k), 8, by, Some(algorithm.parse()?))?;
    }
    Ok(())
}

/// A of more elements than 32 bits count with a sign: its last rows are others than the first.
pub fn operands(stream: &Stream, engines: &[Engine]) -> Outcome {
    let (m, n, k) = (32_784, 8, 65_536);
    let mut a = stream.uninitialized::<bf16>(m * k)?;
    stream.fill(&mut a, bf16::from_f32(1.0))?;
    stream.fill(&mut a.slice_mut((m - 1) * k..)?, bf16::from_f32(-2.0))?;
    let b = stream.upload(&vec![bf16::from_f32(0.5); k * n])?;
    for choice in engines.iter().map(|engine| Choice::Only(*engine)) {
        let mut c = stream.upload(&vec![f32::NAN; m * n])?;
        gemm::<bf16, f32>(stream, &Product::new(m, n, k).by(choice), 1.0, &a, &b, 0.0, &mut c)?;
        let c = stream.download(&c)?;
        assert_all(&c[..(m - 1) * n], 32_768.0, "all rows but the last");
        assert_all(&c[(m - 1) * n..], -65_536.0, "the last row");
    }
    Ok(())
}
