//! The golden recursion of floats, windings and Z[φ], and generations.

use selvedge::Error;
use selvedge::srt::*;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

#[test]
fn floats_are_multiplied_by_the_nearest_phi_of_their_dtype() {
    let v = Tensor::new([1.0f64, -2.5, 1e300], &Device::cpu()).unwrap();
    let recursion = golden_recursion(&v).unwrap().to_vec::<f64>().unwrap();
    assert_eq!(recursion, [PHI, -2.5 * PHI, 1e300 * PHI]);
    let inverse = golden_recursion_inverse(&v).unwrap().to_vec::<f64>().unwrap();
    assert_eq!(inverse, [INVERSE_PHI, -2.5 * INVERSE_PHI, 1e300 * INVERSE_PHI]);
    let single = golden_recursion(&v.cast(DType::F32).unwrap()).unwrap();
    assert_eq!(single.to_vec::<f32>().unwrap()[..2], [PHI as f32, -2.5 * PHI as f32]);
    let whole = Tensor::new([1i64], &Device::cpu()).unwrap();
    assert!(matches!(golden_recursion(&whole), Err(Error::DTypeMismatch { .. })));
    assert!(matches!(golden_recursion_inverse(&whole), Err(Error::DTypeMismatch { .. })));
}

#[test]
fn windings_are_exact_floors() {
    let table = [
        (0, 0),
        (1, 1),
        (2, 3),
        (3, 4),
        (4, 6),
        (5, 8),
        (10, 16),
        (-1, -2),
        (-5, -9),
        (2584, 4180),
        (102_334_155, 165_580_140),
        (100_000_000_000_000_000, 161_803_398_874_989_484),
    ];
    for (n, recursion) in table {
        assert_eq!(winding_recursion(n).unwrap(), recursion, "{n}");
    }
    let inverse = [0, 1, 2, 3, 5, 8, -1, -5].map(|n| winding_recursion_inverse(n).unwrap());
    assert_eq!(inverse, [0, 0, 1, 1, 3, 4, -1, -4]);
    const MAX_WINDING: i64 = 5_700_000_000_000_000_000;
    assert!(winding_recursion(MAX_WINDING).is_ok() && winding_recursion(-MAX_WINDING).is_ok());
    for n in [MAX_WINDING + 1, -MAX_WINDING - 1, i64::MIN, i64::MAX] {
        assert!(matches!(winding_recursion(n), Err(Error::Overflow { .. })), "{n}");
        assert!(matches!(winding_recursion_inverse(n), Err(Error::Overflow { .. })), "{n}");
    }
}

#[test]
fn recursions_and_their_inverse_are_the_floors_of_every_small_winding() {
    let windings: Vec<i64> = (-100_000..=100_000).collect();
    let n = Tensor::new(&windings[..], &Device::cpu()).unwrap();
    let recursion = winding_recursion_batch(&n).unwrap().check().unwrap().to_vec::<i64>().unwrap();
    let inverse = winding_recursion_inverse_batch(&n).unwrap().check().unwrap().to_vec::<i64>().unwrap();
    // Of n > 0: m = floor(φn) if 2m - n ≤ √5 n < 2(m + 1) - n, and q = floor(n/φ) if 2q + n ≤ √5 n < 2(q + 1) + n. The root is
    // irrational, so floor(-x) = -floor(x) - 1.
    for ((&n, recursion), inverse) in windings.iter().zip(recursion).zip(inverse) {
        assert_eq!(winding_recursion(n).unwrap(), recursion, "{n}");
        assert_eq!(winding_recursion_inverse(n).unwrap(), inverse, "{n}");
        if n == 0 {
            assert_eq!((recursion, inverse), (0, 0));
            continue;
        }
        let of_magnitude = |floor: i64| if n < 0 { -floor - 1 } else { floor };
        let (n, m, q) = (n.abs(), of_magnitude(recursion), of_magnitude(inverse));
        let is_floor = |low: i64| low >= 0 && low * low <= 5 * n * n && 5 * n * n < (low + 2) * (low + 2);
        assert!(is_floor(2 * m - n), "R({n}) = {m}");
        assert!(is_floor(2 * q + n), "floor({n}/φ) = {q}");
        assert_eq!(m - n, q);
    }
}

/// Fibonacci numbers, where a rounded product fails first, their neighbours, and numbers in between.
fn windings() -> Vec<i64> {
    let mut windings: Vec<i64> =
        (0..91).flat_map(|k| (-1..=1).map(move |d| fibonacci::<i64>(k).unwrap() + d)).collect();
    let mut state = 1u64;
    for bits in (0..62).cycle().take(2000) {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        windings.push((state >> (bits + 2)) as i64);
    }
    windings.retain(|n| n.unsigned_abs() <= 5_700_000_000_000_000_000);
    windings.extend(windings.clone().into_iter().map(|n| -n));
    windings
}

