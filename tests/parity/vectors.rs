//! Functions compared with results of higher precision (`tests/data/fuse/functions.zst`), within the stated
//! error. `tests/data/fuse/functions.md` describes the file.

use std::collections::HashMap;
use std::io::Read;
use std::sync::OnceLock;

use selvedge::fuse::{Graph, Operation};
use selvedge::types::{DType, Layout};

use super::arrays::{Array, on_host};
use super::value::{Value, read};
use crate::common::suite::{Test, detail};

const VECTORS: &[u8] = include_bytes!("../data/fuse/functions.zst");

/// Operands, and for each part of the result two numbers whose sum it is.
struct Point {
    operands: Vec<Value>,
    result: Vec<(f64, f64)>,
}

/// The points of an operation in a column of the file. Each inner list has one part of all points.
struct Group {
    operands: Vec<Vec<f64>>,
    results: Vec<Vec<f64>>,
}

type Groups = HashMap<(String, String), Group>;

/// Returns the group of an operation in a column. The file is unpacked once per process, since every test asks.
fn group(operation: Operation, column: &str) -> Option<&'static Group> {
    static GROUPS: OnceLock<Groups> = OnceLock::new();
    let groups = GROUPS.get_or_init(|| {
        let mut contents = Vec::new();
        let mut decoder = ruzstd::decoding::StreamingDecoder::new(VECTORS).expect("a frame of zstd");
        decoder.read_to_end(&mut contents).expect("a whole frame");
        groups(&contents)
    });
    groups.get(&(operation.name().to_owned(), column.to_owned()))
}

fn groups(mut contents: &[u8]) -> Groups {
    let mut groups = Groups::new();
    while !contents.is_empty() {
        let [name, column] = [(); 2].map(|()| {
            let length = take(&mut contents, 1)[0];
            String::from_utf8(take(&mut contents, length.into()).to_vec()).expect("a name")
        });
        let [operands, results] = [(); 2].map(|()| take(&mut contents, 1)[0]);
        let count = u32::from_le_bytes(take(&mut contents, 4).try_into().expect("a count")) as usize;
        let [operands, results] = [operands, results].map(|parts| {
            let mut part = || take(&mut contents, 8 * count).chunks_exact(8).map(number).collect();
            (0..parts).map(|_| part()).collect()
        });
        let previous = groups.insert((name, column), Group { operands, results });
        assert!(previous.is_none(), "two groups of one name");
    }
    groups
}

fn take<'a>(contents: &mut &'a [u8], count: usize) -> &'a [u8] {
    contents.split_off(..count).expect("a whole file")
}

fn number(bytes: &[u8]) -> f64 {
    f64::from_le_bytes(bytes.try_into().expect("8 bytes"))
}

/// Returns the points of an operation in a column: a dtype or `special`.
fn points(operation: Operation, column: &str, dtype: DType) -> Vec<Point> {
    let Some(Group { operands, results }) = group(operation, column) else { return Vec::new() };
    let exact = matches!(column, "f64" | "c128");
    let count = operands.first().map_or(0, Vec::len);
    (0..count)
        .map(|point| {
            let operands = if dtype.is_complex() {
                operands.chunks(2).map(|parts| Value::Complex(parts[0][point], parts[1][point])).collect()
            } else {
                operands.iter().map(|part| Value::Real(part[point])).collect()
            };
            let result = if exact {
                results.chunks(2).map(|parts| (parts[0][point], parts[1][point])).collect()
            } else {
                results.iter().map(|part| (part[point], 0.0)).collect()
            };
            Point { operands, result }
        })
        .collect()
}

/// Returns whether the file has points of the operation on a dtype.
pub fn has(operation: Operation, dtype: DType) -> bool {
    group(operation, dtype.name()).is_some()
}

pub fn tests() -> Vec<Test> {
    let mut tests = vec![Test::new("vectors::every_inexact_function_has_some", || {
        let without = |dtype: DType, ulp: fn(Operation) -> u32| -> Vec<&str> {
            let inexact = |operation: &&Operation| operation.dtypes().contains(dtype) && ulp(**operation) > 0;
            let all = Operation::ALL.iter().filter(inexact);
            all.filter(|operation| !has(**operation, dtype)).map(|operation| operation.name()).collect()
        };
        // Other tests compare these with f64 arithmetic.
        assert_eq!(without(DType::F32, Operation::ulp), ["abs", "rsqrt", "hypot", "angle"]);
        assert_eq!(without(DType::F64, Operation::ulp), ["abs", "rsqrt", "hypot", "angle"]);
        assert_eq!(without(DType::C64, Operation::complex_ulp), ["abs", "angle"]);
        assert_eq!(without(DType::C128, Operation::complex_ulp), ["abs", "angle"]);
        Ok(())
    })];
    for &operation in Operation::ALL {
        for dtype in operation.dtypes().iter() {
            if has(operation, dtype) {
                tests.push(Test::new(format!("vectors::{}::{dtype}", operation.name()), move || {
                    check(operation, dtype, dtype.name(), 0);
                    Ok(())
                }));
            }
            if dtype.is_complex() && !points(operation, "special", dtype).is_empty() {
                tests.push(Test::new(
                    format!("vectors::{}::{dtype}::special", operation.name()),
                    move || {
                        check(operation, dtype, "special", 2);
                        Ok(())
                    },
                ));
            }
        }
    }
    tests
}

