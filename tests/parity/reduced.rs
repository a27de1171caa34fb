//! A reference of folds, independent of the crate: the documented tree, element by element, on numbers wider
//! than the dtype, each result rounded to it.

use selvedge::fuse::Fold;
use selvedge::types::DType;

use super::value::{Value, wrap};

/// A value in the tree: a number, or an extreme and its index.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    pub value: Value,
    place: usize,
    /// True if an element in it is an infinity or NaN: other infinities result from overflow, and 0 times
    /// those is 0.
    is_given: bool,
}

/// Returns the dtype in which values are folded.
pub fn accumulator(fold: Fold, dtype: DType) -> DType {
    match fold {
        Fold::Sum | Fold::Product => match dtype {
            DType::F16 | DType::BF16 => DType::F32,
            DType::F32 | DType::F64 | DType::C64 | DType::C128 | DType::U64 => dtype,
            _ => DType::I64,
        },
        Fold::Any | Fold::All => DType::Bool,
        _ => dtype,
    }
}

fn round(dtype: DType, x: f64) -> f64 {
    match dtype {
        DType::F32 | DType::C64 => f64::from(x as f32),
        _ => x,
    }
}

fn times(dtype: DType, (a, b): (f64, f64), (c, d): (f64, f64)) -> Value {
    if (a, b) == (1.0, 0.0) {
        return Value::Complex(c, d);
    }
    if (c, d) == (1.0, 0.0) {
        return Value::Complex(a, b);
    }
    let r = |x: f64| round(dtype, x);
    Value::Complex(r(r(a * c) - r(b * d)), r(r(a * d) + r(b * c)))
}

/// Compares for an extreme: -0 is below 0, and NaN is beyond all others.
fn further(fold: Fold, x: Value, y: Value, zeros_differ: bool) -> bool {
    let greatest = matches!(fold, Fold::Maximum | Fold::ArgMaximum);
    match (x, y) {
        (Value::Integer(x), Value::Integer(y)) => {
            if greatest {
                y > x
            } else {
                y < x
            }
        }
        _ => {
            let (x, y) = (x.real(), y.real());
            if x.is_nan() || y.is_nan() {
                return y.is_nan() && !x.is_nan();
            }
            if x == 0.0 && y == 0.0 && zeros_differ {
                return if greatest {
                    x.is_sign_negative() && !y.is_sign_negative()
                } else {
                    y.is_sign_negative() && !x.is_sign_negative()
                };
            }
            if greatest { y > x } else { y < x }
        }
    }
}

pub fn combine(fold: Fold, dtype: DType, left: Item, right: Item) -> Item {
    let is_given = left.is_given || right.is_given;
    let value = match (fold, left.value, right.value) {
        (Fold::Sum, Value::Integer(x), Value::Integer(y)) => wrap(dtype, x + y),
        (Fold::Sum, Value::Real(x), Value::Real(y)) => Value::Real(round(dtype, x + y)),
        (Fold::Sum, Value::Complex(a, b), Value::Complex(c, d)) => {
            Value::Complex(round(dtype, a + c), round(dtype, b + d))
        }
        (Fold::Product, Value::Integer(x), Value::Integer(y)) => wrap(dtype, x.wrapping_mul(y)),
        (Fold::Product, Value::Real(x), Value::Real(y)) if !is_given && (x == 0.0 || y == 0.0) => {
            Value::Real(0f64.copysign(x.signum() * y.signum()))
        }
        (Fold::Product, Value::Real(x), Value::Real(y)) => Value::Real(round(dtype, x * y)),
        (Fold::Product, Value::Complex(a, b), Value::Complex(c, d)) => {
            let is_zero = |x: (f64, f64)| x == (0.0, 0.0);
            match times(dtype, (a, b), (c, d)) {
                Value::Complex(x, y)
                    if !(x.is_finite() && y.is_finite() || is_given)
                        && (is_zero((a, b)) || is_zero((c, d))) =>
                {
                    Value::Complex(0.0, 0.0)
                }
                product => product,
            }
        }
        (Fold::Any, Value::Integer(x), Value::Integer(y)) => Value::Integer(x | y),
        (Fold::All, Value::Integer(x), Value::Integer(y)) => Value::Integer(x & y),
        (Fold::Minimum | Fold::Maximum, x, y) => {
            if further(fold, x, y, true) {
                y
            } else {
                x
            }
        }
        (Fold::ArgMinimum | Fold::ArgMaximum, x, y) => {
            // The left one may come later, because lanes are folded together.
            let level = !further(fold, x, y, false) && !further(fold, y, x, false);
            let right_first = level && right.place < left.place;
            return if right_first || further(fold, x, y, false) { right } else { left };
        }
        other => panic!("{other:?}"),
    };
    Item { value, place: left.place, is_given }
}

fn converted(fold: Fold, from: DType, to: DType, value: Value) -> Value {
    let is_true = match value {
        Value::Integer(x) => x != 0,
        Value::Real(x) => x != 0.0,
        Value::Complex(x, y) => x != 0.0 || y != 0.0,
        Value::Bits(_) => panic!("no number"),
    };
    match (fold, value) {
        (Fold::Any | Fold::All, _) => Value::Integer(i128::from(is_true)),
        (_, Value::Integer(x)) if from != to => wrap(to, x),
        _ => value,
    }
}

/// Returns the elements of a row, in the dtype in which they are folded.
pub fn items(fold: Fold, dtype: DType, row: &[Value]) -> Vec<Item> {
    let to = accumulator(fold, dtype);
    row.iter()
        .enumerate()
        .map(|(place, &value)| {
            let value = converted(fold, dtype, to, value);
            let is_given = match value {
                Value::Real(x) => !x.is_finite(),
                Value::Complex(x, y) => !(x.is_finite() && y.is_finite()),
                _ => false,
            };
            Item { value, place, is_given }
        })
        .collect()
}

/// Returns the fold of a row, in the dtype of its result (f16 and bf16 are not rounded yet), or `None` if
/// there is no value.
pub fn fold(fold: Fold, dtype: DType, row: &[Value]) -> Option<Value> {
    let to = accumulator(fold, dtype);
    let items = items(fold, dtype, row);
    let both = |left: Item, right: Item| combine(fold, to, left, right);
    let mut segments: Vec<Item> = Vec::new();
    for segment in items.chunks(1024) {
        let mut lanes: Vec<Item> = segment[..segment.len().min(256)].to_vec();
        for (place, &item) in segment.iter().enumerate().skip(256) {
            lanes[place % 256] = both(lanes[place % 256], item);
        }
        for half in [128, 64, 32, 16, 8, 4, 2, 1] {
            for place in half..lanes.len() {
                lanes[place - half] = both(lanes[place - half], lanes[place]);
            }
            lanes.truncate(half);
        }
        segments.push(lanes[0]);
    }
    while segments.len() > 1 {
        segments = segments
            .chunks(2)
            .map(|pair| if let [left, right] = *pair { both(left, right) } else { pair[0] })
            .collect();
    }
    let empty = |integer: i128| {
        Some(match to {
            DType::C64 | DType::C128 => Value::Complex(integer as f64, 0.0),
            _ if to.is_float() => Value::Real(integer as f64),
            _ => Value::Integer(integer),
        })
    };
    match (segments.first(), fold) {
        (Some(item), Fold::ArgMinimum | Fold::ArgMaximum) => Some(Value::Integer(item.place as i128)),
        (Some(item), _) => Some(item.value),
        (None, Fold::Sum | Fold::Any) => empty(0),
        (None, Fold::Product | Fold::All) => empty(1),
        (None, _) => None,
    }
}
