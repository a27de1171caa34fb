//! Products of tensors on the device, against the definition and against the CPU.

#[path = "../tensor/matmul/cases.rs"]
mod cases;

use half::bf16;
use selvedge::Error;
use selvedge::gemm::{Activation, Choice, Engine};
use selvedge::tensor::{Device, Matmul, Tensor};
use selvedge::types::DType;

use crate::few_rows_cases;
use crate::support::{Need, Outcome, assert_error, device_tests};

device_tests! {
    views_of_every_kind_are_multiplied => needs(Need::Isa(8, 0)),
    bias_activation_and_residual_are_part_of_the_product => needs(Need::Isa(8, 0)),
    layers_keep_what_gelu_is_applied_to => needs(Need::Isa(8, 0)),
    large_layers_agree_with_the_cpu => needs(Need::Isa(8, 0)),
    vectors_lose_their_dimension => needs(Need::Isa(8, 0)),
    results_are_rounded_once => needs(Need::Isa(8, 0)),
    large_views_agree_with_the_cpu => needs(Need::Isa(8, 0)),
    two_devices_are_not_mixed => needs(Need::Isa(8, 0)),
    engines_are_asked_for_by_the_call => needs(Need::Isa(8, 0)),
    products_of_a_few_rows_agree_with_their_definition => needs(Need::Isa(8, 0)),
}

fn device() -> selvedge::Result<Device> {
    Device::cuda(0)
}

fn products_of_a_few_rows_agree_with_their_definition() -> Outcome {
    let stream = device()?.stream()?;
    for case in few_rows_cases::cases() {
        case.check(&stream)?;
    }
    Ok(())
}

fn views_of_every_kind_are_multiplied() -> Outcome {
    Ok(cases::every_dtype(0..600, &device()?)?)
}

fn bias_activation_and_residual_are_part_of_the_product() -> Outcome {
    Ok(cases::every_fused(0..400, &device()?)?)
}

fn layers_keep_what_gelu_is_applied_to() -> Outcome {
    Ok(cases::layers(&device()?)?)
}

/// Layers at sizes at which every engine has several tiles: of whole numbers exactly, but for gelu and silu, which are near.
fn large_layers_agree_with_the_cpu() -> Outcome {
    let device = device()?;
    let whole = |count: usize| (0..count).map(|x| (x * 7 % 9) as f32 - 4.0).collect::<Vec<f32>>();
    let here = Device::cpu();
    for (dtype, result) in [
        (DType::BF16, DType::BF16),
        (DType::BF16, DType::F32),
        (DType::F16, DType::F16),
        (DType::F32, DType::F32),
        (DType::F64, DType::F64),
    ] {
        let tensor = |sizes: &[usize], dtype| {
            Tensor::from_vec(whole(sizes.iter().product()), sizes, &here)?.cast(dtype)
        };
        let (x, weights) = (tensor(&[3, 200, 64], dtype)?, tensor(&[328, 64], dtype)?);
        let (bias, residual) = (tensor(&[328], result)?, tensor(&[3, 200, 328], result)?);
        for activation in [Activation::None, Activation::Relu, Activation::GeluTanh, Activation::Silu] {
            let layer = |place: &Device| -> selvedge::Result<[Vec<f64>; 2]> {
                let (bias, residual) = (bias.to(place)?, residual.to(place)?);
                let matmul = Matmul::new().alpha(0.25).bias(&bias).activation(activation).residual(&residual);
                let (x, weights) = (x.to(place)?, weights.to(place)?);
                let (c, aux) = matmul.result(result).of_with_aux(&x, &weights.transpose(0, 1)?)?;
                let values = |tensor: &Tensor| tensor.to(&here)?.cast(DType::F64)?.to_vec::<f64>();
                Ok([values(&c)?, values(&aux)?])
            };
            let ([found, aux], [wanted, wanted_aux]) = (layer(&device)?, layer(&here)?);
            assert!(aux == wanted_aux, "{dtype} into {result}, {activation:?}: aux");
            // Two units of bf16, where an approximation may round to the other side.
            let is_near = matches!(activation, Activation::GeluTanh | Activation::Silu);
            let unit = if is_near { 1.0 / 128.0 } else { 0.0 };
            let near = |x: f64, y: f64, aux: f64| (x - y).abs() <= unit * aux.abs().max(y.abs());
            let all = found.iter().zip(&wanted).zip(&aux).all(|((x, y), aux)| near(*x, *y, *aux));
            assert!(all, "{dtype} into {result}, {activation:?}");
        }
    }
    Ok(())
}

fn vectors_lose_their_dimension() -> Outcome {
    Ok(cases::vectors(&device()?)?)
}

fn results_are_rounded_once() -> Outcome {
    Ok(cases::results(&device()?)?)
}

/// Sizes at which every engine has several tiles, in views that are read where they lie.
fn large_views_agree_with_the_cpu() -> Outcome {
    let device = device()?;
    let whole = |count: usize| (0..count).map(|x| (x * 7 % 9) as f32 - 4.0).collect::<Vec<f32>>();
    let a = Tensor::from_vec(whole(6 * 320 * 264), &[6, 320, 264], &Device::cpu())?;
    let b = Tensor::from_vec(whole(2 * 392 * 264), &[2, 1, 392, 264], &Device::cpu())?;
    for dtype in [DType::BF16, DType::F16, DType::F32, DType::F64, DType::I32] {
        let (a, b) = (a.cast(dtype)?, b.cast(dtype)?);
        let (on_a, on_b) = (a.to(&device)?, b.to(&device)?);
        let product = |a: &Tensor, b: &Tensor| {
            a.narrow(0, 1, 4)?
                .narrow(1, 8, 300)?
                .narrow(2, 0, 256)?
                .matmul(&b.narrow(3, 8, 256)?.transpose(2, 3)?)
        };
        let (found, wanted) = (product(&on_a, &on_b)?, product(&a, &b)?);
        assert_eq!(found.shape(), wanted.shape());
        let same = found.to(&Device::cpu())?.cast(DType::F64)?.to_vec::<f64>()?
            == wanted.cast(DType::F64)?.to_vec::<f64>()?;
        assert!(same, "{dtype}");
    }
    Ok(())
}

fn two_devices_are_not_mixed() -> Outcome {
    let (here, there) =
        (Tensor::ones(&[2, 2], DType::F32, &Device::cpu())?, Tensor::ones(&[2, 2], DType::F32, &device()?)?);
    assert_error!(here.matmul(&there), Error::DeviceMismatch { left, right, .. } if left.contains("cpu") && right.contains("cuda:0"));
    let mut c = here.clone();
    assert_error!(Matmul::new().add_to(&mut c, 0, &there, &there), Error::DeviceMismatch { .. });
    Ok(())
}

fn engines_are_asked_for_by_the_call() -> Outcome {
    let a = Tensor::full(&[64, 64], 1.0, DType::BF16, &device()?)?;
    let by = |engine| Matmul::new().by(Choice::Only(engine)).of(&a, &a);
    assert_eq!(by(Engine::Simt)?.to_vec::<bf16>()?, [bf16::from_f32(64.0); 64 * 64]);
    let whole = a.cast(DType::I32)?;
    let refused = Matmul::new().by(Choice::Only(Engine::Cublas)).of(&whole, &whole);
    assert_error!(refused, Error::InvalidArgument { found, .. } if found.contains("does not multiply i32"));
    Ok(())
}
