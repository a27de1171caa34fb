//! Random numbers, against sums in twice the precision of f64.
//!
//! The bound (Higham, "Accuracy and Stability of Numerical Algorithms", 3.5): |found - exact| is at most
//! gamma (|alpha| |A||B| + |beta||C|) in every element, with gamma = (k + 4) u for k sums and the scaling, u the unit of the
//! type that is summed in; and half a unit of the result's type for its rounding. The tensor cores cut where others round.

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::driver::Stream;
use selvedge::gemm::{Choice, Engine, Operation, Product, gemm, gemm_host};

use super::cases::{BOUNDED_ALIGNED_SIZES, BOUNDED_SIZES, LAYOUTS};
use super::numbers::{Number, ResultOf};
use crate::support::{Numbers, Outcome};

/// A number in twice the precision of f64, as an unevaluated sum (Dekker 1971, Knuth 1969).
#[derive(Clone, Copy, Default)]
struct Double(f64, f64);

impl Double {
    fn add(self, x: f64) -> Double {
        let sum = self.0 + x;
        let part = sum - self.0;
        Double(sum, self.1 + ((self.0 - (sum - part)) + (x - part)))
    }

    fn add_product(self, x: f64, y: f64) -> Double {
        let product = x * y;
        let rest = x.mul_add(y, -product);
        let sum = self.add(product);
        Double(sum.0, sum.1 + rest)
    }

    fn value(self) -> f64 {
        self.0 + self.1
    }
}

/// Types with a real and an imaginary part in f64, exactly.
pub trait Rounded: Number {
    const UNIT: f64;
    fn parts(self) -> (f64, f64);
    fn from_parts(parts: (f64, f64)) -> Self;
}

macro_rules! rounded {
    ($($type:ty, $unit:expr, $parts:expr, $from:expr;)*) => {$(
        impl Rounded for $type {
            const UNIT: f64 = $unit;
            fn parts(self) -> (f64, f64) {
                $parts(self)
            }
            fn from_parts(parts: (f64, f64)) -> $type {
                $from(parts)
            }
        }
    )*};
}

/// Half of the least f16: what the rounding of tiny results to it may be off.
const MIN_F16: f64 = 1.0 / (1u64 << 25) as f64;
const F32: f64 = 1.0 / (1u64 << 24) as f64;
const F64: f64 = 1.0 / (1u64 << 53) as f64;

rounded! {
    f16, 1.0 / 2048.0, |x: f16| (x.to_f64(), 0.0), |x: (f64, f64)| f16::from_f64(x.0);
    bf16, 1.0 / 256.0, |x: bf16| (x.to_f64(), 0.0), |x: (f64, f64)| bf16::from_f64(x.0);
    f32, F32, |x: f32| (f64::from(x), 0.0), |x: (f64, f64)| x.0 as f32;
    f64, F64, |x: f64| (x, 0.0), |x: (f64, f64)| x.0;
    Complex<f32>, F32, |x: Complex<f32>| (f64::from(x.re), f64::from(x.im)), |x: (f64, f64)| Complex::new(x.0 as f32, x.1 as f32);
    Complex<f64>, F64, |x: Complex<f64>| (x.re, x.im), |x: (f64, f64)| Complex::new(x.0, x.1);
}

/// Sums of several uniform numbers: nearly normal, so that terms cancel.
pub fn random<T: Rounded>(numbers: &mut Numbers, count: usize) -> Vec<T> {
    let mut one = || (0..4).map(|_| f64::from(numbers.next()) / f64::from(u32::MAX) - 0.5).sum::<f64>();
    (0..count).map(|_| T::from_parts((one(), one()))).collect()
}

/// The rounding unit of the type in which the product is summed.
fn sum_unit<T: Rounded>(choice: Choice) -> f64 {
    let narrow = T::UNIT > F32;
    match choice {
        // Cut to 2^-22 of the largest term, at worst.
        Choice::Only(Engine::Wgmma | Engine::Mma) if narrow => 4.0 * F32,
        _ if narrow => F32,
        // A complex product has two of each.
        _ => 2.0 * T::UNIT,
    }
}

