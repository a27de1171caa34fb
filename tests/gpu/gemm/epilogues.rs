//! Epilogues: whole numbers exactly, gelu within what its approximations may be off; and errors.

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::Error;
use selvedge::driver::Stream;
use selvedge::gemm::{Activation, Choice, Engine, Epilogue, Product, gemm_with};

use super::case::LAYOUTS;
use super::numbers::{Number, ResultOf, same};
use crate::support::{Numbers, Outcome, assert_error};

/// Types that an epilogue can be applied to.
trait Real: Number {
    /// The number, rounded to this type.
    fn rounded(number: f64) -> Self;
    fn value(self) -> f64;
    /// What gelu may be off, relative to the number it is applied to.
    const GELU: f64;
}

macro_rules! reals {
    ($($type:ty, $from:expr, $to:expr, $gelu:expr;)*) => {$(
        impl Real for $type {
            const GELU: f64 = $gelu;
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

#[derive(Clone, Copy, Debug)]
struct Parts {
    bias: bool,
    by_row: bool,
    kept: bool,
    activation: Activation,
    residual: bool,
    beta: i64,
}

/// Two products in rows with gaps, whose epilogue has these parts.
fn check<T: Number, C: ResultOf<T> + Real>(
    stream: &Stream,
    (m, n, k): (usize, usize, usize),
    layout: usize,
    parts: Parts,
    choice: Choice,
) -> Outcome {
    let mut numbers = Numbers((m + n + k) as u64);
    let mut whole = |count: usize| -> Vec<i64> { (0..count).map(|_| numbers.below(5) as i64 - 2).collect() };
    let (of_a, of_b) = LAYOUTS[layout];
    let (leading, batch) = (n + 8, 2);
    let (a, b) = (whole(batch * m * k), whole(batch * k * n));
    let (c, residual, bias) = (whole(batch * m * leading), whole(batch * m * leading), whole(m.max(n)));
    let (leading_a, leading_b) =
        (if of_a.transposes() { m } else { k }, if of_b.transposes() { k } else { n });
    let product = Product::new(m, n, k)
        .a(of_a)
        .b(of_b)
        .leading(leading_a, leading_b, leading)
        .batch(batch, m * k, k * n, m * leading)
        .by(choice);
    let place = |matrix: usize, row: usize, column: usize| (matrix * m + row) * leading + column;

    let poisoned = |values: &[i64], read: bool| -> Vec<C> {
        let mut elements = vec![C::poison(); values.len()];
        for (index, value) in values.iter().enumerate() {
            if read && index % leading < n {
                elements[index] = <C as Real>::rounded(*value as f64);
            }
        }
        elements
    };
    let (mut wanted, mut wanted_kept) = (poisoned(&c, false), poisoned(&c, false));
    let mut allowed = vec![0.0; wanted.len()];
    let step = |transposed: bool, across: usize| if transposed { (1, across) } else { (k, 1) };
    let (a_steps, b_steps) = (step(of_a.transposes(), m), step(!of_b.transposes(), n));
    for matrix in 0..batch {
        for row in 0..m {
            for column in 0..n {
                let (mut at_a, mut at_b) =
                    (matrix * m * k + row * a_steps.0, matrix * k * n + column * b_steps.0);
                let mut sum = 0;
                for _ in 0..k {
                    sum += a[at_a] * b[at_b];
                    (at_a, at_b) = (at_a + a_steps.1, at_b + b_steps.1);
                }
                let place = place(matrix, row, column);
                let mut x = (3 * sum + parts.beta * c[place]) as f64;
                if parts.bias {
                    x += bias[if parts.by_row { row } else { column }] as f64;
                }
                wanted_kept[place] = <C as Real>::rounded(x);
                match parts.activation {
                    Activation::Relu => x = x.max(0.0),
                    Activation::Gelu => {
                        allowed[place] = C::GELU * x.abs();
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

    let upload = |values: &[i64]| {
        stream.upload(&values.iter().map(|value| T::of(Complex::new(*value, 0))).collect::<Vec<T>>())
    };
    let (on_a, on_b) = (upload(&a)?, upload(&b)?);
    let mut on_c = stream.upload(&poisoned(&c, parts.beta != 0))?;
    let mut on_kept = stream.upload(&poisoned(&c, false))?;
    let on_residual = stream.upload(&poisoned(&residual, true))?;
    let length = if parts.by_row { m } else { n };
    let bias: Vec<C> = bias[..length].iter().map(|value| <C as Real>::rounded(*value as f64)).collect();
    let on_bias = stream.upload(&bias)?;
    let mut epilogue = Epilogue::new().activation(parts.activation);
    if parts.bias {
        epilogue =
            if parts.by_row { epilogue.bias_of_rows(&on_bias) } else { epilogue.bias_of_columns(&on_bias) };
    }
    if parts.kept {
        epilogue = epilogue.keep(&mut on_kept);
    }
    if parts.residual {
        epilogue = epilogue.residual(&on_residual);
    }
    let scalar = |value: i64| T::scalar(Complex::new(value, 0));
    gemm_with::<T, C>(stream, &product, scalar(3), &on_a, &on_b, scalar(parts.beta), &mut on_c, epilogue)
        .map_err(|error| format!("{product} of {}: {error}", T::DTYPE))?;

    let found = stream.download(&on_c)?;
    for (index, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        let near = (found.value() - wanted.value()).abs() <= allowed[index];
        if !same(*found, *wanted) && !near {
            let what = format!("{product} of {} into {}, {parts:?}", T::DTYPE, C::DTYPE);
            return Err(format!("{what}: element {index} is {found:?}, wanted {wanted:?}").into());
        }
    }
    let kept = stream.download(&on_kept)?;
    let unkept = poisoned(&c, false);
    let wanted_kept = if parts.kept { &wanted_kept } else { &unkept };
    if let Some(index) = kept.iter().zip(wanted_kept).position(|(found, wanted)| !same(*found, *wanted)) {
        let what = format!("{product} of {} into {}, {parts:?}", T::DTYPE, C::DTYPE);
        let (found, wanted) = (kept[index], wanted_kept[index]);
        return Err(format!("{what}: kept {index} is {found:?}, wanted {wanted:?}").into());
    }
    Ok(())
}

const NOTHING: Parts =
    Parts { bias: false, by_row: false, kept: false, activation: Activation::None, residual: false, beta: 0 };

/// Each part alone, and all together.
fn combinations() -> Vec<Parts> {
    let all = Parts { bias: true, kept: true, residual: true, beta: -2, ..NOTHING };
    vec![
        Parts { bias: true, ..NOTHING },
        Parts { bias: true, by_row: true, ..NOTHING },
        Parts { activation: Activation::Relu, ..NOTHING },
        Parts { residual: true, ..NOTHING },
        Parts { bias: true, kept: true, activation: Activation::Gelu, ..NOTHING },
        Parts { activation: Activation::Relu, ..all },
        Parts { activation: Activation::Gelu, by_row: true, ..all },
    ]
}

/// `wide` is a size that takes tiles of more than 64 columns on all engines, `narrow` one that is divided along k.
pub fn every_part(stream: &Stream, engines: &[Engine]) -> Outcome {
    for (index, parts) in combinations().into_iter().enumerate() {
        let layout = index % LAYOUTS.len();
        let simt = Choice::Only(Engine::Simt);
        check::<f32, f32>(stream, (130, 70, 24), layout, parts, simt)?;
        check::<f64, f64>(stream, (33, 65, 9), layout, parts, simt)?;
        for engine in engines {
            let by = Choice::Only(*engine);
            for size in [(136, 72, 40), (16, 136, 328), (300, 1048, 40)] {
                let size = (size.0 / 8 * 8, size.1, size.2);
                check::<bf16, bf16>(stream, size, layout, parts, by)?;
                check::<bf16, f32>(stream, size, layout, parts, by)?;
                check::<f16, f16>(stream, size, layout, parts, by)?;
            }
        }
    }
    Ok(())
}

/// Buffers that are too short or shared, and types without an order: nothing is launched.
pub fn bad_ones(stream: &Stream) -> Outcome {
    let a = stream.upload(&[1.0f32; 12])?;
    let (short, long) = (stream.upload(&[1.0f32; 2])?, stream.upload(&[1.0f32; 9])?);
    let mut c = stream.zeros::<f32>(9)?;
    let product = Product::new(3, 3, 4);
    let mut run =
        |epilogue: Epilogue<'_, f32>| gemm_with(stream, &product, 1.0, &a, &a, 0.0, &mut c, epilogue);
    assert_error!(run(Epilogue::new().bias_of_columns(&short)), Error::InvalidArgument { found, .. } if found.starts_with("the bias of 2"));
    assert_error!(run(Epilogue::new().bias_of_rows(&short)), Error::InvalidArgument { found, .. } if found.starts_with("the bias of 2"));
    assert_error!(run(Epilogue::new().residual(&short)), Error::InvalidArgument { found, .. } if found.starts_with("the residual of 2"));
    let mut kept = stream.zeros::<f32>(8)?;
    assert_error!(run(Epilogue::new().keep(&mut kept)), Error::InvalidArgument { found, .. } if found.starts_with("what is kept of 8"));
    run(Epilogue::new().residual(&long))?;
    assert_eq!(stream.download(&c)?, [5.0; 9]);
    let numbers = stream.upload(&[1i32; 12])?;
    let mut whole = stream.zeros::<i32>(9)?;
    let epilogue = Epilogue::new().activation(Activation::Relu);
    let failed = gemm_with(stream, &product, 1, &numbers, &numbers, 0, &mut whole, epilogue);
    assert_error!(failed, Error::InvalidArgument { found, .. } if found.contains("an epilogue needs a result of f16"));
    Ok(())
}
