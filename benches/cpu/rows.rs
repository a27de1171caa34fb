//! The operations that are compared: the inputs, NumPy's call, ours, and the goal of each.

use std::hint::black_box;
use std::path::Path;

use selvedge::tensor::{Device, Fused, Generator, Tensor};
use selvedge::{Complex, DType};
use serde_json::{Value, json};

use crate::harness::random::Random;
use crate::harness::report::Failure;

/// Columns of the reductions over rows.
const COLUMNS: usize = 1024;
/// Columns of the reductions over the first axis of a narrow matrix.
const FEW: usize = 4;
/// 64 MiB of f32.
const LARGE: usize = 1 << 24;
const SOFTMAX: [usize; 2] = [4096, 4096];

/// One run of our side on the inputs.
type Own = Box<dyn Fn(&[Tensor]) -> selvedge::Result<()>>;

/// Uniform random numbers, truncated to integers where the dtype is one.
#[derive(Clone)]
pub struct Input {
    dtype: DType,
    shape: Vec<usize>,
    low: f64,
    high: f64,
}

impl Input {
    fn new(dtype: DType, shape: &[usize], (low, high): (f64, f64)) -> Input {
        Input { dtype, shape: shape.to_vec(), low, high }
    }

    /// The input in the words of numpy_turns.py.
    pub fn to_json(&self) -> Value {
        json!({
            "dtype": self.dtype.to_string(), "shape": self.shape, "low": self.low, "high": self.high,
        })
    }

    /// The input as a tensor on the CPU.
    pub fn tensor(&self, random: &mut Random) -> Result<Tensor, Failure> {
        let count = self.shape.iter().product();
        let mut number =
            || self.low + (self.high - self.low) * ((random.bits() >> 11) as f64 / (1u64 << 53) as f64);
        let (shape, cpu) = (&self.shape[..], &Device::cpu());
        let tensor = match self.dtype {
            DType::F32 => Tensor::from_vec((0..count).map(|_| number() as f32).collect(), shape, cpu),
            DType::F64 => Tensor::from_vec((0..count).map(|_| number()).collect(), shape, cpu),
            DType::I32 => Tensor::from_vec((0..count).map(|_| number() as i32).collect(), shape, cpu),
            DType::I64 => Tensor::from_vec((0..count).map(|_| number() as i64).collect(), shape, cpu),
            DType::C64 => {
                let mut complex = || Complex::new(number() as f32, number() as f32);
                Tensor::from_vec((0..count).map(|_| complex()).collect(), shape, cpu)
            }
            other => return Err(format!("no random numbers of {other}").into()),
        };
        // In memory of the library, which has large pages as NumPy's has.
        Ok(tensor?.copy()?)
    }
}

/// One comparison.
pub struct Row {
    pub name: String,
    pub goal: f64,
    pub inputs: Vec<Input>,
    /// NumPy's statement, of a, b, c and out.
    pub call: String,
    pub own: Own,
}

/// A row of a function that returns a tensor.
fn row(
    name: impl Into<String>,
    goal: f64,
    inputs: Vec<Input>,
    call: impl Into<String>,
    own: impl Fn(&[Tensor]) -> selvedge::Result<Tensor> + 'static,
) -> Row {
    let own = move |inputs: &[Tensor]| own(inputs).map(|result| drop(black_box(result)));
    Row { name: name.into(), goal, inputs, call: call.into(), own: Box::new(own) }
}

/// The rows of one count of elements.
pub fn of_count(count: usize) -> Vec<Row> {
    let mut rows = functions(count);
    rows.extend(arithmetic(count));
    rows.push(chain(count));
    rows.extend(reductions(count));
    rows.extend(scans_and_columns(count));
    let positions = Input::new(DType::I64, &[count], (0.0, count as f64));
    rows.push(row(
        "take, f32",
        1.1,
        vec![Input::new(DType::F32, &[count], (-1.0, 1.0)), positions],
        "np.take(a, b, out=out, mode='clip')",
        |x| x[0].take(&x[1]),
    ));
    rows
}

