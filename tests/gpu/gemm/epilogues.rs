//! Epilogues by any engine, on a device and on the CPU: whole numbers exactly, gelu and silu within what their approximations
//! may be off; what must not be read or written is poisoned; and errors.

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::driver::Stream;
use selvedge::gemm::{
    Activation, Choice, Engine, Epilogue, GemmAlgorithm, HostEpilogue, Product, gemm_host_with, gemm_with,
};

use super::cases::{self, LAYOUTS, NOTHING, Parts};
use super::definition::Wholes;
use super::numbers::{Number, ResultOf, same};
use crate::support::{Numbers, Outcome};

/// Types that an epilogue can be applied to.
trait Real: Number {
    /// The number, rounded to this type.
    fn rounded(number: f64) -> Self;
    fn value(self) -> f64;
    /// The error allowed of gelu and silu, relative to their argument.
    const SIGMOID: f64;
}

macro_rules! reals {
    ($($type:ty, $from:expr, $to:expr, $sigmoid:expr;)*) => {$(
        impl Real for $type {
            const SIGMOID: f64 = $sigmoid;
            fn rounded(number: f64) -> $type {
                $from(number)
            }
            fn value(self) -> f64 {
                $to(self)
            }
        }
    )*};
}

reals! {
    f16, f16::from_f64, |x: f16| x.to_f64(), 1e-3;
    bf16, bf16::from_f64, |x: bf16| x.to_f64(), 8e-3;
    f32, |x| x as f32, f64::from, 2e-6;
    f64, |x| x, |x| x, 1e-14;
}

fn gelu(x: f64) -> f64 {
    let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
    0.5 * x * (1.0 + u.tanh())
}

/// The derivative of [`gelu`].
fn gelu_derivative(x: f64) -> f64 {
    let (factor, cubic) = ((2.0 / std::f64::consts::PI).sqrt(), 0.044_715);
    let u = factor * (x + cubic * x * x * x);
    let slope = factor * (1.0 + 3.0 * cubic * x * x);
    0.5 * (1.0 + u.tanh()) + 0.5 * x * (1.0 - u.tanh().powi(2)) * slope
}

/// x / (1 + e^-x), and its derivative.
fn silu(x: f64) -> [f64; 2] {
    let s = 1.0 / (1.0 + (-x).exp());
    [x * s, s + x * s * (1.0 - s)]
}

/// The operands of a product, with all elements that are not read or written poisoned.
struct Given<T, C> {
    product: Product,
    parts: Parts,
    alpha: i64,
    a: Vec<T>,
    b: Vec<T>,
    c: Vec<C>,
    bias: Vec<C>,
    residual: Vec<C>,
    aux: Vec<C>,
}

fn scalar<T: Number>(value: i64) -> T::Scalar {
    T::scalar(Complex::new(value, 0))
}

impl<T: Number, C: ResultOf<T>> Given<T, C> {
    /// C and aux, by an engine of the stream's device.
    fn on(&self, stream: &Stream, choice: Choice) -> selvedge::Result<[Vec<C>; 2]> {
        self.of(stream, &self.product.by(choice))
    }

    /// The same with one kernel configuration.
    fn with_algorithm(&self, stream: &Stream, algorithm: GemmAlgorithm) -> selvedge::Result<[Vec<C>; 2]> {
        self.of(stream, &self.product.with_algorithm(algorithm))
    }

    fn of(&self, stream: &Stream, product: &Product) -> selvedge::Result<[Vec<C>; 2]> {
        let (a, b) = (stream.upload(&self.a)?, stream.upload(&self.b)?);
        let (bias, residual) = (stream.upload(&self.bias)?, stream.upload(&self.residual)?);
        let (mut c, mut aux) = (stream.upload(&self.c)?, stream.upload(&self.aux)?);
        let parts = self.parts;
        let mut epilogue = Epilogue::new().activation(parts.activation);
        epilogue = match (parts.bias, parts.by_row) {
            (false, _) => epilogue,
            (true, true) => epilogue.bias_of_rows(&bias),
            (true, false) => epilogue.bias_of_columns(&bias),
        };
        if parts.aux {
            epilogue = epilogue.aux(&mut aux);
        }
        if parts.residual {
            epilogue = epilogue.residual(&residual);
        }
        if parts.derivative {
            epilogue = epilogue.derivative(parts.activation, &residual);
        }
        let (alpha, beta) = (scalar::<T>(self.alpha), scalar::<T>(parts.beta));
        gemm_with::<T, C>(stream, product, alpha, &a, &b, beta, &mut c, epilogue)?;
        Ok([stream.download(&c)?, stream.download(&aux)?])
    }

