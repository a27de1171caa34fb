//! Integers and exact numbers: sections 7 and 8.

use selvedge::srt::{
    Constant, GoldenExact, GoldenInteger, GoldenTensor, Rational, SymExpr, fib_mod, fib_mod_batch, fibonacci,
    fibonacci_batch, fibonacci_batch_f64, fibonacci_sequence, generation_batch, golden_recursion,
    golden_recursion_inverse, lucas, lucas_batch, lucas_batch_f64, pisano, winding_recursion_batch,
    winding_recursion_inverse_batch,
};
use selvedge::{DType, Result, Tensor};

use super::{Case, CaseDevice, Class, Numbers, numbers, on_device, on_host, tensor, vector};

fn integers(device: &CaseDevice, elements: &[i64]) -> Result<Tensor> {
    Tensor::from_slice(elements, &[elements.len()], device)
}

/// A pair of integers as the numbers of its parts: numerator and denominator of a, then of b.
fn parts(numbers: &[GoldenExact]) -> Numbers {
    let of =
        |x: &GoldenExact| [x.a().numerator(), x.a().denominator(), x.b().numerator(), x.b().denominator()];
    numbers.iter().flat_map(of).collect::<Vec<i128>>().into()
}

pub fn cases() -> Vec<Case> {
    let mut cases = of_integers();
    cases.extend(of_exact_numbers());
    cases
}

fn of_integers() -> Vec<Case> {
    let t0 = Class::T0;
    vec![
        on_device(
            "golden_recursion",
            "7.1",
            t0,
            |d| {
                let v = vector(d, &[1.0, 2.0])?;
                numbers([&golden_recursion(&v)?, &golden_recursion_inverse(&v)?])
            },
            vec![1.618033988749895, 3.23606797749979, 0.6180339887498949, 1.2360679774997898],
        )
        .in_f32(),
        on_device(
            "winding_recursion",
            "7.1",
            t0,
            |d| {
                let n =
                    integers(d, &[0, 1, 2, 3, 4, 5, 10, -1, -5, 2584, 102_334_155, 100_000_000_000_000_000])?;
                numbers([&winding_recursion_batch(&n)?.check()?])
            },
            vec![0i128, 1, 3, 4, 6, 8, 16, -2, -9, 4180, 165_580_140, 161_803_398_874_989_484],
        ),
        on_device(
            "winding_recursion_inverse",
            "7.1",
            t0,
            |d| {
                let n = integers(d, &[0, 1, 2, 3, 5, 8, -1, -5])?;
                numbers([&winding_recursion_inverse_batch(&n)?.check()?])
            },
            vec![0i128, 0, 1, 1, 3, 4, -1, -4],
        ),
        on_host(
            "fibonacci, lucas",
            "7.2",
            t0,
            || Ok(vec![fibonacci::<i128>(184)?, fibonacci(-10)?, lucas(-5)?].into()),
            vec![127_127_879_743_834_334_146_972_278_486_287_885_163_i128, -55, -11],
        ),
        on_device(
            "fibonacci_batch",
            "7.2",
            t0,
            |d| numbers([&fibonacci_batch(&integers(d, &[10, 50, 92])?)?.check()?]),
            vec![55i128, 12_586_269_025, 7_540_113_804_746_346_429],
        ),
        on_device(
            "lucas_batch",
            "7.2",
            t0,
            |d| numbers([&lucas_batch(&integers(d, &[0, 1, 10, 50, 90])?)?.check()?]),
            vec![2i128, 1, 123, 28_143_753_123, 6_440_026_026_380_244_498],
        ),
        on_device(
            "fibonacci_batch_f64, lucas_batch_f64",
            "7.2",
            t0,
            |d| {
                let k = integers(d, &[10, 50])?;
                numbers([&fibonacci_batch_f64(&k)?, &lucas_batch_f64(&k)?])
            },
            vec![55.0, 12_586_269_025.0, 123.0, 28_143_753_123.0],
        ),
        on_device(
            "fibonacci_sequence",
            "7.3",
            t0,
            |d| numbers([&fibonacci_sequence(8, DType::I64, d)?]),
            vec![0i128, 1, 1, 2, 3, 5, 8, 13],
        ),
        on_device(
            "fib_mod",
            "7.3",
            t0,
            |d| {
                let k = Tensor::from_slice(&[10u64, 50, 92], &[3], d)?;
                let mut found = Vec::new();
                for k in [10, 50, 92] {
                    found.push(i128::from(fib_mod(k, 1_000_007)?));
                }
                match numbers([&fib_mod_batch(&k, 1_000_007)?])? {
                    Numbers::Integers(batch) => found.extend(batch),
                    Numbers::Floats(_) => found.clear(),
                }
                Ok(found.into())
            },
            [55i128, 12_586_269_025, 7_540_113_804_746_346_429].map(|f| f % 1_000_007).repeat(2),
        ),
        on_host(
            "pisano",
            "7.3",
            t0,
            || Ok((1..=16).map(|m| Ok(pisano(m)?.into())).collect::<Result<Vec<i128>>>()?.into()),
            vec![1i128, 3, 8, 6, 20, 24, 16, 12, 24, 60, 10, 24, 28, 48, 40, 24],
        ),
        on_device(
            "generation_batch",
            "7.4",
            t0,
            |d| {
                let largest = [0i64, 1, 2, 3, 4, 5, 6, 7, 11, 12];
                let rows: Vec<i64> = largest.into_iter().flat_map(|n| [0, -n, n.min(1), 0]).collect();
                numbers([&generation_batch(&Tensor::from_slice(&rows, &[10, 4], d)?)?])
            },
            vec![0i128, 1, 2, 3, 3, 4, 4, 5, 5, 6],
        ),
    ]
}