fn check(operation: Operation, dtype: DType, column: &str, slack: u32) {
    let points = points(operation, column, dtype);
    assert!(points.len() > 15, "{} points", points.len());
    let allowed = match dtype {
        DType::F16 | DType::BF16 => 1,
        _ if dtype.is_complex() => operation.complex_ulp() + slack,
        _ => operation.ulp(),
    };
    let (mut worst, mut wrong) = (0.0f64, Vec::new());
    let found = results(operation, dtype, &points);
    for (point, found) in points.iter().zip(&found) {
        let unit = unit(found.0, &[&point.result[..], &beside(operation, &point.operands)].concat());
        let largest = match found.0.part() {
            DType::F16 => 65504.0,
            DType::BF16 => 3.389_531_389_251_535_5e38,
            DType::F32 => f32::MAX.into(),
            _ => f64::MAX,
        };
        let parts = [found.1.parts().0, found.1.parts().1];
        let signed = column == "special" && has_signs(operation, point);
        let error = point
            .result
            .iter()
            .zip(parts)
            .map(|(wanted, found)| error(found, *wanted, unit, largest, signed))
            .fold(0.0, |most: f64, error| if error.is_nan() { f64::INFINITY } else { most.max(error) });
        worst = worst.max(error);
        if error > f64::from(allowed) {
            wrong.push(format!(
                "{error:.3} units: {}({:?}) is {:?}, wanted {:?}",
                operation.name(),
                point.operands,
                found.1,
                point.result
            ));
        }
    }
    detail(|| format!("{} {dtype} {column}: {worst:.3} ulp of {allowed}", operation.name()));
    assert!(
        wrong.is_empty(),
        "{} of {} are wrong\n{}",
        wrong.len(),
        points.len(),
        wrong[..wrong.len().min(12)].join("\n")
    );
}

/// Returns each result and its dtype.
fn results(operation: Operation, dtype: DType, points: &[Point]) -> Vec<(DType, Value)> {
    let graph = Graph::new();
    let inputs: Vec<_> = (0..operation.arity()).map(|_| graph.input(dtype)).collect();
    let expression =
        graph.expression(&[inputs[0].operation(operation, &inputs[1..])]).expect("an expression");
    let layout = Layout::contiguous(&[points.len()]).expect("a layout");
    let arrays: Vec<Array> = (0..operation.arity())
        .map(|k| {
            let values: Vec<Value> = points.iter().map(|point| point.operands[k]).collect();
            Array::new(dtype, layout, &values, 0)
        })
        .collect();
    let result = expression.outputs()[0];
    let blank = if result.is_complex() { Value::Complex(0.0, 0.0) } else { Value::Real(0.0) };
    let mut outputs = [Array::new(result, layout, &[blank], 0)];
    on_host(&expression, &arrays, &[], &mut outputs);
    outputs[0].element_bytes().into_iter().map(|bytes| (result, read(result, bytes))).collect()
}

/// Returns a unit in the last place of a result (of its magnitude, if it is complex).
fn unit(dtype: DType, result: &[(f64, f64)]) -> f64 {
    let (precision, smallest) = match dtype.part() {
        DType::F16 => (11, -24),
        DType::BF16 => (8, -133),
        DType::F32 => (24, -149),
        _ => (53, -1074),
    };
    let length = result.iter().map(|part| part.0.abs()).filter(|part| part.is_finite()).fold(0.0, f64::max);
    let exponent = if length < f64::MIN_POSITIVE { -1022 } else { (length.to_bits() >> 52) as i32 - 1023 };
    f64::from((exponent + 1 - precision).max(smallest)).exp2()
}

/// Returns the values, other than the result, that an error is relative to; see the operations' descriptions.
fn beside(operation: Operation, operands: &[Value]) -> Vec<(f64, f64)> {
    match operation {
        Operation::LogAddExp => operands.iter().map(|operand| (operand.real(), 0.0)).collect(),
        Operation::Lgamma if operands[0].real() < 0.0 => vec![(1.0, 0.0)],
        _ => Vec::new(),
    }
}

/// Returns the error of a part in units; it is infinite for a result of another kind.
fn error(found: f64, (high, rest): (f64, f64), unit: f64, largest: f64, signed: bool) -> f64 {
    if high.is_nan() || found.is_nan() {
        return if high.is_nan() && found.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let same_sign = found.is_sign_negative() == high.is_sign_negative() || !signed;
    if high.is_infinite() || high == 0.0 && rest == 0.0 {
        let same = if high == 0.0 { found == 0.0 } else { found.is_infinite() };
        return if same && same_sign { 0.0 } else { f64::INFINITY };
    }
    if found.is_infinite() {
        // Within a unit of the largest number the exact result may still be finite.
        return if high.abs() > largest - unit && same_sign { 0.0 } else { f64::INFINITY };
    }
    ((found - high) - rest).abs() / unit
}

/// Returns whether C99 defines the signs of infinities and zeros: not if a part is NaN, nor always if both
/// are infinite.
fn has_signs(operation: Operation, point: &Point) -> bool {
    use Operation::{Cos, Cosh, Exp, Sin, Sinh, Tan, Tanh};
    let (x, y) = point.operands[0].parts();
    let open = matches!(operation, Exp | Sin | Cos | Tan | Sinh | Cosh | Tanh);
    let nan = x.is_nan() || y.is_nan() || point.result.iter().any(|part| part.0.is_nan());
    !(nan || open && x.is_infinite() && y.is_infinite())
}
