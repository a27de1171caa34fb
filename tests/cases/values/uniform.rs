//! Uniform draws over ranges up to the whole range of a dtype.

use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::types::DType;

pub fn a_uniform_draw_spreads_over_ranges_past_the_largest_number(device: &Device) {
    let half = f64::from(half::f16::MAX);
    let rows: &[(DType, f64, f64)] = &[
        (DType::F32, -3e38, 3e38),
        (DType::F32, f64::from(f32::MIN), f64::from(f32::MAX)),
        (DType::BF16, -3e38, 3e38),
        (DType::F64, -1.5e308, 1.5e308),
        (DType::F64, f64::MIN, f64::MAX),
        (DType::F16, -half, half),
        (DType::F16, 0.0, half),
    ];
    for &(dtype, low, high) in rows {
        // As the dtype rounds them.
        let ends = Tensor::new([low, high], device).unwrap().cast(dtype).unwrap().cast(DType::F64).unwrap();
        let [low, high] = ends.to_vec::<f64>().unwrap()[..] else { panic!("two ends") };
        let mut draws = vec![Generator::new(7).uniform(low, high, &[20_000], dtype, device).unwrap()];
        // Ends that are tensors.
        let [of_low, of_high] = [low, high].map(|end| Tensor::new(end, device).unwrap());
        draws.push(Generator::new(7).uniform(&of_low, &of_high, &[20_000], dtype, device).unwrap());
        for drawn in draws {
            let drawn = drawn.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
            assert!(drawn.iter().all(|x| (low..high).contains(x)), "{dtype} from {low} to {high}");
            // A fourth of the draws in each fourth of the range.
            for fourth in 0..4 {
                let end = |count: f64| low * (1.0 - count / 4.0) + high * (count / 4.0);
                let (from, to) = (end(f64::from(fourth)), end(f64::from(fourth + 1)));
                let count = drawn.iter().filter(|x| (from..to).contains(*x)).count();
                assert!(
                    (4600..5400).contains(&count),
                    "{dtype} from {low} to {high}: {count} in fourth {fourth}"
                );
            }
        }
    }
    // An end that the dtype does not hold is an error; elements of tensors count as the largest number.
    for (dtype, low, high) in [(DType::F16, 0.0, 7e4), (DType::F16, -7e4, 0.0), (DType::F32, 0.0, 1e39)] {
        let error = Generator::new(7).uniform(low, high, &[4], dtype, device).unwrap_err().to_string();
        assert!(error.contains("uniform") && error.contains(dtype.name()), "{error}");
        let error = Generator::new(7).normal(high + low, 1.0, &[4], dtype, device).unwrap_err().to_string();
        assert!(error.contains("normal") && error.contains(dtype.name()), "{error}");
    }
    let most = Tensor::new([7e4f32], device).unwrap();
    let drawn = Generator::new(7).uniform(0, &most, &[1000], DType::F16, device).unwrap();
    let drawn = drawn.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
    assert!(drawn.iter().filter(|x| **x > 32_000.0 && **x < half).count() > 400);
}
