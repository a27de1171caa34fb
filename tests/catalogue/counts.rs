//! Bins, joint histograms, and the measures of counts.

use std::collections::HashMap;

use selvedge::catalogue::*;
use selvedge::types::DType;
use selvedge::{Device, Tensor};

use crate::cases;
use crate::common::*;

#[test]
fn the_binary_series_has_the_golden_numbers() {
    cases::the_binary_series_has_the_golden_numbers(&Device::cpu());
}

#[test]
fn bins_are_clamped_and_common_to_both_axes() {
    let x = vector(&[0.0f32, 1.0, 2.0, 3.0]);
    let y = vector(&[0.0f32, 10.0, 0.0, 10.0]);
    let joint = histogram_2d(&x, &y, 5, None).unwrap();
    let mut wanted = [0i64; 25];
    for cell in [[0, 0], [0, 4], [1, 0], [1, 4]] {
        wanted[5 * cell[0] + cell[1]] = 1;
    }
    assert_eq!(joint.shape()[..], [5, 5]);
    assert_eq!(joint.to_vec::<i64>().unwrap(), wanted);
    let x = vector(&[-9.0, 0.25, 0.5, 1.0, f64::INFINITY, f64::NEG_INFINITY]);
    assert_eq!(numbers(&discretize(&x, 4, Some((0.0, 1.0))).unwrap()), [0.0, 1.0, 2.0, 3.0, 3.0, 0.0]);
    assert_eq!(numbers(&discretize(&vector(&[2.5f32; 3]), 4, None).unwrap()), [0.0; 3]);
    assert_eq!(
        numbers(&histogram_2d(&vector::<f32>(&[]), &vector::<f32>(&[]), 2, Some((0.0, 1.0))).unwrap()),
        [0.0; 4]
    );
}

#[test]
fn histograms_count_every_pair_at_any_length() {
    for n in LENGTHS.into_iter().chain([LARGE / 10]) {
        let (x, y) = (uniform(n, 1), uniform(n, 2));
        let joint = histogram_2d(&vector(&x), &vector(&y), 7, Some((0.0, 1.0))).unwrap();
        let mut wanted = vec![0i64; 49];
        for (x, y) in x.iter().zip(&y) {
            wanted[(x * 7.0) as usize * 7 + (y * 7.0) as usize] += 1;
        }
        assert_eq!(joint.to_vec::<i64>().unwrap(), wanted, "{n}");
    }
}

/// A table that is not square, by the definitions.
#[test]
fn measures_of_a_table_obey_the_chain_rule() {
    for dtype in [DType::I64, DType::F64, DType::U8] {
        let cells = [3u8, 0, 5, 1, 7, 2, 0, 0, 4, 6, 1, 9];
        let joint = tensor(&cells, &[3, 4]).cast(dtype).unwrap();
        let entropy = |table: &Tensor| {
            let total = number(&table.cast(DType::F64).unwrap().sum_all().unwrap());
            let shares = numbers(table).into_iter().filter(|cell| *cell > 0.0).map(|cell| cell / total);
            shares.map(|share| -share * share.ln()).sum::<f64>()
        };
        let (rows, columns) = (joint.sum(1).unwrap(), joint.sum(0).unwrap());
        let [both, of_x, of_y] = [&joint, &rows, &columns].map(entropy);
        assert_close(&[number(&mutual_information(&joint).unwrap())], &[of_x + of_y - both], 1e-13);
        assert_close(&[number(&conditional_entropy(&joint).unwrap())], &[both - of_x], 1e-13);
        assert_close(&[number(&conditional_entropy(&joint.t().unwrap()).unwrap())], &[both - of_y], 1e-13);
    }
    // A thousand bins, far above a block; each row determines its column.
    let table = Tensor::eye(1000, 1000, DType::F32, &selvedge::Device::cpu()).unwrap();
    assert_close(&[number(&mutual_information(&table).unwrap())], &[1000f64.ln()], 1e-6);
    assert_eq!(number(&conditional_entropy(&table).unwrap()), 0.0);
    let none = tensor(&[0i64; 6], &[2, 3]);
    assert_eq!(number(&mutual_information(&none).unwrap()), 0.0);
    assert_eq!(number(&conditional_entropy(&none).unwrap()), 0.0);
}

/// Transfer entropy with lists of past values as keys.
fn reference(source: &[i64], target: &[i64], history: usize) -> f64 {
    let n = target.len() - history;
    let past = |series: &[i64], t: usize| series[t..t + history].to_vec();
    let mut counts: [HashMap<Vec<Vec<i64>>, f64>; 4] = Default::default();
    for t in 0..n {
        let (next, own, other) = (vec![target[t + history]], past(target, t), past(source, t));
        let keys = [
            vec![next.clone(), own.clone(), other.clone()],
            vec![own.clone(), other],
            vec![next, own.clone()],
            vec![own],
        ];
        for (counts, key) in counts.iter_mut().zip(keys) {
            *counts.entry(key).or_default() += 1.0;
        }
    }
    let term = |(key, count): (&Vec<Vec<i64>>, &f64)| {
        let [next, own, other] = &key[..] else { unreachable!() };
        let of = |at: usize, key: &[&Vec<i64>]| counts[at][&key.iter().copied().cloned().collect::<Vec<_>>()];
        let quotient = (count / of(1, &[own, other])) / (of(2, &[next, own]) / of(3, &[own]));
        count / n as f64 * quotient.ln()
    };
    counts[0].iter().map(term).sum()
}