fn check<T: Rounded, C: ResultOf<T> + Rounded>(
    stream: &Stream,
    size: (usize, usize, usize),
    operations: (Operation, Operation),
    choice: Choice,
) -> Outcome {
    check_by::<T, C>(
        &choice.to_string(),
        size,
        operations,
        sum_unit::<T>(choice),
        |product, alpha, a, b, beta, c| {
            let (a, b, mut on_c) = (stream.upload(a)?, stream.upload(b)?, stream.upload(c)?);
            gemm::<T, C>(stream, &product.by(choice), alpha, &a, &b, beta, &mut on_c)?;
            c.copy_from_slice(&stream.download(&on_c)?);
            Ok(())
        },
    )
}

/// `unit` is what the sums' errors are counted in.
fn check_by<T: Rounded, C: ResultOf<T> + Rounded>(
    name: &str,
    (m, n, k): (usize, usize, usize),
    (of_a, of_b): (Operation, Operation),
    unit: f64,
    multiply: impl FnOnce(&Product, T::Scalar, &[T], &[T], T::Scalar, &mut [C]) -> selvedge::Result<()>,
) -> Outcome {
    let mut numbers = Numbers(k as u64);
    let (a, b) = (random::<T>(&mut numbers, m * k), random::<T>(&mut numbers, k * n));
    let c = random::<C>(&mut numbers, m * n);
    let (alpha, beta) = (3.0, -2.0);
    let whole = |x: f64| T::scalar(Complex::new(x as i64, 0));
    let product = Product::new(m, n, k).a(of_a).b(of_b);
    let mut found = c.clone();
    multiply(&product, whole(alpha), &a, &b, whole(beta), &mut found)?;

    let at_a = |i: usize, p: usize| a[if of_a.transposes() { p * m + i } else { i * k + p }].parts();
    let at_b = |p: usize, j: usize| b[if of_b.transposes() { j * k + p } else { p * n + j }].parts();
    let mut worst = 0.0f64;
    for i in 0..m {
        for j in 0..n {
            let (mut re, mut im, mut size) = (Double::default(), Double::default(), 0.0);
            for p in 0..k {
                let ((x, xi), (y, yi)) = (at_a(i, p), at_b(p, j));
                re = re.add_product(x, y).add_product(-xi, yi);
                im = im.add_product(x, yi).add_product(xi, y);
                size += (x.abs() + xi.abs()) * (y.abs() + yi.abs());
            }
            let ((c_re, c_im), (f_re, f_im)) = (c[i * n + j].parts(), found[i * n + j].parts());
            // Scaling by 3 and -2 keeps the double's precision far below the bound's.
            let wanted = (alpha * re.value() + beta * c_re, alpha * im.value() + beta * c_im);
            let size = alpha * size + beta.abs() * (c_re.abs() + c_im.abs());
            let allowed = (k + 4) as f64 * unit * size;
            for (found, wanted) in [(f_re, wanted.0), (f_im, wanted.1)] {
                let allowed = allowed * (1.0 + C::UNIT) + C::UNIT * wanted.abs() + MIN_F16;
                let error = (found - wanted).abs();
                worst = worst.max(error / allowed);
                if error.is_nan() || error > allowed {
                    let what = format!("{m}x{n}x{k} of {} into {} by {name}", T::DTYPE, C::DTYPE);
                    return Err(
                        format!("{what}: [{i}][{j}] is {found:e}, wanted {wanted:e} +- {allowed:e}").into()
                    );
                }
            }
        }
    }
    println!("{m}x{n}x{k} of {} into {} by {name}: {worst:.3} of the bound", T::DTYPE, C::DTYPE);
    Ok(())
}