/// q as an expression.
fn q_formula() -> SymExpr {
    let of = SymExpr::from;
    let (phi, e) = (of(Constant::Phi), of(Constant::E));
    (phi.clone() * 2 + e / (phi.pow(2) * 2)) / (phi.pow(4) * of(Constant::EStar))
}

/// Γ(1/4)² + π (π - 1) + 35/12 e^-π + 55/72 q⁴, which misses E* by 9.7e-11.
fn decomposition() -> SymExpr {
    let (pi, q) = (SymExpr::from(Constant::Pi), SymExpr::from(Constant::Q));
    SymExpr::from(ratio(1, 4)).gamma().pow(2)
        + pi.clone() * (pi.clone() - 1)
        + SymExpr::from(ratio(35, 12)) * (-pi).exp()
        + SymExpr::from(ratio(55, 72)) * q.pow(4)
}

/// A row program without inputs, of one row.
fn evaluated(expression: &SymExpr, device: &CaseDevice) -> Result<Numbers> {
    numbers([&expression.compile()?.run_rows(&tensor(device, &[1, 0], &[])?)?])
}

fn of_exact_numbers() -> Vec<Case> {
    let t0 = Class::T0;
    vec![
        on_host(
            "GoldenExact",
            "8.1",
            t0,
            || {
                let (x, y) = (GoldenExact::from((2, 3)), GoldenExact::from((1, -1)));
                let (norm, trace) = (x.norm()?, x.trace()?);
                let numbers = [
                    x.checked_mul(y)?,
                    GoldenExact::new(norm, trace),
                    x.checked_div(y)?,
                    GoldenExact::from((2, 1)).inverse()?,
                    GoldenExact::sqrt5().checked_pow(2)?,
                ];
                Ok(parts(&numbers))
            },
            parts(&[
                (-1, -2).into(),
                (1, 7).into(),
                (-3, -5).into(),
                GoldenExact::new(ratio(3, 5), ratio(-1, 5)),
                (5, 0).into(),
            ]),
        ),
        on_device(
            "GoldenTensor",
            "8.1",
            t0,
            |d| {
                let of = |a, b| GoldenTensor::from_slice(&[GoldenInteger::new(a, b)], &[1], d);
                let (x, y) = (of(2, 3)?, of(1, -1)?);
                let product = x.mul(&y)?.check()?;
                numbers([product.a(), product.b(), &x.norm()?.check()?, &x.trace()?.check()?])
            },
            vec![-1i128, -2, 1, 7],
        ),
        // Within two units in the last place of q, and 4e-15 of E*.
        on_device(
            "SymExpr, q",
            "8.2",
            Class::Relative(-13),
            |d| evaluated(&q_formula(), d),
            0.02739514691969615,
        )
        .within(0.0, 2.0 / (1u64 << 58) as f64),
        on_device(
            "SymExpr, exp(pi) - pi",
            "8.2",
            Class::Relative(-13),
            |d| evaluated(&(SymExpr::from(Constant::Pi).exp() - Constant::Pi), d),
            19.999099979189475,
        )
        .within(0.0, 4e-15),
        on_device(
            "SymExpr, decomposition with Γ",
            "8.2",
            Class::Relative(-13),
            |d| evaluated(&decomposition(), d),
            19.99909997928626,
        )
        .within(1e-13, 0.0),
    ]
}

fn ratio(numerator: i128, denominator: i128) -> Rational {
    // The denominators of the table are not 0.
    Rational::new(numerator, denominator).unwrap_or(Rational::ZERO)
}
