//! Streams of random numbers.

use selvedge::srt::*;
use selvedge::types::DType;
use selvedge::{Device, Tensor};

use crate::common::*;

#[test]
fn words_are_those_of_splitmix64() {
    let known = [0xe220_a839_7b1d_cdafu64, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
    let words = noise_words(0, 0, &[3], &Device::cpu()).unwrap().to_vec::<u64>().unwrap();
    assert_eq!(words, known);
    for (i, word) in known.into_iter().enumerate() {
        assert_eq!(noise_word(0, i as u64), word);
    }
    // The streams of a generation's two purposes.
    assert_eq!(noise_stream(2024, 0, 1), 0x487a_96f9_b989_521b);
    assert_eq!(noise_stream(2024, 0, 2), 0x2ddb_5756_aeff_d857);
    // Any seed and first index, in row-major order.
    let (seed, first) = (u64::MAX - 3, u64::MAX - 2);
    let words = noise_words(seed, first, &[2, 3], &Device::cpu()).unwrap().to_vec::<u64>().unwrap();
    let wanted: Vec<u64> = (0..6).map(|i| noise_word(seed, first.wrapping_add(i))).collect();
    assert_eq!(words, wanted);
}

#[test]
fn uniform_numbers_are_the_upper_53_bits_of_words() {
    let of =
        |interval| uniform_noise(9, 5, interval, &[100], &Device::cpu()).unwrap().to_vec::<f64>().unwrap();
    for (i, (half_open, open)) in of(Uniform::HalfOpen).into_iter().zip(of(Uniform::OpenAtZero)).enumerate() {
        let bits = noise_word(9, 5 + i as u64) >> 11;
        assert_eq!(half_open, bits as f64 / (1u64 << 53) as f64);
        assert_eq!(open, (bits + 1) as f64 / (1u64 << 53) as f64);
    }
    assert_eq!(noise_words(1, 0, &[0, 2], &Device::cpu()).unwrap().count(), 0);
    assert_eq!(gauss(1, 0, &[], &Device::cpu()).unwrap().rank(), 0);
}

#[test]
fn box_muller_has_the_worked_numbers() {
    let u = [0.3, 0.8, (-0.5f64).exp(), 0.0, 1e-10, 0.0, 0.5, 0.25];
    let g = numbers(&box_muller(&vector(&u)).unwrap());
    for (x, y) in g.iter().zip([0.4795188680969606, 1.0, 6.786140424415112, 0.0]) {
        assert!((x - y).abs() <= 1e-14 * y.abs(), "{g:?}");
    }
    let single = box_muller(&vector(&u).cast(DType::F32).unwrap()).unwrap();
    assert_eq!(single.dtype(), DType::F32);
    assert!(numbers(&single).iter().zip(&g).all(|(x, y)| (x - y).abs() < 1e-6));
    // Smaller numbers and NaN in the first place count as 1e-10, NaN in the second stays.
    let g = numbers(&box_muller(&tensor(&[0.0, 0.0, f64::NAN, 0.0, 0.5, f64::NAN], &[3, 2])).unwrap());
    assert!(g[0] == 6.786140424415112 && g[1] == g[0] && g[2].is_nan(), "{g:?}");
    assert_invalid(box_muller(&vector(&[0.5; 3])), &["[3]", "even"]);
    assert_dtype_error(box_muller(&tensor(&[1i64, 2], &[2])));
    assert_eq!(box_muller(&vector(&[])).unwrap().count(), 0);
}

#[test]
fn normal_numbers_have_the_worked_numbers_and_moments() {
    let g = gauss(42, 0, &[4], &Device::cpu()).unwrap();
    let wanted = [0.4147197504315305, -0.8918862136277562, 1.7295930879374015, 0.5456204361828646];
    assert_worked(&g, &wanted);
    assert_worked(&gauss(42, 2, &[2], &Device::cpu()).unwrap(), &wanted[2..]);
    let g = numbers(&gauss(7, 0, &[20000], &Device::cpu()).unwrap());
    let mean = g.iter().sum::<f64>() / 20000.0;
    let variance = g.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 20000.0;
    assert!((mean + 0.00828).abs() < 5e-6 && (variance - 1.00223).abs() < 5e-6, "{mean}, {variance}");
    for seed in 0..20 {
        let g = numbers(&gauss(seed, 0, &[20000], &Device::cpu()).unwrap());
        let mean = g.iter().sum::<f64>() / 20000.0;
        let variance = g.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 20000.0;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{seed}: {mean}, {variance}");
    }
    // It is the transform of a number in (0, 1] and one in [0, 1).
    let of =
        |interval| uniform_noise(7, 0, interval, &[64], &Device::cpu()).unwrap().reshape(&[-1, 2]).unwrap();
    let (open, half_open) = (of(Uniform::OpenAtZero), of(Uniform::HalfOpen));
    let pairs = [open.select(1, 0).unwrap(), half_open.select(1, 1).unwrap()];
    let pairs = Tensor::stack(&[&pairs[0], &pairs[1]], -1).unwrap().reshape(&[-1]).unwrap();
    assert_eq!(numbers(&box_muller(&pairs).unwrap()), g[..32]);
}

#[test]
fn modulated_noise_has_the_worked_numbers() {
    let (g, rho) = (vector(&[1.0, 1.0, -1.0]), vector(&[0.0, 0.5, -2.0]));
    let wanted = [0.1, 0.5159054415340087, -0.9676248220682352];
    assert_worked(&residual_modulated_noise(&g, &rho, 0.1, 1.0).unwrap(), &wanted);
    let single = |x: &Tensor| x.cast(DType::F32).unwrap();
    assert_close(&residual_modulated_noise(&single(&g), &single(&rho), 0.1, 1.0).unwrap(), &wanted, 2e-7);
    assert_invalid(residual_modulated_noise(&g, &vector(&[1.0]), 0.1, 1.0), &["[3]", "[1]"]);
    assert_invalid(residual_modulated_noise(&g, &rho, f64::NAN, 1.0), &["lo = NaN"]);
    assert_dtype_error(residual_modulated_noise(&g, &single(&rho), 0.1, 1.0));
}