#[test]
fn transfer_entropy_is_that_of_the_definition_for_any_history() {
    for n in [4, 255, 256, 257, 1000] {
        let states = |seed| uniform(n, seed).iter().map(|x| (x * 3.0) as i64).collect::<Vec<_>>();
        let (x, mut y) = (states(1), states(2));
        // The target copies its source two steps before.
        for t in (2..n).step_by(2) {
            y[t] = x[t - 2];
        }
        for history in 1..=3 {
            let found = transfer_entropy(&vector(&x), &vector(&y), 3, history).unwrap();
            assert_close(&[number(&found)], &[reference(&x, &y, history)], 1e-12);
        }
    }
    let bits: Vec<u8> = uniform(LARGE, 3).iter().map(|x| u8::from(*x < 0.5)).collect();
    let delayed: Vec<u8> = [&[0], &bits[..LARGE - 1]].concat();
    let [x, y] = [&bits, &delayed].map(|bits| vector(bits));
    assert_close(&[number(&transfer_entropy(&x, &y, 2, 1).unwrap())], &[2f64.ln()], 1e-4);
    assert!(number(&transfer_entropy(&y, &x, 2, 1).unwrap()) < 1e-4);
}

#[test]
fn one_value_has_counts_and_no_information() {
    let one = vector(&[0.5]);
    assert_eq!(numbers(&discretize(&one, 1, None).unwrap()), [0.0]);
    assert_eq!(numbers(&discretize(&one, 4, Some((0.0, 1.0))).unwrap()), [2.0]);
    let joint = histogram_2d(&one, &one, 3, Some((0.0, 1.0))).unwrap();
    assert_eq!(numbers(&joint), [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    for table in [joint, tensor(&[3i64], &[1, 1])] {
        assert_eq!(number(&mutual_information(&table).unwrap()), 0.0);
        assert_eq!(number(&conditional_entropy(&table).unwrap()), 0.0);
    }
    assert_eq!(number(&transfer_entropy_of_counts(&tensor(&[3i64], &[1, 1, 1])).unwrap()), 0.0);
    assert_eq!(numbers(&time_delayed_embedding(&one, 1, 1).unwrap()), [0.5]);
    // The shortest series has one next value.
    let (short, long) = (vector(&[0i64]), vector(&[0i64, 1]));
    assert_eq!(number(&transfer_entropy(&long, &long, 2, 1).unwrap()), 0.0);
    assert!(transfer_entropy(&short, &short, 2, 1).is_err());
}

#[test]
fn embeddings_are_views_of_delayed_values() {
    let x = vector(&[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let rows = time_delayed_embedding(&x, 3, 2).unwrap();
    assert_eq!(rows.shape()[..], [2, 3]);
    assert_eq!(numbers(&rows), [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
    assert_eq!(numbers(&time_delayed_embedding(&x, 1, 9).unwrap()), numbers(&x));
    let series = tensor(&[0i32, 1, 2, 3, 4, 5, 6, 7], &[2, 4]);
    let rows = time_delayed_embedding(&series, 2, 3).unwrap();
    assert_eq!(rows.shape()[..], [2, 1, 2]);
    assert_eq!(numbers(&rows), [0.0, 3.0, 4.0, 7.0]);
    assert_invalid(time_delayed_embedding(&x, 4, 2), &["a series of 6"]);
    assert_invalid(time_delayed_embedding(&x, usize::MAX, 2), &["a series of 6"]);
    assert_invalid(time_delayed_embedding(&x, 0, 2), &["dimension 0"]);
    assert_invalid(time_delayed_embedding(&x, 2, 0), &["delay 0"]);
}

#[test]
fn wrong_series_and_tables_are_errors() {
    let x = vector(&[0.0f32, 1.0]);
    let bad = |list: &[f64]| discretize(&vector(list), 2, None);
    assert_invalid(bad(&[0.0, f64::NAN]), &["NaN"]);
    assert_invalid(bad(&[0.0, f64::INFINITY]), &["inf"]);
    assert_invalid(bad(&[-1.7e308, 1.7e308]), &["width"]);
    assert_invalid(discretize(&vector(&[f32::NAN]), 2, Some((0.0, 1.0))), &["NaN"]);
    assert_invalid(discretize(&x, 0, None), &["0 bins"]);
    assert_invalid(discretize(&x, 2, Some((1.0, 1.0))), &["from 1 to 1"]);
    assert_invalid(discretize(&x, 2, Some((0.0, f64::NAN))), &["NaN"]);
    assert!(discretize(&vector::<f32>(&[]), 2, None).is_err());
    assert_invalid(histogram_2d(&x, &vector(&[0.0f32]), 2, None), &["[2]", "[1]"]);
    assert_dtype_error(histogram_2d(&x, &vector(&[0.0f64, 1.0]), 2, None));
    let (series, short) = (vector(&cases::X), vector(&[0i64]));
    assert_invalid(transfer_entropy(&series, &short, 2, 1), &["[12]", "[1]"]);
    assert_invalid(transfer_entropy(&short, &short, 2, 1), &["history of 1", "1"]);
    assert_invalid(transfer_entropy(&series, &series, 2, 0), &["history of 0"]);
    assert_invalid(transfer_entropy(&series, &series, 1, 1), &["out of range", "below 1"]);
    assert_invalid(transfer_entropy(&series, &vector(&[-1i64; 12]), 2, 1), &["out of range"]);
    assert_invalid(transfer_entropy(&series, &series, 1 << 20, 2), &["cells"]);
    assert_dtype_error(transfer_entropy(&x, &x, 2, 1));
    assert_invalid(mutual_information(&series), &["2 dimensions"]);
    assert_invalid(transfer_entropy_of_counts(&series), &["3 dimensions"]);
}
