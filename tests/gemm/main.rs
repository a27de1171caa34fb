//! Matrix products on the CPU, by the shared table (tests/cases/products.rs) and the bounds of the device suite: whole numbers exactly, with every layout, gap,
//! start, batch and odd size; random ones within the bound of backward error analysis. Memory that must not be read or
//! written is poisoned.

#[path = "../gpu/gemm/bounds.rs"]
#[allow(dead_code, reason = "the rest is the device suite's")]
mod bounds;
#[path = "../gpu/gemm/case.rs"]
#[allow(dead_code, reason = "the rest is the device suite's")]
mod case;
#[path = "../cases/products.rs"]
mod cases;
#[path = "../gpu/gemm/definition.rs"]
mod definition;
#[path = "../gpu/gemm/epilogues.rs"]
#[allow(dead_code, reason = "the rest is the device suite's")]
mod epilogues;
#[path = "../gpu/gemm/numbers.rs"]
mod numbers;

mod support;

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::Error;
use selvedge::gemm::{Activation, HostEpilogue, Product, gemm_host, gemm_host_with};

use cases::{Case, for_each_dtype};
use support::Outcome;

/// Every pair of types that are multiplied and stored.
fn every_type(case: Case) -> Outcome {
    for_each_dtype!(all, T, C => case.check_host::<T, C>()?);
    Ok(())
}

#[track_caller]
fn holds(outcome: Outcome) {
    if let Err(failed) = outcome {
        panic!("{}", failed.message().unwrap_or("failed"));
    }
}

#[test]
fn every_type_multiplies_whole_numbers_exactly() {
    for case in cases::layouts_of(cases::SEVERAL_TILES) {
        holds(every_type(case));
    }
}

#[test]
fn odd_sizes_in_every_layout() {
    for (index, size) in cases::odd_sizes().into_iter().enumerate() {
        for (at, case) in cases::layouts_of(size).into_iter().enumerate() {
            holds(case.check_host::<f32, f32>());
            // The others take turns: the definition takes its time.
            holds(match (index + at) % 5 {
                0 => case.check_host::<bf16, bf16>(),
                1 => case.check_host::<i8, i8>(),
                2 => case.check_host::<i64, i64>(),
                3 => case.check_host::<f64, f64>(),
                _ => case.check_host::<Complex<f64>, Complex<f64>>(),
            });
        }
    }
}

#[test]
fn gaps_starts_and_batches() {
    for case in cases::batches_of(cases::BATCHED) {
        holds(every_type(case.unaligned()));
    }
}

#[test]
fn alpha_and_beta() {
    for case in cases::SCALED_SIZES.into_iter().flat_map(cases::factors_of) {
        holds(every_type(case));
        holds(every_type(case.real()));
    }
}

#[test]
fn conjugates() {
    for case in cases::CONJUGATED_SIZES.into_iter().flat_map(cases::conjugates_of) {
        holds(case.check_host::<Complex<f32>, Complex<f32>>());
        holds(case.check_host::<Complex<f64>, Complex<f64>>());
        holds(case.check_host::<f32, f32>());
        holds(case.check_host::<bf16, bf16>());
    }
}

#[test]
fn integers_wrap() {
    let case = cases::wrapping();
    holds(every_type(Case { alpha: (1, 0), beta: (0, 0), ..case }));
    holds(case.check_host::<u8, u8>());
    holds(case.check_host::<i16, i16>());
    holds(case.check_host::<i32, i32>());
    holds(case.check_host::<u32, u32>());
    holds(case.check_host::<i64, i64>());
    let mut c = [0u64];
    gemm_host(&Product::new(1, 1, 2), 1, &[u64::MAX, 1 << 63], &[u64::MAX, 3], 0, &mut c).unwrap();
    assert_eq!(c, [(1 << 63) + 1]);
}

#[test]
fn errors_are_within_their_bound() {
    holds(bounds::on_the_host());
}

/// Of narrow floats the sum is rounded once, however long it is: 2048 ones and as many again are not 2048, as they are
/// where a sum is rounded to f16.
#[test]
fn narrow_sums_are_rounded_once() {
    let ones = vec![f16::ONE; 4096];
    let mut c = [f16::ZERO];
    gemm_host(&Product::new(1, 1, 4096), 1.0, &ones, &ones, 0.0, &mut c).unwrap();
    assert_eq!(c[0].to_f32(), 4096.0);
    gemm_host(&Product::new(1, 1, 4096), 0.5, &ones, &ones, 1.0, &mut c).unwrap();
    assert_eq!(c[0].to_f32(), 6144.0);
}