#[test]
fn batches_of_windings_equal_single_ones() {
    let windings = windings();
    let n = Tensor::new(&windings[..], &Device::cpu()).unwrap();
    let recursion = winding_recursion_batch(&n).unwrap().check().unwrap().to_vec::<i64>().unwrap();
    let inverse = winding_recursion_inverse_batch(&n).unwrap().check().unwrap().to_vec::<i64>().unwrap();
    for ((n, recursion), inverse) in windings.iter().zip(recursion).zip(inverse) {
        assert_eq!(recursion - n, inverse, "{n}");
        assert_eq!(recursion, winding_recursion(*n).unwrap(), "{n}");
        assert_eq!(inverse, winding_recursion_inverse(*n).unwrap(), "{n}");
    }
    let n = Tensor::new([5_700_000_000_000_000_001, 7, i64::MIN], &Device::cpu()).unwrap();
    let batch = winding_recursion_batch(&n).unwrap();
    assert_eq!(batch.overflow().to_vec::<bool>().unwrap(), [true, false, true]);
    assert!(matches!(batch.check(), Err(Error::Overflow { .. })));
    let error = winding_recursion_batch(&n.cast(DType::I32).unwrap()).err();
    assert!(matches!(error, Some(Error::DTypeMismatch { .. })), "{error:?}");
}

#[test]
fn the_recursion_of_pairs_and_its_inverse_cancel() {
    let pairs = [(0, 0), (1, 0), (0, 1), (-3, 7), (i64::MIN / 2, i64::MAX / 2)].map(GoldenInteger::from);
    for pair in pairs {
        assert_eq!(pair.recursion().unwrap(), (pair.b, pair.a + pair.b).into());
        assert_eq!(pair.recursion().unwrap().recursion_inverse().unwrap(), pair);
        assert_eq!(pair.recursion_inverse().unwrap().recursion().unwrap(), pair);
    }
    for seed in 0..2000 {
        // Of every size whose recursion fits.
        let part = |index| noise_word(seed, index) as i64 >> (2 + seed % 60);
        let pair = GoldenInteger::new(part(0), part(1));
        assert_eq!(pair.recursion().unwrap().recursion_inverse().unwrap(), pair);
        assert_eq!(pair.recursion_inverse().unwrap().recursion().unwrap(), pair);
    }
    let tensor = GoldenTensor::from_slice(&pairs, &[5], &Device::cpu()).unwrap();
    let back = tensor.recursion().unwrap().check().unwrap().recursion_inverse().unwrap();
    assert_eq!(back.check().unwrap().to_vec().unwrap(), pairs);
    let large = GoldenInteger::new(i64::MAX, 1);
    assert!(matches!(large.recursion(), Err(Error::Overflow { .. })));
    let batch = GoldenTensor::from_slice(&[large], &[1], &Device::cpu()).unwrap().recursion().unwrap();
    assert!(matches!(batch.check(), Err(Error::Overflow { .. })));
}

#[test]
fn generations_compare_with_exact_powers() {
    let table = [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (6, 4), (7, 5), (11, 5), (12, 6)];
    let mut rows: Vec<[i64; 4]> = table.iter().map(|(n, _)| [0, *n, -n / 2, 1.min(*n)]).collect();
    for (row, (_, wanted)) in rows.iter().zip(table) {
        assert_eq!(generation(*row), wanted, "{row:?}");
    }
    // φᵏ lies just below an even Lucas number, and just above an odd one.
    for k in 2..=90 {
        let lucas = lucas::<i64>(k).unwrap();
        let reached = lucas + i64::from(k % 2);
        assert_eq!(generation([0, 0, 0, -reached]), k + 1);
        assert_eq!(generation([reached - 1, 0, 0, 0]), k);
        rows.extend([[0, 0, 0, -reached], [reached - 1, 0, 0, 0]]);
    }
    rows.extend([[i64::MIN, 0, 0, 0], [i64::MAX; 4]]);
    let wanted: Vec<i32> = rows.iter().map(|row| generation(*row)).collect();
    let tensor = Tensor::from_slice(&rows.concat(), &[rows.len(), 4], &Device::cpu()).unwrap();
    assert_eq!(generation_batch(&tensor).unwrap().to_vec::<i32>().unwrap(), wanted);
    let narrow = Tensor::new([[3i32, 0, -7, 1]], &Device::cpu()).unwrap();
    assert_eq!(generation_batch(&narrow).unwrap().to_vec::<i32>().unwrap(), [5]);
    let three = Tensor::new([[1i32, 2, 3]], &Device::cpu()).unwrap();
    assert!(matches!(generation_batch(&three), Err(Error::InvalidArgument { .. })));
    let floats = Tensor::new([[1.0f32, 2.0, 3.0, 4.0]], &Device::cpu()).unwrap();
    assert!(matches!(generation_batch(&floats), Err(Error::DTypeMismatch { .. })));
}
