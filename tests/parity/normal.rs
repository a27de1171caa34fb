//! Normally distributed numbers compared with the quantile in higher precision
//! (`tests/data/fuse/normal.txt`), and PTX compared with the CPU.

use selvedge::fuse::{Expression, Graph};
use selvedge::types::{DType, Layout};

use super::arrays::{Array, on_host};
use super::operations::check;
use super::value::Value;
use crate::common::suite::{Test, detail};

const VECTORS: &str = include_str!("../data/fuse/normal.txt");

/// The documented bound.
const MAX_ULP: f64 = 3.0;

pub fn tests() -> Vec<Test> {
    let mut tests = vec![Test::new("normal::of_other_bits_is_an_error", || {
        let graph = Graph::new();
        let made = graph.input(DType::I32).normal();
        let message = graph.expression(&[made]).expect_err("an error").to_string();
        assert!(message.contains("i32") && message.contains("u32 or u64"), "{message}");
        Ok(())
    })];
    for (bits, dtype) in [(DType::U32, DType::F32), (DType::U64, DType::F64)] {
        tests.push(Test::new(format!("normal::{bits}::vectors"), move || {
            vectors(bits, dtype);
            Ok(())
        }));
        tests.push(Test::new(format!("normal::{bits}::order_and_symmetry"), move || {
            order(bits, dtype);
            Ok(())
        }));
    }
    tests
}

fn expression(bits: DType) -> Expression {
    let graph = Graph::new();
    graph.expression(&[graph.input(bits).normal()]).expect("an expression")
}

/// Returns the normal numbers of these words, computed on the CPU.
fn of(bits: DType, dtype: DType, words: &[u64]) -> Vec<f64> {
    let layout = Layout::contiguous(&[words.len()]).expect("a layout");
    let values: Vec<Value> = words.iter().map(|&word| Value::Integer(word.into())).collect();
    let mut output = [Array::new(dtype, layout, &[Value::Real(0.0)], 0)];
    on_host(&expression(bits), &[Array::new(bits, layout, &values, 0)], &[], &mut output);
    output[0].elements(&layout).into_iter().map(Value::real).collect()
}

fn vectors(bits: DType, dtype: DType) {
    let word = |text: &str| u64::from_str_radix(text, 16).expect("bits");
    let points: Vec<[u64; 3]> = VECTORS
        .lines()
        .filter_map(|line| line.strip_prefix(&format!("{bits} ")))
        .map(|line| {
            let mut words = line.split(' ').map(word);
            [(); 3].map(|()| words.next().expect("three words"))
        })
        .collect();
    assert!(points.len() > 700, "{} points", points.len());
    let words: Vec<u64> = points.iter().map(|point| point[0]).collect();
    let precision = if dtype == DType::F32 { 23 } else { 52 };
    let (mut worst, mut at) = (0.0, 0);
    for (point, found) in points.iter().zip(of(bits, dtype, &words)) {
        let [high, rest] = [point[1], point[2]].map(f64::from_bits);
        let unit = 2f64.powi(((high.to_bits() >> 52 & 0x7ff) as i32) - 1023 - precision);
        let error = ((found - high) - rest).abs() / unit;
        if error.is_nan() || error > worst {
            (worst, at) = (error, point[0]);
        }
    }
    detail(|| format!("{bits}: {worst:.3} units in the last place at {at:#x}"));
    assert!(worst < MAX_ULP, "{worst} units in the last place at {at:#x}");

    let layout = Layout::contiguous(&[words.len()]).expect("a layout");
    let values: Vec<Value> = words.iter().map(|&word| Value::Integer(word.into())).collect();
    let before = [Array::new(dtype, layout, &[Value::Real(0.0)], 0)];
    check(&expression(bits), &[Array::new(bits, layout, &values, 0)], &before, true);
}

fn order(bits: DType, dtype: DType) {
    let width = 8 * bits.size() as u32;
    let all = if width == 32 { u64::from(u32::MAX) } else { u64::MAX };
    let mut words: Vec<u64> = (0..20_000u64).map(|k| k.wrapping_mul(0x9E37_79B9_7F4A_7C15) & all).collect();
    words.extend((0..2000).flat_map(|k| [k, all / 2 - k, all / 2 + 1 + k, all - k]));
    words.sort_unstable();
    let numbers = of(bits, dtype, &words);
    // Rounding may exchange neighbours that are a unit in the last place apart, by no more than the error.
    let slack = if width == 32 { 2e-6 } else { 4e-15 };
    assert!(numbers.windows(2).all(|pair| pair[0] <= pair[1] + slack * pair[1].abs()));
    let mirrored: Vec<u64> = words.iter().map(|word| !word & all).collect();
    let opposite = of(bits, dtype, &mirrored);
    assert!(numbers.iter().zip(opposite).all(|(number, opposite)| *number == -opposite));
    let (least, most) = if width == 32 { (6.33, 6.35) } else { (9.15, 9.16) };
    assert!((least..most).contains(&numbers[numbers.len() - 1]), "{}", numbers[numbers.len() - 1]);
}
