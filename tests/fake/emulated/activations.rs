//! Activations of epilogues and their derivatives by the emulated kernels of products, on a grid of arguments: each function of
//! [`Activation::ALL`] against the operation of tensors and its gradient in f64.

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::driver::Stream;
use selvedge::gemm::{Activation, Epilogue, GemmResult, Product, gemm_with};
use selvedge::nn::Variable;
use selvedge::{Device, Tensor};

use super::{
    ASYNC_F64, BULK_F32, Child, Number, Outcome, PERSISTENT_BF16, PERSISTENT_F16, SIMT, emulate, with_seeds,
};
use crate::support::Fake;

const ROWS: usize = 128;
const COLUMNS: usize = 64;
const DEPTH: usize = 64;

/// An element type: conversions, the product with its kernels, and the errors allowed: of a rounding, and relative to the argument of a function.
struct Float<T> {
    from: fn(f64) -> T,
    to: fn(T) -> f64,
    product: Product,
    unit: f64,
    of_argument: f64,
    has_derivatives: bool,
}

/// A function and its derivative of numbers, by operations of tensors.
fn reference(activation: Activation, x: &[f64]) -> Result<[Vec<f64>; 2], Box<dyn std::error::Error>> {
    let x = Variable::with_grad(Tensor::from_slice(x, &[x.len()], &Device::cpu())?)?;
    let value = match activation {
        Activation::Relu => x.relu()?,
        Activation::GeluTanh => x.gelu_tanh()?,
        Activation::Silu => x.silu()?,
        other => return Err(format!("no operation for {other:?}").into()),
    };
    value.sum_all()?.backward()?;
    let derivative = x.grad().ok_or("no gradient")?;
    Ok([value.tensor().to_vec()?, derivative.to_vec()?])
}

/// The arguments from -8 to 8, as the type holds them.
fn grid<T: Copy>(float: &Float<T>) -> Vec<T> {
    let count = ROWS * COLUMNS;
    (0..count).map(|place| (float.from)(16.0 * place as f64 / (count - 1) as f64 - 8.0)).collect()
}

fn product() -> Product {
    Product::new(ROWS, COLUMNS, DEPTH)
}

fn check<T: Number + GemmResult<T>>(stream: &Stream, float: &Float<T>) -> Outcome {
    let (one, zero) = (T::scalar(Complex::new(1, 0)), T::scalar(Complex::new(0, 0)));
    let grid = grid(float);
    let x: Vec<f64> = grid.iter().map(|&x| (float.to)(x)).collect();
    let (unit, nothing) = ((float.from)(1.0), (float.from)(0.0));
    // Row i of A is eᵢ for i below the depth; so the first rows of C are B. Each launch has `DEPTH` rows of the grid.
    let rows = |of: &dyn Fn(usize, usize) -> T| -> Vec<T> {
        (0..ROWS * DEPTH).map(|place| of(place / DEPTH, place % DEPTH)).collect()
    };
    for &activation in Activation::ALL {
        let wanted = reference(activation, &x)?;
        let product = float.product;
        let (mut values, mut derivatives) = (Vec::new(), Vec::new());
        let a = rows(&|row, column| if row == column { unit } else { nothing });
        for part in grid.chunks(DEPTH * COLUMNS) {
            let (a, b) = (stream.upload(&a)?, stream.upload(part)?);
            let mut c = stream.zeros::<T>(ROWS * COLUMNS)?;
            let epilogue = Epilogue::new().activation(activation);
            gemm_with::<T, T>(stream, &product, one, &a, &b, zero, &mut c, epilogue)?;
            values.extend_from_slice(&stream.download(&c)?[..part.len()]);
        }
        if float.has_derivatives {
            // All sums are 1.
            let a = stream.upload(&rows(&|_, column| if column == 0 { unit } else { nothing }))?;
            let b = stream.upload(&[unit; DEPTH * COLUMNS])?;
            let (at, mut c) = (stream.upload(&grid)?, stream.zeros::<T>(ROWS * COLUMNS)?);
            let epilogue = Epilogue::new().derivative(activation, &at);
            gemm_with::<T, T>(stream, &product, one, &a, &b, zero, &mut c, epilogue)?;
            derivatives = stream.download(&c)?;
        }
        for (name, found, wanted) in
            [("", &values, &wanted[0]), ("the derivative of ", &derivatives, &wanted[1])]
        {
            for ((found, wanted), x) in found.iter().zip(wanted).zip(&x) {
                let found = (float.to)(*found);
                let allowed = float.of_argument * x.abs() + float.unit * wanted.abs();
                if (found - wanted).abs() > allowed || found.is_nan() {
                    let of = format!("{name}{activation:?} at {x}");
                    return Err(format!("{of} is {found} in place of {wanted} within {allowed}").into());
                }
            }
        }
    }
    Ok(())
}

/// Child: 16-bit types by the fast paths, which approximate gelu and silu within 2⁻¹¹·⁹ of their argument before they round.
fn fast(fake: &Fake) -> Outcome {
    emulate(fake, &[PERSISTENT_BF16, PERSISTENT_F16])?;
    let (product, of_argument) = (product().with_algorithm("persistent/64".parse()?), 2.7e-4);
    with_seeds(1, |stream| {
        check(
            stream,
            &Float {
                from: bf16::from_f64,
                to: bf16::to_f64,
                product,
                unit: 1.0 / 256.0,
                of_argument,
                has_derivatives: true,
            },
        )?;
        check(
            stream,
            &Float {
                from: f16::from_f64,
                to: f16::to_f64,
                product,
                unit: 1.0 / 2048.0,
                of_argument,
                has_derivatives: true,
            },
        )
    })
}

/// Child: f32 and f64 by the general path.
fn general(fake: &Fake) -> Outcome {
    emulate(fake, &[BULK_F32, ASYNC_F64])?;
    with_seeds(1, |stream| {
        check(
            stream,
            &Float::<f32> {
                from: |x| x as f32,
                to: f64::from,
                product: product().by(SIMT),
                unit: 6e-8,
                of_argument: 5e-7,
                has_derivatives: false,
            },
        )?;
        check(
            stream,
            &Float::<f64> {
                from: |x| x,
                to: |x| x,
                product: product().by(SIMT),
                unit: 1.2e-16,
                of_argument: 1e-15,
                has_derivatives: false,
            },
        )
    })
}

pub static CHILDREN: &[(&str, Child)] = &[("fast_activations", fast), ("general_activations", general)];
