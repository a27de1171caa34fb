//! Attention by an engine that stores no scores: results and gradients beside f64 on the CPU, bits, memory, and packed operands.

use selvedge::nn::{AttentionOptions, Variable, scaled_dot_product_attention};
use selvedge::tensor::{Device, Generator, SequenceLengths, Tensor};
use selvedge::types::DType;

use crate::attention_cases::{assert_close, cases, with_gradients};
use crate::decode_cases;
use crate::support::{Outcome, device_tests};

device_tests! {
    results_and_gradients_are_close_to_f64, results_of_wide_heads_are_close_to_f64, gradients_of_wide_heads_are_close_to_f64,
    operands_in_a_packed_tensor_are_read_where_they_are, two_runs_have_equal_bits,
    queries_before_the_first_key_have_zeros, every_option_agrees_with_the_composed_form_in_f64,
    decoding_agrees_with_its_definition_in_f64, a_padded_length_beyond_the_array_is_reported_at_the_next_wait => alone(), lengths_whose_scores_no_device_holds => alone(),
}

/// Batch, query heads, key heads, queries, keys and head dimension.
type Sizes = [usize; 6];

/// Odd lengths, one query, one key, grouped heads, more queries than keys, and every kernel's tile with and without a remainder.
const SIZES: &[Sizes] = &[
    [2, 3, 3, 200, 200, 64],
    [1, 4, 2, 1, 333, 64],
    [1, 4, 1, 129, 300, 128],
    [2, 2, 2, 300, 129, 64],
    [1, 2, 2, 256, 256, 128],
    [1, 2, 1, 65, 1, 64],
    [1, 2, 2, 193, 193, 40],
    [3, 1, 1, 70, 150, 96],
    [1, 2, 2, 31, 33, 8],
];

/// Head dimensions that have an engine for the result alone.
const WIDE_SIZES: &[Sizes] = &[[1, 2, 2, 300, 300, 192], [1, 4, 2, 129, 300, 256], [1, 2, 1, 65, 1, 200]];

fn causal(is_causal: bool) -> AttentionOptions {
    AttentionOptions { is_causal, ..AttentionOptions::default() }
}

/// Queries, keys, values and the result's gradient, rounded to a dtype.
fn samples(
    [batch, heads, key_heads, queries, keys, width]: Sizes,
    dtype: DType,
) -> selvedge::Result<[Tensor; 4]> {
    let cpu = Device::cpu();
    let draw = |seed, heads, length| {
        Generator::new(seed).randn(&[batch, heads, length, width], DType::F32, &cpu)?.cast(dtype)
    };
    Ok([
        draw(1, heads, queries)?,
        draw(2, key_heads, keys)?,
        draw(3, key_heads, keys)?,
        draw(4, heads, queries)?,
    ])
}

fn decoding_agrees_with_its_definition_in_f64() -> Outcome {
    let stream = Device::cuda(0)?.stream()?;
    for case in decode_cases::cases(usize::MAX) {
        case.check(&stream)?;
    }
    Ok(())
}

fn every_option_agrees_with_the_composed_form_in_f64() -> Outcome {
    let device = Device::cuda(0)?;
    for case in cases() {
        case.check(&device)?;
    }
    Ok(())
}

fn a_padded_length_beyond_the_array_is_reported_at_the_next_wait() -> Outcome {
    let device = Device::cuda(0)?;
    let x = Tensor::zeros(&[2, 1, 5, 8], DType::F32, &device)?;
    let keys = Some(Tensor::new([3i64, 6], &device)?);
    let lengths = Some(SequenceLengths::Padded { queries: None, keys });
    let options = selvedge::tensor::AttentionOptions { lengths, ..Default::default() };
    let result = x.scaled_dot_product_attention(&x, &x, &options).and_then(|_| device.synchronize());
    let error = result.expect_err("a length of 6 in an array of 5").to_string();
    let wanted = "scaled_dot_product_attention: found a sequence length of 6; wanted one from 0 to 5";
    assert!(error.contains(wanted), "{error}");
    Ok(())
}

fn results_and_gradients_are_close_to_f64() -> Outcome {
    let device = Device::cuda(0)?;
    for (dtype, tolerance) in [(DType::BF16, 6e-3), (DType::F16, 1e-3)] {
        for &sizes in SIZES {
            for is_causal in [false, true] {
                let x = samples(sizes, dtype)?;
                let [wide, there] = [|x: &Tensor| x.cast(DType::F64), |x: &Tensor| x.to(&Device::cuda(0)?)]
                    .map(|convert: fn(&Tensor) -> selvedge::Result<Tensor>| x.each_ref().map(convert));
                let [a, b, c, d] = wide;
                let wanted = with_gradients(&[a?, b?, c?, d?], &causal(is_causal))?;
                let [a, b, c, d] = there;
                let found = with_gradients(&[a?, b?, c?, d?], &causal(is_causal))?;
                for (part, name) in ["result", "of queries", "of keys", "of values"].iter().enumerate() {
                    assert_eq!(found[part].device(), device);
                    let name = format!("{name}, {dtype}, {sizes:?}, is_causal {is_causal}");
                    // A query that reads one key has a gradient of 0, whose rounding errors are no share of it.
                    assert_close(&name, &found[part], &wanted[part], tolerance, 0.1)?;
                }
            }
        }
    }
    Ok(())
}