/// Functions of one argument, and the power.
pub fn functions(count: usize) -> Vec<Row> {
    type Function = fn(&Tensor) -> selvedge::Result<Tensor>;
    let functions: [(&str, f64, Function); 4] = [
        ("exp", 1.0, Tensor::exp),
        ("sin", 1.0, Tensor::sin),
        ("tanh", 1.0, Tensor::tanh),
        ("log", 1.6, Tensor::log),
    ];
    let mut rows = Vec::new();
    for dtype in [DType::F32, DType::F64] {
        for (name, goal_of_f64, function) in functions {
            let range = if name == "log" { (0.01, 100.0) } else { (-10.0, 10.0) };
            rows.push(row(
                format!("{name}, {dtype}"),
                if dtype == DType::F32 { 1.1 } else { goal_of_f64 },
                vec![Input::new(dtype, &[count], range)],
                format!("np.{name}(a, out=out)"),
                move |x| function(&x[0]),
            ));
        }
    }
    let inputs = [(0.01, 10.0), (-3.0, 3.0)].map(|range| Input::new(DType::F32, &[count], range));
    rows.push(row("pow, f32", 1.5, inputs.to_vec(), "np.power(a, b, out=out)", |x| x[0].pow(&x[1])));
    rows
}

/// The sort of 10^7 elements.
pub fn sort() -> Row {
    let inputs = vec![Input::new(DType::F32, &[10_000_000], (-1.0, 1.0))];
    row("sort of 10^7, f32", 3.0, inputs, "np.sort(a)", |x| x[0].sorted(-1, false))
}

/// Sums, products, quotients and maxima of two arrays. Integers are divided by `floor_divide`; complex numbers have no maximum.
fn arithmetic(count: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for dtype in [DType::F32, DType::F64, DType::I32, DType::I64, DType::C64] {
        // Sums and products of the integers do not overflow, and no divisor is 0.
        let range = match dtype {
            DType::I32 => (1.0, 4e4),
            DType::I64 => (1.0, 2e9),
            _ => (0.5, 2.0),
        };
        let inputs = vec![Input::new(dtype, &[count], range); 2];
        let is_integer = matches!(dtype, DType::I32 | DType::I64);
        let mut add = |name: &str, call: &str, own: fn(&[Tensor]) -> selvedge::Result<Tensor>| {
            let call = format!("np.{call}(a, b, out=out)");
            rows.push(row(format!("{name}, {dtype}"), 1.2, inputs.clone(), call, own));
        };
        add("add", "add", |x| x[0].add(&x[1]));
        add("mul", "multiply", |x| x[0].mul(&x[1]));
        match is_integer {
            true => add("div", "floor_divide", |x| x[0].floor_divide(&x[1])),
            false => add("div", "divide", |x| x[0].div(&x[1])),
        }
        if dtype != DType::C64 {
            add("maximum", "maximum", |x| x[0].maximum(&x[1]));
        }
    }
    rows
}

/// Five operations on three arrays.
fn chain(count: usize) -> Row {
    let fused = Fused::new(|[a, b, c]| (a * b + c).relu() * 2.0 - a);
    row(
        "5 operations fused, f32",
        0.25,
        vec![Input::new(DType::F32, &[count], (-1.0, 1.0)); 3],
        "np.multiply(a, b, out=out); np.add(out, c, out=out); np.maximum(out, 0, out=out); \
         np.multiply(out, 2, out=out); np.subtract(out, a, out=out)",
        move |x| fused.run([&x[0], &x[1], &x[2]]),
    )
}

/// Reductions of all elements and of rows.
fn reductions(count: usize) -> Vec<Row> {
    let flat = vec![Input::new(DType::F32, &[count], (-1.0, 1.0))];
    let matrix = vec![Input::new(DType::F32, &[count / COLUMNS, COLUMNS], (-1.0, 1.0))];
    let of_rows = |name: &str| format!("{name} of rows of {COLUMNS}, f32");
    vec![
        row("sum, f32", 1.0, flat.clone(), "np.sum(a)", |x| x[0].sum_all()),
        row("max, f32", 1.0, flat.clone(), "np.max(a)", |x| x[0].max_all()),
        row("argmax, f32", 1.0, flat.clone(), "np.argmax(a)", |x| x[0].argmax_all()),
        row("var, f32", 1.0, flat, "np.var(a)", |x| x[0].var_all(0)),
        row(of_rows("sum"), 1.0, matrix.clone(), "np.sum(a, axis=1)", |x| x[0].sum(1)),
        row(of_rows("max"), 1.0, matrix.clone(), "np.max(a, axis=1)", |x| x[0].max(1)),
        row(of_rows("argmax"), 1.3, matrix.clone(), "np.argmax(a, axis=1)", |x| x[0].argmax(1)),
        row(of_rows("var"), 1.0, matrix, "np.var(a, axis=1)", |x| x[0].var(1, 0)),
    ]
}

