//! Fused functions: gradients of closures with and without reductions over groups, against central differences.

use selvedge::fuse::{Expr, ExpressionTree, Operation};
use selvedge::nn::{DynamicFusedFunction, FusedFunction, Variable};
use selvedge::{DType, Device, Tensor};

use super::differences::check;
use crate::cases::samples;

/// Returns the softmax of a group.
pub fn softmax(x: Expr<'_>) -> Expr<'_> {
    let e = (x - x.max_group()).exp();
    e / e.sum_group()
}

fn layer_norm<'g>([x, weight, bias]: [Expr<'g>; 3]) -> Expr<'g> {
    let deviation = x - x.mean_group();
    deviation * (deviation.square().mean_group() + 1e-5).rsqrt() * weight + bias
}

#[test]
fn gradients_of_fused_functions_are_their_differences() {
    let matrix = samples(1, &[3, 5]);
    let (row, column) = (samples(2, &[5]), samples(3, &[3, 1]));
    let number = samples(4, &[]);

    let functions = [
        ("an elementwise function", FusedFunction::new(|[x, y]| (x * y).tanh() + y.exp() * 2.0)),
        ("softmax of rows", FusedFunction::new(|[x, y]| softmax(x * y))),
        ("softmax of columns", FusedFunction::new(|[x, y]| softmax(x * y)).over(0)),
    ];
    for (name, function) in functions {
        for y in [&matrix, &row, &column, &number] {
            let inputs = [samples(5, &[3, 5]), y.clone()];
            check(name, &inputs, |x| function.run([&x[0], &x[1]]));
        }
    }
    let function = FusedFunction::new(layer_norm);
    check("layer norm", &[matrix.clone(), row.clone(), samples(6, &[5])], |x| {
        function.run([&x[0], &x[1], &x[2]])
    });

    // Operands that only reductions read, so that their gradients have one value for each group.
    type Pair = for<'g> fn([Expr<'g>; 2]) -> Expr<'g>;
    let pairs: [(&str, Pair); 5] = [
        ("an operand that is only summed", |[x, y]| x * y.sum_group()),
        ("an operand less its mean", |[x, y]| x - y.mean_group()),
        ("elements less the mean of others", |[x, y]| y - x.mean_group()),
        ("sums of both", |[x, y]| x.sum_group() * y.square().sum_group()),
        ("the larger of two sums", |[x, y]| x.sum_group().maximum(y.max_group())),
    ];
    for (name, function) in pairs {
        for axes in [-1, 0] {
            let function = FusedFunction::new(function).over(axes);
            for y in [&matrix, &row, &column, &number, &samples(7, &[1]), &samples(7, &[1, 1])] {
                let inputs = [samples(5, &[3, 5]), y.clone()];
                check(name, &inputs, |x| function.run([&x[0], &x[1]]));
            }
        }
    }

    type Function = for<'g> fn(Expr<'g>) -> Expr<'g>;
    let functions: [(&str, Function); 11] = [
        ("the mean of a sum", |x| x.square().sum_group().mean_group()),
        ("the sum of a sum", |x| x.square().sum_group().sum_group() * x),
        ("the largest of a sum", |x| x.square().sum_group().max_group()),
        ("a value per group", |x| x.square().sum_group()),
        ("the mean of values of a group", |x| x.mean_group().exp()),
        ("a value of a group used by its elements", |x| x * x.square().sum_group()),
        ("a reduction of a reduction", |x| (x - x.mean_group()).square().sum_group().sqrt() * x),
        ("the extremes", |x| (x.max_group() - x.min_group()) * x),
        ("the product", |x| x.prod_group() + x),
        ("an element chosen by an index", |x| x.at_group(x.argmax_group()) * x),
        ("a function that only some elements use", |x| x.gt(0.5).choose(x.sum_group(), x)),
    ];
    for (name, function) in functions {
        let function = FusedFunction::new(move |[x]| function(x));
        check(name, std::slice::from_ref(&matrix), |x| function.run([&x[0]]));
    }
    // A value of a group that is given for each group.
    let function = FusedFunction::new(|[x, y]| x * y.sum_group());
    check("the sum of a repeated operand", &[matrix.clone(), column], |x| function.run([&x[0], &x[1]]));
}

#[test]
fn elements_share_gradients_at_kinks_and_zeros_of_a_product_as_pytorch_has_them() {
    let gradient = |function: FusedFunction<1>, x: &[f64]| {
        let x = Variable::with_grad(Tensor::from_slice(x, &[x.len()], &Device::cpu()).unwrap()).unwrap();
        function.run([&x]).unwrap().sum_all().unwrap().backward().unwrap();
        x.grad().unwrap().to_vec::<f64>().unwrap()
    };
    let largest = || FusedFunction::new(|[x]| x.max_group());
    assert_eq!(gradient(largest(), &[2.0, 3.0, 3.0]), [0.0, 0.5, 0.5]);
    let product = || FusedFunction::new(|[x]| x.prod_group());
    assert_eq!(gradient(product(), &[2.0, 0.0, 3.0]), [0.0, 6.0, 0.0]);
    assert_eq!(gradient(product(), &[0.0, 0.0, 3.0]), [0.0; 3]);
    let constant = FusedFunction::new(|[x]| x.floor() + x.argmax_group().cast(DType::F64));
    assert_eq!(gradient(constant, &[2.5, 0.5]), [0.0; 2]);
}