#[test]
fn epilogues_are_exact() {
    holds(epilogues::on_the_host());
}

/// Each number's epilogue by itself: what is exact has these bits on every device.
#[test]
fn epilogues_are_single_operations_in_the_sums_type() {
    let run = |x: f32, activation: Activation, residual: f32| {
        let mut c = [0.0f32];
        let epilogue = HostEpilogue::new().activation(activation).residual(std::slice::from_ref(&residual));
        gemm_host_with(&Product::new(1, 1, 1), 1.0, &[x], &[1.0], 0.0, &mut c, epilogue).unwrap();
        c[0]
    };
    // NaN stays.
    assert!(run(f32::NAN, Activation::Relu, 0.0).is_nan());
    assert_eq!(run(-3.0, Activation::Relu, 0.5), 0.5);
    // Far from 0 gelu is x and 0, without detours through infinity.
    assert_eq!(run(50.0, Activation::GeluTanh, 0.0), 50.0);
    assert_eq!(run(-50.0, Activation::GeluTanh, 0.0), 0.0);
    assert!(run(f32::NAN, Activation::GeluTanh, 0.0).is_nan());
    assert_eq!(run(100.0, Activation::Silu, 0.0), 100.0);
    assert_eq!(run(-100.0, Activation::Silu, 0.5), 0.5);
    assert!(run(f32::NAN, Activation::Silu, 0.0).is_nan());
    for activation in [Activation::GeluTanh, Activation::Silu] {
        assert!(run(f32::NEG_INFINITY, activation, 0.0).is_nan());
    }
    // One rounding: 2048 + 1 + 1 is no detour by f16, where 2048 + 1 is 2048.
    let one = half::f16::ONE;
    let (bias, residual, mut c) = ([one], [one], [f16::ZERO]);
    let epilogue = HostEpilogue::new().bias_of_columns(&bias).residual(&residual);
    gemm_host_with(&Product::new(1, 1, 2048), 1.0, &[one; 2048], &[one; 2048], 0.0, &mut c, epilogue)
        .unwrap();
    assert_eq!(c[0].to_f32(), 2050.0);
}

#[test]
fn bad_epilogues_are_refused() {
    let (a, mut c) = ([1.0f32; 12], [7.0f32; 9]);
    let (short, mut aux) = ([1.0f32; 2], [0.0f32; 8]);
    let mut run = |epilogue: HostEpilogue<'_, f32>, name: &str| {
        let failed = gemm_host_with(&Product::new(3, 3, 4), 1.0, &a, &a, 0.0, &mut c, epilogue);
        let Err(Error::InvalidArgument { found, wanted, .. }) = failed else { panic!("{name}") };
        assert!(found.starts_with(name) && wanted.contains("C of 3 x 3"), "{found}; {wanted}");
    };
    run(HostEpilogue::new().bias_of_columns(&short), "the bias of 2");
    run(HostEpilogue::new().bias_of_rows(&short), "the bias of 2");
    run(HostEpilogue::new().residual(&short), "the residual of 2");
    run(HostEpilogue::new().aux(&mut aux), "aux of 8");
    assert_eq!(c, [7.0; 9]);
    let mut whole = [0i32; 9];
    let epilogue = HostEpilogue::new().activation(Activation::Relu);
    let failed = gemm_host_with(&Product::new(3, 3, 4), 1, &[1; 12], &[1; 12], 0, &mut whole, epilogue);
    let text = failed.unwrap_err().to_string();
    assert!(text.contains("an epilogue needs a result of f16") && text.contains("i32"), "{text}");
}

#[test]
fn bad_input_is_refused() {
    let (a, b, mut c) = ([1.0f32; 12], [1.0f32; 20], [7.0f32; 15]);
    let mut run = |product: Product| gemm_host(&product, 1.0, &a, &b, 0.0, &mut c);
    for (product, name) in [
        (Product::new(4, 3, 4), "A of"),
        (Product::new(2, 5, 5), "B of"),
        (Product::new(4, 5, 3), "C of"),
        (Product::new(3, 5, 4).leading(4, 4, 5), "B of"),
        (Product::new(1, 5, 4).batch(3, 4, 0, 4), "C of"),
    ] {
        let Err(Error::InvalidArgument { found, .. }) = run(product) else { panic!("{product}") };
        assert!(found.starts_with(name), "{product}: {found}");
    }
    assert_eq!(c, [7.0; 15]);
    gemm_host(&Product::new(3, 5, 4), 1.0, &a, &b, 0.0, &mut c).unwrap();
    assert_eq!(c, [4.0; 15]);
}