    /// As [`on`](Self::on), on the CPU.
    #[allow(dead_code, reason = "the suite of the device does not")]
    fn on_host(&self) -> selvedge::Result<[Vec<C>; 2]> {
        let (mut c, mut aux, parts) = (self.c.clone(), self.aux.clone(), self.parts);
        let mut epilogue = HostEpilogue::new().activation(parts.activation);
        epilogue = match (parts.bias, parts.by_row) {
            (false, _) => epilogue,
            (true, true) => epilogue.bias_of_rows(&self.bias),
            (true, false) => epilogue.bias_of_columns(&self.bias),
        };
        if parts.aux {
            epilogue = epilogue.aux(&mut aux);
        }
        if parts.residual {
            epilogue = epilogue.residual(&self.residual);
        }
        let (alpha, beta) = (scalar::<T>(self.alpha), scalar::<T>(parts.beta));
        gemm_host_with::<T, C>(&self.product, alpha, &self.a, &self.b, beta, &mut c, epilogue)?;
        Ok([c, aux])
    }
}

/// A product, or two in rows with gaps, whose epilogue has these parts.
fn check<T: Number, C: ResultOf<T> + Real>(
    (m, n, k): (usize, usize, usize),
    layout: usize,
    parts: Parts,
    batch: usize,
    run: impl FnOnce(&Given<T, C>) -> selvedge::Result<[Vec<C>; 2]>,
) -> Outcome {
    let mut numbers = Numbers((m + n + k) as u64);
    let mut whole = |count: usize| -> Vec<i64> { (0..count).map(|_| numbers.below(5) as i64 - 2).collect() };
    let (of_a, of_b) = LAYOUTS[layout];
    let leading = n + 8;
    let (a, b) = (whole(batch * m * k), whole(batch * k * n));
    let (c, residual, bias) = (whole(batch * m * leading), whole(batch * m * leading), whole(m.max(n)));
    let (leading_a, leading_b) =
        (if of_a.transposes() { m } else { k }, if of_b.transposes() { k } else { n });
    let product = Product::new(m, n, k).a(of_a).b(of_b).leading(leading_a, leading_b, leading).batch(
        batch,
        m * k,
        k * n,
        m * leading,
    );
    let place = |matrix: usize, row: usize, column: usize| (matrix * m + row) * leading + column;

    let stored = |values: &[i64], of: &dyn Fn(i64) -> f64| -> Vec<C> {
        let of_place = |(index, value): (usize, &i64)| match index % leading < n {
            true => <C as Real>::rounded(of(*value)),
            false => C::poison(),
        };
        values.iter().enumerate().map(of_place).collect()
    };
    let whole_value = |value: i64| value as f64;
    let pre_activation = |value: i64| cases::PRE_ACTIVATIONS[(value + 2) as usize];
    let poisoned = |values: &[i64], read: bool| -> Vec<C> {
        if read { stored(values, &whole_value) } else { vec![C::poison(); values.len()] }
    };
    let (mut wanted, mut wanted_aux) = (poisoned(&c, false), poisoned(&c, false));
    let mut allowed = vec![0.0; wanted.len()];
    let factor = |values: &[i64], (rows, columns): (usize, usize), transposed: bool| {
        Wholes::new((rows, columns), |row, column| {
            Complex::new(values[if transposed { column * rows + row } else { row * columns + column }], 0)
        })
    };
    for matrix in 0..batch {
        let left = factor(&a[matrix * m * k..], (m, k), of_a.transposes());
        let right = factor(&b[matrix * k * n..], (k, n), of_b.transposes());
        let mut sums = left.times(&right).into_iter();
        for row in 0..m {
            for column in 0..n {
                let sum = sums.next().ok_or("as many sums as places")?.re;
                let place = place(matrix, row, column);
                let mut x = (3 * sum + parts.beta * c[place]) as f64;
                if parts.bias {
                    x += bias[if parts.by_row { row } else { column }] as f64;
                }
                wanted_aux[place] = <C as Real>::rounded(x);
                let at = pre_activation(residual[place]);
                match parts.activation {
                    Activation::Relu if parts.derivative => x *= f64::from(u8::from(at > 0.0)),
                    Activation::GeluTanh if parts.derivative => {
                        allowed[place] = C::SIGMOID * x.abs();
                        x *= gelu_derivative(at);
                    }
                    Activation::Silu if parts.derivative => {
                        allowed[place] = C::SIGMOID * x.abs();
                        x *= silu(at)[1];
                    }
                    Activation::Relu => x = x.max(0.0),
                    Activation::Silu => {
                        allowed[place] = C::SIGMOID * x.abs();
                        x = silu(x)[0];
                    }
                    Activation::GeluTanh => {
                        allowed[place] = C::SIGMOID * x.abs();
                        x = gelu(x);
                    }
                    _ => {}
                }
                if parts.residual {
                    x += residual[place] as f64;
                    allowed[place] *= 2.0;
                }
                wanted[place] = <C as Real>::rounded(x);
            }
        }
    }

    let elements =
        |values: &[i64]| -> Vec<T> { values.iter().map(|value| T::of(Complex::new(*value, 0))).collect() };
    let length = if parts.by_row { m } else { n };
    let given = Given {
        product,
        parts,
        alpha: 3,
        a: elements(&a),
        b: elements(&b),
        c: poisoned(&c, parts.beta != 0),
        bias: bias[..length].iter().map(|value| <C as Real>::rounded(*value as f64)).collect(),
        residual: if parts.derivative {
            stored(&residual, &pre_activation)
        } else {
            poisoned(&residual, true)
        },
        aux: poisoned(&c, false),
    };
    let [found, aux] = run(&given).map_err(|error| format!("{product} of {}: {error}", T::DTYPE))?;

    for (index, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        let near = (found.value() - wanted.value()).abs() <= allowed[index];
        if !same(*found, *wanted) && !near {
            let what = format!("{product} of {} into {}, {parts:?}", T::DTYPE, C::DTYPE);
            return Err(format!("{what}: element {index} is {found:?}, wanted {wanted:?}").into());
        }
    }
    let unwritten = poisoned(&c, false);
    let wanted_aux = if parts.aux { &wanted_aux } else { &unwritten };
    if let Some(index) = aux.iter().zip(wanted_aux).position(|(found, wanted)| !same(*found, *wanted)) {
        let what = format!("{product} of {} into {}, {parts:?}", T::DTYPE, C::DTYPE);
        let (found, wanted) = (aux[index], wanted_aux[index]);
        return Err(format!("{what}: aux {index} is {found:?}, wanted {wanted:?}").into());
    }
    Ok(())
}