fn results_of_wide_heads_are_close_to_f64() -> Outcome {
    let device = Device::cuda(0)?;
    for (dtype, tolerance) in [(DType::BF16, 6e-3), (DType::F16, 1e-3)] {
        for &sizes in WIDE_SIZES {
            for is_causal in [false, true] {
                let [queries, keys, values, _] = samples(sizes, dtype)?;
                let result = |convert: &dyn Fn(&Tensor) -> selvedge::Result<Tensor>| {
                    let [a, b, c] = [&queries, &keys, &values].map(|x| convert(x).map(Variable::new));
                    scaled_dot_product_attention(&a?, &b?, &c?, &causal(is_causal))
                };
                let wanted = result(&|x| x.cast(DType::F64))?.tensor();
                let found = result(&|x| x.to(&device))?.tensor();
                assert_eq!(found.device(), device);
                let name = format!("result, {dtype}, {sizes:?}, is_causal {is_causal}");
                assert_close(&name, &found, &wanted, tolerance, 0.1)?;
            }
        }
    }
    Ok(())
}

/// The forward is composed too, because no engine would compute its backward.
fn gradients_of_wide_heads_are_close_to_f64() -> Outcome {
    let device = Device::cuda(0)?;
    for (dtype, tolerance) in [(DType::BF16, 3e-2), (DType::F16, 4e-3)] {
        for &sizes in WIDE_SIZES {
            let x = samples(sizes, dtype)?;
            let of = |convert: &dyn Fn(&Tensor) -> selvedge::Result<Tensor>| {
                let [a, b, c, d] = x.each_ref().map(convert);
                with_gradients(&[a?, b?, c?, d?], &causal(true))
            };
            let (wanted, found) = (of(&|x| x.cast(DType::F64))?, of(&|x| x.to(&device))?);
            for (part, name) in ["result", "of queries", "of keys", "of values"].iter().enumerate() {
                let name = format!("{name}, {dtype}, {sizes:?}");
                assert_close(&name, &found[part], &wanted[part], tolerance, 0.1)?;
            }
        }
    }
    Ok(())
}

fn operands_in_a_packed_tensor_are_read_where_they_are() -> Outcome {
    let device = Device::cuda(0)?;
    let [batch, length, heads, width] = [2, 150, 3, 64];
    let packed = Generator::new(7).randn(&[batch, length, 3 * heads, width], DType::BF16, &device)?;
    let gradient = Generator::new(8).randn(&[batch, heads, length, width], DType::BF16, &device)?;
    let part = |first: usize| packed.narrow(2, first * heads, heads)?.transpose(1, 2);
    let strided = [part(0)?, part(1)?, part(2)?, gradient.clone()];
    let [a, b, c] = [part(0)?.contiguous()?, part(1)?.contiguous()?, part(2)?.contiguous()?];
    let found = with_gradients(&strided, &causal(true))?;
    let wanted = with_gradients(&[a, b, c, gradient], &causal(true))?;
    for (found, wanted) in found.iter().zip(&wanted) {
        assert_eq!(found.to_bytes()?, wanted.to_bytes()?);
    }
    Ok(())
}

fn two_runs_have_equal_bits() -> Outcome {
    let device = Device::cuda(0)?;
    for (dtype, is_causal) in [(DType::BF16, false), (DType::BF16, true), (DType::F16, true)] {
        let sizes = [2, 16, 4, 1500, 1500, if is_causal { 64 } else { 128 }];
        let [a, b, c, d] = samples(sizes, dtype)?.map(|x| x.to(&device));
        let x = [a?, b?, c?, d?];
        let bytes = || -> Result<Vec<Vec<u8>>, selvedge::Error> {
            with_gradients(&x, &causal(is_causal))?.iter().map(Tensor::to_bytes).collect()
        };
        let first = bytes()?;
        for _ in 0..3 {
            assert!(bytes()? == first, "{dtype}, is_causal {is_causal}");
        }
    }
    Ok(())
}

fn queries_before_the_first_key_have_zeros() -> Outcome {
    let device = Device::cuda(0)?;
    let [a, b, c, d] = samples([1, 2, 2, 300, 40, 64], DType::BF16)?.map(|x| x.to(&device));
    let [result, of_queries, ..] = with_gradients(&[a?, b?, c?, d?], &causal(true))?;
    for x in [result, of_queries] {
        let of_first = x.narrow(2, 0, 260)?.cast(DType::F32)?.to_vec::<f32>()?;
        assert!(of_first.iter().all(|x| *x == 0.0));
        let of_rest = x.narrow(2, 260, 40)?.cast(DType::F32)?.to_vec::<f32>()?;
        assert!(of_rest.iter().any(|x| *x != 0.0) && of_rest.iter().all(|x| x.is_finite()));
    }
    Ok(())
}

/// The scores of 2^18 positions would take 256 GB in f32.
fn lengths_whose_scores_no_device_holds() -> Outcome {
    let device = Device::cuda(0)?;
    let [batch, heads, length, width] = [1, 1, 1 << 18, 64];
    let draw = |seed| Generator::new(seed).randn(&[batch, heads, length, width], DType::BF16, &device);
    let x = [draw(1)?, draw(2)?, draw(3)?, draw(4)?];
    let found = with_gradients(&x, &causal(true))?;
    // The first query reads the first key alone.
    let first = |x: &Tensor| x.narrow(2, 0, 1)?.to_bytes();
    assert_eq!(first(&found[0])?, first(&x[2])?);
    for x in &found {
        assert!(x.cast(DType::F32)?.sum_all()?.item::<f32>()?.is_finite());
    }
    Ok(())
}