#[test]
fn a_fused_function_takes_numbers_constants_and_narrow_floats() {
    let x = Tensor::new([[0.5f32, -1.0], [2.0, 1.5]], &Device::cpu()).unwrap();
    let weight = Tensor::new([2.0f32, 3.0], &Device::cpu()).unwrap();
    let function = FusedFunction::new(|[x, weight, scale]| x * weight * scale);
    let leaf = Variable::with_grad(x.clone()).unwrap();
    let operands: [selvedge::nn::VariableOperand<'_>; 3] = [(&leaf).into(), (&weight).into(), 10.0.into()];
    let result = function.run(operands).unwrap();
    assert_eq!(result.tensor().to_vec::<f32>().unwrap(), [10.0, -30.0, 40.0, 45.0]);
    result.sum_all().unwrap().backward().unwrap();
    assert_eq!(leaf.grad().unwrap().to_vec::<f32>().unwrap(), [20.0, 30.0, 20.0, 30.0]);
    // Without an operand that requires a gradient nothing is recorded.
    assert!(
        !function
            .run([&Variable::new(x.clone()), &Variable::new(x.clone()), &Variable::new(x.clone())])
            .unwrap()
            .requires_grad()
    );

    let [narrow, wide] = [x.cast(DType::BF16).unwrap(), x].map(|x| {
        let leaf = Variable::with_grad(x).unwrap();
        let squares = FusedFunction::new(|[x]| softmax(x)).run([&leaf]).unwrap().square().unwrap();
        squares.sum_all().unwrap().backward().unwrap();
        leaf.grad().unwrap().cast(DType::F32).unwrap().to_vec::<f32>().unwrap()
    });
    for (found, wanted) in narrow.into_iter().zip(wide) {
        assert!((found - wanted).abs() <= 0.01, "{found} {wanted}");
    }
}

#[test]
fn a_value_changed_before_the_backward_of_a_fused_function_is_an_error() {
    let x = Variable::with_grad(Tensor::new([1.0f64, 2.0], &Device::cpu()).unwrap()).unwrap();
    let y = FusedFunction::new(|[x]| x * x).run([&x]).unwrap();
    selvedge::nn::no_grad(|| x.update(|x| x.add(1.0).map(|_| ()))).unwrap();
    let error = y.sum_all().unwrap().backward().unwrap_err().to_string();
    assert!(error.contains("a fused function") && error.contains("changed in place"), "{error}");
}

#[test]
fn gradients_of_functions_of_trees_are_their_differences() {
    let [x, y, z] = [0, 1, 2].map(|index| ExpressionTree::input(index).unwrap());
    let binary = |operation, left: &ExpressionTree, right: &ExpressionTree| {
        ExpressionTree::operation(operation, &[left.clone(), right.clone()]).unwrap()
    };
    let product = binary(Operation::Mul, &x, &y);
    let tanh = ExpressionTree::operation(Operation::Tanh, std::slice::from_ref(&product)).unwrap();
    let trees = vec![binary(Operation::Add, &tanh, &z), binary(Operation::Sub, &product, &z)];
    let function = DynamicFusedFunction::from_trees(trees).unwrap();
    assert_eq!((function.inputs(), function.outputs()), (3, 2));
    let inputs = [samples(1, &[3, 5]), samples(2, &[5]), samples(3, &[3, 1])];
    for output in 0..2 {
        check("a function of trees", &inputs, |x| {
            Ok(function.run(&[(&x[0]).into(), (&x[1]).into(), (&x[2]).into()])?.swap_remove(output))
        });
    }
}

#[test]
fn functions_of_trees_refuse_none_and_another_number_of_operands() {
    assert!(DynamicFusedFunction::from_trees(Vec::new()).is_err());
    let function = DynamicFusedFunction::from_trees(vec![ExpressionTree::input(1).unwrap()]).unwrap();
    let x = Variable::with_grad(samples(1, &[2])).unwrap();
    let error = function.run(&[(&x).into()]).unwrap_err();
    assert!(matches!(error, selvedge::Error::LengthMismatch { wanted: 2, found: 1, .. }), "{error}");
    let error = function.run(&[1.0.into(), 2.0.into()]).unwrap_err().to_string();
    assert!(error.contains("no tensors"), "{error}");
}