/// All epilogues with their numbers, from which their layouts follow.
pub fn all() -> Vec<(usize, Parts)> {
    cases::epilogues().into_iter().enumerate().collect()
}

/// Sizes that take tiles of more than 64 columns on all engines, that are divided along k, and that have many tiles.
pub fn every_part(stream: &Stream, engines: &[Engine], all: &[(usize, Parts)]) -> Outcome {
    for &(index, parts) in all {
        let layout = index % LAYOUTS.len();
        let simt = Choice::Only(Engine::Simt);
        check::<f32, f32>((130, 70, 24), layout, parts, 2, |given| given.on(stream, simt))?;
        check::<f64, f64>((33, 65, 9), layout, parts, 2, |given| given.on(stream, simt))?;
        if engines.contains(&Engine::Mma) {
            let by = Choice::Only(Engine::Mma);
            check::<f64, f64>((33, 65, 9), layout, parts, 2, |given| given.on(stream, by))?;
            check::<f64, f64>((130, 76, 20), layout, parts, 2, |given| given.on(stream, by))?;
        }
        for engine in engines {
            let by = Choice::Only(*engine);
            for size in cases::EPILOGUE_SIZES {
                let size = (size.0 / 8 * 8, size.1, size.2);
                check::<bf16, bf16>(size, layout, parts, 2, |given| given.on(stream, by))?;
                check::<bf16, f32>(size, layout, parts, 2, |given| given.on(stream, by))?;
                check::<f16, f16>(size, layout, parts, 2, |given| given.on(stream, by))?;
            }
        }
    }
    Ok(())
}

