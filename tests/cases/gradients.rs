//! Operations with gradients: tests/nn compares the gradients with differences and with those of wider dtypes,
//! tests/gpu/gradients.rs those of a device with the CPU's.

use selvedge::fuse::Operation;
use selvedge::nn::{Variable, VariableOperand};
use selvedge::tensor::Padding;
use selvedge::types::{Bool, Slice};
use selvedge::{Complex, DType, Device, Result, Tensor};

/// A name, operands of f64 on the CPU, and a function of operands of any float dtype on any device.
pub type Case = (String, Vec<Tensor>, CaseFunction);

/// A function of a case's operands.
pub type CaseFunction = fn(&[Variable]) -> Result<Variable>;

/// A function of one operand.
pub type UnaryCase = (&'static str, fn(&Variable) -> Result<Variable>);

/// Returns distinct numbers from 0.15 to 0.95 that no short ratio relates.
pub fn samples(seed: usize, shape: &[usize]) -> Tensor {
    let golden = 0.618_033_988_749_894_9;
    let number = |index: usize| 0.15 + 0.8 * (((index + 17 * seed + 1) as f64 * golden).fract());
    let numbers: Vec<f64> = (0..shape.iter().product()).map(number).collect();
    Tensor::from_slice(&numbers, shape, &Device::cpu()).unwrap()
}

/// Calls `check` with the name, inputs and function of every elementwise operation that has gradients.
/// The operands have `shapes`, as many as the operation takes.
pub fn each_elementwise(
    shapes: [&[usize]; 3],
    check: impl Fn(&str, &[Tensor], &dyn Fn(&[Variable]) -> Result<Variable>),
) {
    let mut count = 0;
    for &operation in Operation::ALL {
        if !operation.is_differentiable() || !operation.dtypes().contains(DType::F64) {
            continue;
        }
        // The parts of real numbers and the sign have no gradient but 0.
        if matches!(operation, Operation::Sign | Operation::Imag | Operation::Angle) {
            continue;
        }
        let operands = &shapes[..operation.arity()];
        let mut inputs: Vec<Tensor> =
            operands.iter().enumerate().map(|(seed, shape)| samples(seed, shape)).collect();
        if operation == Operation::Acosh {
            inputs[0] = (&inputs[0] + 1.0).unwrap();
        }
        // Only the values of a choice and the first operand of copysign have a gradient.
        match operation {
            Operation::Select => {
                let truths: Vec<Bool> = (0..inputs[1].count()).map(|at| (at % 2 == 0).into()).collect();
                let condition = Tensor::from_slice(&truths, shapes[1], &Device::cpu()).unwrap();
                check("choose", &inputs[1..], &|x| {
                    Variable::new(condition.to(&x[0].device())?).choose(&x[0], &x[1])
                });
            }
            Operation::Copysign => {
                check("copysign", &inputs[..1], &|x| x[0].copysign(&like(&x[0], &inputs[1])?))
            }
            _ => check(operation.name(), &inputs, &|x| {
                let others: Vec<VariableOperand<'_>> = x[1..].iter().map(VariableOperand::from).collect();
                x[0].operation(operation, &others)
            }),
        }
        count += 1;
    }
    assert!(count > 55);
}

/// Returns a tensor with the dtype and on the device of a variable.
fn like(x: &Variable, tensor: &Tensor) -> Result<Tensor> {
    tensor.cast(x.dtype())?.to(&x.device())
}

/// Returns an index on the device of a variable.
fn index(x: &Variable, numbers: &[i64], shape: &[usize]) -> Result<Tensor> {
    Tensor::from_slice(numbers, shape, &x.device())
}

/// Returns a mask on the device of a variable.
fn mask<const COUNT: usize>(x: &Variable, truths: [bool; COUNT]) -> Result<Tensor> {
    Tensor::new(truths, &x.device())
}

/// Returns the result and the gradients of Σ w f(inputs), for fixed weights w.
pub fn result_and_gradients(
    inputs: &[Tensor],
    function: impl Fn(&[Variable]) -> Result<Variable>,
) -> Result<Vec<Tensor>> {
    let leaves = inputs.iter().map(|x| Variable::with_grad(x.clone())).collect::<Result<Vec<_>>>()?;
    let output = function(&leaves)?;
    // As many digits of a weight as the narrowest dtype has.
    let weights = samples(9, &output.shape()).cast(DType::BF16)?;
    output.backward_with(&like(&output, &weights)?)?;
    Ok([output.tensor()].into_iter().chain(leaves.iter().filter_map(Variable::grad)).collect())
}

fn named(cases: Vec<(&str, Vec<Tensor>, CaseFunction)>) -> Vec<Case> {
    cases.into_iter().map(|(name, inputs, function)| (name.to_owned(), inputs, function)).collect()
}

/// The cases of all lists.
pub fn all() -> Vec<Case> {
    [
        operators(),
        reductions(),
        softmax_and_norms(),
        products(),
        views_and_joins(),
        rearrangements(),
        reads_and_writes(),
    ]
    .concat()
}

/// Operators, numbers and constants.
pub fn operators() -> Vec<Case> {
    let x = || vec![samples(0, &[2, 3]), samples(1, &[3])];
    named(vec![
        ("+", x(), |x| &x[0] + &x[1]),
        ("-", x(), |x| &x[0] - x[1].clone()),
        ("* of one variable", vec![samples(0, &[2])], |x| &x[0] * &x[0]),
        ("/", x(), |x| x[0].clone() / &x[1]),
        ("%", x(), |x| &x[0] % &x[1]),
        ("neg", vec![samples(0, &[2])], |x| -&x[0]),
        ("a number on the right", vec![samples(0, &[2])], |x| (&x[0] * 3)? - 1.5),
        ("a number on the left", vec![samples(0, &[2])], |x| 2.0f64 / (1.0f64 - &x[0])?),
        ("a power", vec![samples(0, &[2])], |x| x[0].pow(3)),
        ("bounds beyond the dtype", vec![samples(0, &[3])], |x| x[0].clamp(0.3, 1e300)),
        ("a tensor", vec![samples(0, &[2])], |x| &x[0] * &like(&x[0], &samples(5, &[4, 1]))?),
    ])
}

/// Reductions.
pub fn reductions() -> Vec<Case> {
    let x = || vec![samples(0, &[2, 3, 4])];
    named(vec![
        ("sum", x(), |x| x[0].sum(&[0, -1])),
        ("sum_all", x(), |x| x[0].sum_all()),
        ("sum_keepdim", x(), |x| x[0].sum_keepdim(1)),
        ("mean", x(), |x| x[0].mean(1)),
        ("mean of all", x(), |x| x[0].mean(..)),
        ("max", x(), |x| x[0].max(-1)),
        ("max of two axes", x(), |x| x[0].max_keepdim(&[0, 2])),
        ("min", x(), |x| x[0].min_all()),
        ("prod", x(), |x| x[0].prod(&[0, 2])),
        ("prod with a zero", x(), |x| with_zeros(&x[0], 1)?.prod(1)),
        ("prod with two zeros", x(), |x| with_zeros(&x[0], 2)?.prod_keepdim(1)),
        ("prod_all", x(), |x| x[0].prod_all()),
        ("norm", x(), |x| x[0].norm(2.0, 1)),
        ("norm of p = 1", x(), |x| (&x[0] - 0.5)?.norm(1.0, &[0, 1])),
        ("norm of p = 3", x(), |x| (&x[0] - 0.5)?.norm_keepdim(3.0, -1)),
        ("norm of p = 0.5", x(), |x| x[0].norm_all(0.5)),
        ("norm of infinite p", x(), |x| (&x[0] - 0.5)?.norm(f64::INFINITY, 0)),
        ("norm of p = -inf", x(), |x| (&x[0] - 0.5)?.norm(f64::NEG_INFINITY, 2)),
        ("cumsum", x(), |x| x[0].cumsum(1)),
        ("cumprod", x(), |x| x[0].cumprod(-1)),
        ("cumprod with a zero", x(), |x| with_zeros(&x[0], 1)?.cumprod(1)),
        ("cumprod with two zeros", x(), |x| with_zeros(&x[0], 2)?.cumprod(1)),
        ("var", x(), |x| x[0].var(&[0, 2], 1)),
        ("var_all", x(), |x| x[0].var_all(0)),
        ("std", x(), |x| x[0].std_keepdim(2, 1)),
        ("logsumexp", x(), |x| x[0].logsumexp(1)),
        ("a softmax of operations", x(), |x| {
            let shifted = (&x[0] - &x[0].max_keepdim(-1)?.detach())?.exp()?;
            &shifted / &shifted.sum_keepdim(-1)?
        }),
    ])
}

/// Returns the samples of a reduction with zeros in the last places of axis 1: elements less their values.
fn with_zeros(x: &Variable, count: usize) -> Result<Variable> {
    let last = samples(0, &[2, 3, 4]).narrow(1, 3 - count, count)?;
    let zeros = (&x.narrow(1, 3 - count, count)? - &like(x, &last)?)?;
    Variable::cat(&[&x.narrow(1, 0, 3 - count)?, &zeros], 1)
}

/// Softmax and normalisations.
pub fn softmax_and_norms() -> Vec<Case> {
    let x = || vec![samples(0, &[2, 3, 4])];
    let parameters = || vec![samples(0, &[2, 3, 4]), samples(1, &[3, 4]), samples(2, &[3, 4])];
    named(vec![
        ("softmax", x(), |x| x[0].softmax(-1)),
        ("softmax of another axis", x(), |x| x[0].softmax(1)),
        ("log_softmax", x(), |x| x[0].log_softmax(0)),
        ("log_softmax of one element", vec![samples(0, &[])], |x| x[0].log_softmax(0)),
        ("layer_norm", x(), |x| x[0].layer_norm(&[4], None, None, 1e-5)),
        ("layer_norm with a weight", parameters()[..2].to_vec(), |x| {
            x[0].layer_norm(&[3, 4], Some(&x[1]), None, 1e-5)
        }),
        ("rms_norm", x(), |x| x[0].rms_norm(&[4], None, None)),
        ("rms_norm with a weight", parameters()[..2].to_vec(), |x| {
            x[0].rms_norm(&[3, 4], Some(&x[1]), Some(0.5))
        }),
        ("layer_norm with both", parameters(), |x| x[0].layer_norm(&[3, 4], Some(&x[1]), Some(&x[2]), 1e-5)),
        ("layer_norm beside its residual", parameters(), |x| {
            let residual = (&x[0] * 0.5)?;
            let norm = residual.layer_norm(&[3, 4], Some(&x[1]), Some(&x[2]), 1e-5)?;
            residual + norm.sin()?
        }),
        ("rms_norm beside its residual, which is a leaf", x(), |x| {
            &x[0] + x[0].rms_norm(&[4], None, Some(0.5))?.sin()?
        }),
        ("add_layer_norm", parameters(), |x| {
            let other = (&x[0] * 0.5)?;
            let [sum, norm] = x[0].add_layer_norm(&other, &[3, 4], Some(&x[1]), Some(&x[2]), 1e-5)?;
            (sum * 0.5)? + norm.sin()?
        }),
        ("add_layer_norm of a broadcast operand", parameters(), |x| {
            let [sum, norm] = x[0].add_layer_norm(&x[1], &[4], None, None, 1e-5)?;
            (sum * norm)? + &x[2]
        }),
        ("add_rms_norm", parameters()[..2].to_vec(), |x| {
            let [sum, norm] = x[0].add_rms_norm(&x[0].exp()?, &[3, 4], Some(&x[1]), Some(0.5))?;
            sum.tanh()? + norm.sin()?
        }),
    ])
}

/// Products of vectors, matrices, and batches that broadcast.
pub fn products() -> Vec<Case> {
    let cases: &[(&[usize], &[usize])] = &[
        (&[2, 3], &[3, 4]),
        (&[3], &[3]),
        (&[3], &[3, 2]),
        (&[2, 3], &[3]),
        (&[2, 2, 3], &[2, 3, 2]),
        (&[2, 1, 2, 3], &[3, 3, 2]),
        (&[2, 2, 3], &[3]),
        (&[3], &[2, 3, 2]),
        (&[2, 2, 3], &[3, 2]),
    ];
    let case = |(a, b): &(&[usize], &[usize])| -> Case {
        (format!("{a:?} x {b:?}"), vec![samples(0, a), samples(1, b)], |x| x[0].matmul(&x[1]))
    };
    cases.iter().map(case).collect()
}

/// Views, parts and joins.
pub fn views_and_joins() -> Vec<Case> {
    let x = || vec![samples(0, &[2, 3, 4])];
    let three = || vec![samples(0, &[2, 3]), samples(1, &[2, 1]), samples(2, &[2, 2])];
    named(vec![
        ("reshape", x(), |x| x[0].reshape(&[4, -1])),
        ("flatten", x(), |x| x[0].transpose(0, 2)?.flatten(0, 1)),
        ("squeeze", vec![samples(0, &[2, 1, 3])], |x| x[0].squeeze(1)),
        ("squeeze_all", vec![samples(0, &[1, 2, 1])], |x| x[0].squeeze_all()),
        ("unsqueeze", x(), |x| x[0].unsqueeze(-1)),
        ("permute", x(), |x| x[0].permute(&[2, 0, -2])),
        ("transpose", x(), |x| x[0].transpose(0, -1)),
        ("t", vec![samples(0, &[2, 3])], |x| x[0].t()),
        ("flip", x(), |x| x[0].flip(&[0, 2])),
        ("expand", vec![samples(0, &[2, 1])], |x| x[0].expand(&[3, 2, 4])),
        ("narrow", x(), |x| x[0].narrow(2, 1, 2)),
        ("select", x(), |x| x[0].select(1, -1)),
        ("slice", x(), |x| x[0].slice(2, Slice::from(..).step(-2))),
        ("movedim", x(), |x| x[0].movedim(&[0, 1], &[-1, 0])),
        ("unflatten", x(), |x| x[0].unflatten(2, &[2, -1])),
        ("diagonal", x(), |x| x[0].diagonal(1, 0, 2)),
        ("split", x(), |x| {
            let parts = x[0].split(&[1, 3], -1)?;
            Variable::cat(&[&parts[1], &parts[0].square()?], 2)
        }),
        ("chunk", x(), |x| {
            let parts = x[0].chunk(2, 1)?;
            Variable::cat(&[&parts[1], &parts[0].exp()?], 1)
        }),
        ("unbind", x(), |x| {
            let parts = x[0].unbind(1)?;
            &parts[0] * &(&parts[1] + &parts[2])?
        }),
        ("cat", three(), |x| Variable::cat(&[&x[0], &x[1], &x[2], &x[0]], -1)),
        ("stack", vec![samples(0, &[2]), samples(1, &[2])], |x| Variable::stack(&[&x[1], &x[0]], 1)),
    ])
}

/// Elements that are moved, repeated, masked or sorted.
pub fn rearrangements() -> Vec<Case> {
    let x = || vec![samples(0, &[2, 3, 4])];
    named(vec![
        ("roll", x(), |x| x[0].roll(&[1, -2], &[0, 2])),
        ("repeat", x(), |x| x[0].repeat(&[2, 1, 3, 2])),
        ("repeat of fewer numbers", x(), |x| x[0].repeat(&[2])),
        ("repeat of a scalar", vec![samples(0, &[])], |x| x[0].repeat(&[3])),
        ("pad", x(), |x| x[0].pad(&[(1, 0), (0, 2)], Padding::ZEROS)),
        ("pad by reflection", x(), |x| x[0].pad(&[(1, 1), (2, 1), (0, 3)], Padding::Reflect)),
        ("pad by repetition", x(), |x| x[0].pad(&[(0, 3), (2, 0)], Padding::Replicate)),
        ("pad by the other end", x(), |x| x[0].pad(&[(0, 0), (1, 3), (4, 0)], Padding::Circular)),
        ("tril", x(), |x| x[0].tril(1)),
        ("triu", x(), |x| x[0].triu(0)),
        ("masked_fill", x(), |x| x[0].masked_fill(&mask(&x[0], [true, false, true, false])?, 7)),
        ("masked_fill of a repeated variable", vec![samples(0, &[2, 1])], |x| {
            x[0].masked_fill(&mask(&x[0], [true, false, true])?, -1.5)
        }),
        ("masked_select", x(), |x| x[0].masked_select(&mask(&x[0], [true, false, true, true])?)),
        ("masked_select of a repeated variable", vec![samples(0, &[2, 1])], |x| {
            x[0].masked_select(&mask(&x[0], [true, false, true])?)
        }),
        ("sort", x(), |x| Ok(x[0].sort(1, false)?.0)),
        ("sort descending", x(), |x| Ok(x[0].sort(-1, true)?.0)),
        ("topk", x(), |x| Ok(x[0].topk(2, 2, true)?.0)),
        ("the smallest", x(), |x| Ok(x[0].topk(2, 1, false)?.0)),
    ])
}

/// Reads and writes by index.
pub fn reads_and_writes() -> Vec<Case> {
    let x = || vec![samples(0, &[3, 4])];
    named(vec![
        ("index_select", x(), |x| x[0].index_select(1, &index(&x[0], &[2, 0, 2, -1], &[4])?)),
        ("gather", x(), |x| x[0].gather(0, &index(&x[0], &[0, 2, 2, 1, 0, 2, 0, 0], &[2, 4])?)),
        ("take", x(), |x| x[0].take(&index(&x[0], &[0, 5, -1, 5], &[2, 2])?)),
        ("take_along_axis", x(), |x| x[0].take_along_axis(1, &index(&x[0], &[2, 0, 2], &[3, 1])?)),
        ("take_along_axis of a repeated variable", vec![samples(0, &[1, 4])], |x| {
            x[0].take_along_axis(1, &index(&x[0], &[2, 0, 2, 3], &[2, 2])?)
        }),
        ("index_add", vec![samples(0, &[3, 4]), samples(1, &[3, 3])], |x| {
            x[0].index_add(1, &index(&x[0], &[2, 0, 2], &[3])?, &x[1])
        }),
        ("index_add of repeated elements", vec![samples(0, &[3, 4]), samples(1, &[4])], |x| {
            x[0].index_add(0, &index(&x[0], &[2, 0, 2], &[3])?, &x[1])
        }),
        ("scatter_add", vec![samples(0, &[3, 4]), samples(1, &[2, 4])], |x| {
            x[0].scatter_add(0, &index(&x[0], &[0, 2, 2, 1, 0, 2, 0, 0], &[2, 4])?, &x[1])
        }),
        ("index_put", vec![samples(0, &[3, 4]), samples(1, &[2])], |x| {
            let (rows, columns) = (index(&x[0], &[0, 2], &[2])?, index(&x[0], &[-1, 1], &[2])?);
            x[0].index_put(&[&rows, &columns], &x[1], false)
        }),
        ("index_put of a row", vec![samples(0, &[3, 4]), samples(1, &[4])], |x| {
            x[0].index_put(&[&index(&x[0], &[2, 0], &[2])?], &x[1], false)
        }),
        ("index_put with sums", vec![samples(0, &[3, 4]), samples(1, &[3])], |x| {
            let (rows, columns) = (index(&x[0], &[0, 2, 0], &[3])?, index(&x[0], &[1, 1, 1], &[3])?);
            x[0].index_put(&[&rows, &columns], &x[1], true)
        }),
        ("embedding", x(), |x| x[0].embedding(&index(&x[0], &[1, 1, 0, 1], &[2, 2])?)),
        ("embedding of one index", x(), |x| x[0].embedding(&index(&x[0], &[2], &[])?)),
    ])
}

/// Functions of complex numbers of shape 2 x 3 with parts from 0.15 to 0.95.
pub const COMPLEX: &[UnaryCase] = &[
    ("operators", |z| (z * &(z + Complex::new(0.5f64, 2.0))?)? / &(z - 3.0f64)?),
    ("conj", |z| z.conj()? * z),
    ("square", |z| z.square()),
    ("reciprocal", |z| z.reciprocal()),
    ("sqrt", |z| z.sqrt()),
    ("exp", |z| z.exp()),
    ("log", |z| z.log()),
    ("sin and cosh", |z| z.sin()? * z.cosh()?),
    ("tanh", |z| z.tanh()),
    ("pow", |z| z.pow(3)),
    ("sign", |z| z.sign()),
    ("sum and mean", |z| z.sum_keepdim(0)? * z.mean(1)?.unsqueeze(-1)?),
    ("prod", |z| z.prod(1)),
    ("cumsum", |z| z.cumsum(1)),
    ("cumprod", |z| z.cumprod(1)),
    ("matmul", |z| z.matmul(&z.t()?)),
    ("views", |z| z.flip(&[1])?.tril(0)?.roll(&[1], &[1])?.repeat(&[1, 2])?.t()),
    ("reads", |z| z.index_select(1, &index(z, &[2, 0, 2], &[3])?)),
    ("sums at an index", |z| z.index_add(1, &index(z, &[2, 0, 2], &[3])?, &z.square()?)),
    ("abs", |z| z.abs()?.cast(z.dtype())? * z),
    ("norm", |z| z.norm(2.0, 1)),
    ("norm of p = 1", |z| z.norm(1.0, 0)),
    ("norm of p = 3", |z| z.norm(3.0, 1)),
];