/// The running sum, and reductions over the long axis of a narrow matrix.
fn scans_and_columns(count: usize) -> Vec<Row> {
    let flat = vec![Input::new(DType::F32, &[count], (-1.0, 1.0))];
    let narrow = vec![Input::new(DType::F32, &[count / FEW, FEW], (-1.0, 1.0))];
    let of_columns = |name: &str| format!("{name} of {FEW} columns, f32");
    vec![
        row("cumsum, f32", 0.2, flat, "np.cumsum(a, out=out)", |x| x[0].cumsum(0)),
        row(of_columns("sum"), 0.2, narrow.clone(), "np.sum(a, axis=0)", |x| x[0].sum(0)),
        row(of_columns("argmax"), 0.2, narrow, "np.argmax(a, axis=0)", |x| x[0].argmax(0)),
    ]
}

/// Random numbers, and a dropout that keeps three quarters of the elements. Both sides draw from Philox 4x32 or 4x64 of ten
/// rounds.
pub fn random(count: usize) -> Vec<Row> {
    type Draw = fn(&Generator, &[usize], DType, &Device) -> selvedge::Result<Tensor>;
    let input = Input::new(DType::F32, &[count], (-1.0, 1.0));
    let draw = |name: &str, call: &str, draw: Draw| {
        let (generator, cpu) = (Generator::new(7), Device::cpu());
        let own = move |x: &[Tensor]| draw(&generator, x[0].shape(), DType::F32, &cpu);
        row(name, 0.5, vec![input.clone()], format!("philox.{call}(dtype=np.float32, out=out)"), own)
    };
    let (generator, cpu) = (Generator::new(7), Device::cpu());
    let choose = Fused::new(|[is_kept, x]| is_kept.choose(x * (1.0 / 0.75), 0.0));
    vec![
        draw("rand, f32", "random", Generator::rand),
        draw("randn, f32", "standard_normal", Generator::randn),
        row(
            "dropout, f32",
            0.5,
            vec![input.clone()],
            "philox.random(dtype=np.float32, out=out); np.less(out, 0.75, out=out); \
             np.multiply(out, a, out=out); np.multiply(out, 1 / 0.75, out=out)",
            move |x| {
                let is_kept = generator.bernoulli(0.75, x[0].shape(), DType::Bool, &cpu)?;
                choose.run([&is_kept, &x[0]])
            },
        ),
    ]
}

/// Copies to a vector and a file in this folder, a softmax composed of five operations, and a small sum.
pub fn of_one_size(folder: &Path) -> Vec<Row> {
    let large = vec![Input::new(DType::F32, &[LARGE], (-1.0, 1.0))];
    let (own_file, numpy_file) = (folder.join("own.npy"), folder.join("numpy.npy"));
    vec![
        Row {
            name: "to_vec of 64 MiB, f32".to_owned(),
            goal: 1.2,
            inputs: large.clone(),
            call: "a.copy()".to_owned(),
            own: Box::new(|x| x[0].to_vec::<f32>().map(|elements| drop(black_box(elements)))),
        },
        Row {
            name: ".npy write of 64 MiB, f32".to_owned(),
            goal: 1.2,
            inputs: large,
            call: format!("np.save({:?}, a)", numpy_file.to_string_lossy()),
            own: Box::new(move |x| x[0].write_npy(&own_file)),
        },
        row(
            "softmax of 4096 x 4096 composed, f32",
            0.8,
            vec![Input::new(DType::F32, &SOFTMAX, (-5.0, 5.0))],
            "np.subtract(a, a.max(axis=1, keepdims=True), out=out); np.exp(out, out=out); \
             np.divide(out, out.sum(axis=1, keepdims=True), out=out)",
            |x| {
                let exponentials = x[0].sub(&x[0].max_keepdim(1)?)?.exp()?;
                exponentials.div(&exponentials.sum_keepdim(1)?)
            },
        ),
        row(
            "add of 4 elements, f32",
            1.2,
            vec![Input::new(DType::F32, &[4], (-1.0, 1.0)); 2],
            "a + b",
            |x| x[0].add(&x[1]),
        ),
    ]
}