/// Products of few tiles whose k is divided: the reduction applies the epilogue.
pub fn of_long_k(stream: &Stream, all: &[(usize, Parts)]) -> Outcome {
    for &(index, parts) in all {
        let layout = index % LAYOUTS.len();
        let own = Choice::Own;
        check::<f32, f32>((16, 24, 1024), layout, parts, 1, |given| given.on(stream, own))?;
        check::<f64, f64>((9, 35, 1037), layout, parts, 1, |given| given.on(stream, own))?;
    }
    Ok(())
}

/// Persistent clusters: tiles of every width, whole ones and such that end within their columns, of which each cluster computes one, or
/// some two where 66 clusters have more than one each.
pub fn by_persistent_clusters(stream: &Stream, all: &[(usize, Parts)]) -> Outcome {
    for &(index, parts) in all {
        let layout = index % LAYOUTS.len();
        for algorithm in ["persistent/64", "persistent/128", "persistent/192", "persistent/256"] {
            let algorithm: GemmAlgorithm = algorithm.parse()?;
            let size = (136, 520, 200);
            check::<bf16, bf16>(size, layout, parts, 2, |given| given.with_algorithm(stream, algorithm))?;
            check::<f16, f16>(size, layout, parts, 1, |given| given.with_algorithm(stream, algorithm))?;
        }
        if parts.activation == Activation::GeluTanh && parts.beta == 0 {
            let (size, algorithm) = ((16, 67 * 256 + 8, 72), "persistent/256".parse()?);
            check::<bf16, bf16>(size, layout, parts, 1, |given| given.with_algorithm(stream, algorithm))?;
        }
    }
    Ok(())
}

/// Sums times the derivative of an activation; what has none is an error that names the reason.
pub fn derivatives(stream: &Stream) -> Outcome {
    for (index, (size, algorithm)) in cases::SIZES_OF_DERIVATIVES.into_iter().enumerate() {
        for (at, parts) in cases::DERIVATIVES.into_iter().enumerate() {
            let (layout, algorithm): (usize, GemmAlgorithm) =
                ((index + at) % LAYOUTS.len(), algorithm.parse()?);
            let batch = if index < 4 { 2 } else { 1 };
            check::<bf16, bf16>(size, layout, parts, batch, |given| given.with_algorithm(stream, algorithm))?;
            if index < 4 {
                check::<f16, f16>(size, layout, parts, 1, |given| given.with_algorithm(stream, algorithm))?;
            }
        }
    }
    let [_, gelu, _] = cases::DERIVATIVES;
    let by = |engine| Choice::Only(engine);
    let refused = |outcome: Outcome, reason: &str| {
        let text = outcome.err().and_then(|failed| failed.message().map(str::to_owned)).unwrap_or_default();
        if text.contains(reason) { Ok(()) } else { Err(format!("wanted '{reason}': {text}")) }
    };
    let biased = Parts { bias: true, ..gelu };
    let size = (136, 64, 72);
    let wgmma = by(Engine::Wgmma);
    refused(
        check::<bf16, bf16>(size, 0, biased, 1, |given| given.on(stream, wgmma)),
        "derivative beside a bias",
    )?;
    refused(
        check::<bf16, f32>(size, 0, gelu, 1, |given| given.on(stream, wgmma)),
        "derivative beside a bias",
    )?;
    let narrow = (136, 72, 72);
    refused(check::<bf16, bf16>(narrow, 0, gelu, 1, |given| given.on(stream, wgmma)), "64 does not divide")?;
    refused(
        check::<bf16, bf16>(size, 0, gelu, 1, |given| given.on(stream, by(Engine::Mma))),
        "no derivative",
    )?;
    refused(
        check::<f32, f32>(size, 0, gelu, 1, |given| given.on(stream, by(Engine::Simt))),
        "no derivative",
    )?;
    Ok(())
}

/// Every type on the CPU, in tiles of which there are several, without depth too.
#[allow(dead_code, reason = "the suite of the device does not")]
pub fn on_the_host() -> Outcome {
    for (index, parts) in cases::epilogues().into_iter().enumerate() {
        let layout = index % LAYOUTS.len();
        for size in cases::EPILOGUE_SIZES_OF_THE_CPU {
            check::<f16, f16>(size, layout, parts, 2, Given::on_host)?;
            check::<f16, f32>(size, layout, parts, 2, Given::on_host)?;
            check::<bf16, bf16>(size, layout, parts, 2, Given::on_host)?;
            check::<bf16, f32>(size, layout, parts, 2, Given::on_host)?;
            check::<f32, f32>(size, layout, parts, 2, Given::on_host)?;
            check::<f64, f64>(size, layout, parts, 2, Given::on_host)?;
        }
    }
    Ok(())
}