pub fn every_type(stream: &Stream, engines: &[Engine]) -> Outcome {
    let by = Choice::Only(Engine::Simt);
    for operations in LAYOUTS {
        for &size in &BOUNDED_SIZES[..3] {
            check::<f16, f16>(stream, size, operations, by)?;
            check::<f16, f32>(stream, size, operations, by)?;
            check::<bf16, bf16>(stream, size, operations, by)?;
            check::<bf16, f32>(stream, size, operations, by)?;
            check::<f32, f32>(stream, size, operations, by)?;
            check::<f64, f64>(stream, size, operations, by)?;
            check::<Complex<f32>, Complex<f32>>(stream, size, operations, by)?;
            check::<Complex<f64>, Complex<f64>>(stream, size, operations, by)?;
        }
        for (size, engine) in BOUNDED_ALIGNED_SIZES
            .into_iter()
            .flat_map(|size| engines.iter().map(move |engine| (size, *engine)))
        {
            let by = Choice::Only(engine);
            check::<f16, f16>(stream, size, operations, by)?;
            check::<f16, f32>(stream, size, operations, by)?;
            check::<bf16, bf16>(stream, size, operations, by)?;
            check::<bf16, f32>(stream, size, operations, by)?;
            if engine == Engine::Mma {
                check::<f64, f64>(stream, size, operations, by)?;
                check::<Complex<f64>, Complex<f64>>(stream, size, operations, by)?;
            }
        }
    }
    Ok(())
}

/// Every type that rounds, on the CPU.
#[allow(dead_code, reason = "the suite of the device does not")]
pub fn on_the_host() -> Outcome {
    fn check<T: Rounded, C: ResultOf<T> + Rounded>(
        size: (usize, usize, usize),
        operations: (Operation, Operation),
    ) -> Outcome {
        let unit = sum_unit::<T>(Choice::Auto);
        check_by::<T, C>("the CPU", size, operations, unit, |product, alpha, a, b, beta, c| {
            gemm_host::<T, C>(product, alpha, a, b, beta, c)
        })
    }
    for operations in LAYOUTS {
        for size in BOUNDED_SIZES {
            check::<f16, f16>(size, operations)?;
            check::<f16, f32>(size, operations)?;
            check::<bf16, bf16>(size, operations)?;
            check::<bf16, f32>(size, operations)?;
            check::<f32, f32>(size, operations)?;
            check::<f64, f64>(size, operations)?;
            check::<Complex<f32>, Complex<f32>>(size, operations)?;
            check::<Complex<f64>, Complex<f64>>(size, operations)?;
        }
    }
    Ok(())
}

/// The types whose bound tells TF32 from f32.
#[allow(dead_code, reason = "the suite of the CPU does not")]
pub fn by_cublas(stream: &Stream) -> Outcome {
    let by = Choice::Only(Engine::Cublas);
    for operations in LAYOUTS {
        for &size in &BOUNDED_SIZES[..2] {
            check::<f32, f32>(stream, size, operations, by)?;
            check::<f64, f64>(stream, size, operations, by)?;
            check::<Complex<f32>, Complex<f32>>(stream, size, operations, by)?;
            check::<Complex<f64>, Complex<f64>>(stream, size, operations, by)?;
        }
    }
    Ok(())
}

fn bits<T: Rounded>(stream: &Stream, product: Product) -> selvedge::Result<Vec<u8>> {
    let mut numbers = Numbers(5);
    let (m, n, k) = (product.m(), product.n(), product.k());
    let a = stream.upload(&random::<T>(&mut numbers, m * k))?;
    let b = stream.upload(&random::<T>(&mut numbers, k * n))?;
    let mut c = stream.zeros::<T>(m * n)?;
    let one = T::scalar(Complex::new(1, 0));
    gemm::<T, T>(stream, &product, one, &a, &b, T::scalar(Complex::new(0, 0)), &mut c)?;
    Ok(bytemuck::cast_slice(&stream.download(&c)?).to_vec())
}

pub fn two_runs(stream: &Stream, engines: &[Engine]) -> Outcome {
    for operations in LAYOUTS {
        // The second one is divided along k.
        for product in [Product::new(520, 264, 1000), Product::new(16, 1024, 4096)] {
            let product = product.a(operations.0).b(operations.1);
            for engine in engines {
                let product = product.by(Choice::Only(*engine));
                assert!(bits::<bf16>(stream, product)? == bits::<bf16>(stream, product)?, "bf16, {product}");
            }
            assert!(bits::<f32>(stream, product)? == bits::<f32>(stream, product)?, "f32, {product}");
            assert!(bits::<f64>(stream, product)? == bits::<f64>(stream, product)?, "f64, {product}");
            let c128 = || bits::<Complex<f64>>(stream, product);
            assert!(c128()? == c128()?, "c128, {product}");
        }
    }
    Ok(())
}