/// By cuBLASLt, every type that has epilogues there, one product and two.
pub fn by_cublas(stream: &Stream, sizes: &[(usize, usize, usize)]) -> Outcome {
    let by = Choice::Only(Engine::Cublas);
    for (index, parts) in cases::epilogues_of_cublas().into_iter().enumerate() {
        for (at, &size) in sizes.iter().enumerate() {
            let (layout, batch) = ((index + at) % LAYOUTS.len(), 1 + (index + at) / 2 % 2);
            check::<f16, f16>(size, layout, parts, batch, |given| given.on(stream, by))?;
            check::<f16, f32>(size, layout, parts, batch, |given| given.on(stream, by))?;
            check::<bf16, bf16>(size, layout, parts, batch, |given| given.on(stream, by))?;
            check::<bf16, f32>(size, layout, parts, batch, |given| given.on(stream, by))?;
            check::<f32, f32>(size, layout, parts, batch, |given| given.on(stream, by))?;
            if parts.activation != Activation::GeluTanh {
                check::<f64, f64>(size, layout, parts, batch, |given| given.on(stream, by))?;
            }
        }
    }
    // With one row any leading dimension works, for aux too.
    let aux = Parts { aux: true, activation: Activation::GeluTanh, ..NOTHING };
    check::<bf16, bf16>((1, 12, 3), 0, aux, 1, |given| given.on(stream, by))
}

/// An epilogue that cuBLASLt does not support is an error that names the part, and nothing is written.
pub fn beyond_cublas(stream: &Stream) -> Outcome {
    let gelu = Parts { activation: Activation::GeluTanh, ..NOTHING };
    for (parts, what) in [
        (Parts { bias: true, by_row: true, ..NOTHING }, "its epilogues have no bias of rows"),
        (Parts { residual: true, ..gelu }, "no residual after an activation"),
        (Parts { residual: true, beta: 1, ..NOTHING }, "no residual beside a C that is read"),
        (Parts { aux: true, ..NOTHING }, "no aux without gelu"),
        (Parts { aux: true, activation: Activation::Relu, ..NOTHING }, "no aux without gelu"),
        (Parts { activation: Activation::Silu, ..NOTHING }, "its epilogues have no silu"),
    ] {
        let by = Choice::Only(Engine::Cublas);
        let failed = check::<f32, f32>((8, 16, 4), 0, parts, 1, |given| given.on(stream, by));
        let text = failed.err().and_then(|failed| failed.message().map(str::to_owned)).unwrap_or_default();
        assert!(text.contains(what), "{parts:?}: {text}");
    }
    let by = Choice::Only(Engine::Cublas);
    let failed = check::<f64, f64>((8, 16, 4), 0, gelu, 1, |given| given.on(stream, by));
    let text = failed.err().and_then(|failed| failed.message().map(str::to_owned)).unwrap_or_default();
    assert!(text.contains("no gelu of f64 to all its digits"), "{text}");
    // Rows of 20 elements, and matrices that are that far apart.
    let aux = Parts { aux: true, ..gelu };
    for size in [(8, 12, 4), (8, 13, 4)] {
        let by = Choice::Only(Engine::Cublas);
        let failed = check::<f16, f16>(size, 0, aux, 1, |given| given.on(stream, by));
        let text = failed.err().and_then(|failed| failed.message().map(str::to_owned)).unwrap_or_default();
        assert!(text.contains("multiples of 8 elements and 16 bytes"), "{size:?}: {text}");
    }
    let numbers = stream.upload(&[1.0f32; 32])?;
    let mut c = stream.zeros::<f32>(16)?;
    let product = Product::new(4, 4, 4).by(Choice::Only(Engine::Cublas));
    let bias = numbers.slice(1..)?;
    let epilogue = Epilogue::new().bias_of_columns(&bias);
    let failed = gemm_with(stream, &product, 1.0, &numbers, &numbers, 0.0, &mut c, epilogue);
    let text = failed.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains("no bias that does not begin at a multiple of 16 bytes"), "{text}");
    assert_eq!(stream.download(&c)?, [0.0; 16]);
    Ok(())
}
