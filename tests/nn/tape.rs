//! The tape: accumulation, scopes, custom functions and errors.

use selvedge::nn::{
    Function, FunctionContext, Variable, checkpoint, detect_anomaly, is_grad_enabled, no_grad,
};
use selvedge::{Device, Error, Result, Tensor};

/// Returns a leaf of these elements.
pub fn leaf(numbers: &[f64]) -> Variable {
    Variable::with_grad(Tensor::from_slice(numbers, &[numbers.len()], &Device::cpu()).unwrap()).unwrap()
}

fn grad(x: &Variable) -> Vec<f64> {
    x.grad().unwrap().to_vec().unwrap()
}

/// Checks the error and its text.
fn refuses<T>(result: Result<T>, text: &str) {
    match result {
        Err(error @ (Error::Backward { .. } | Error::InvalidArgument { .. })) => {
            assert_eq!(error.to_string(), text)
        }
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("no error, but wanted: {text}"),
    }
}

#[test]
fn gradients_of_leaves_add_up_until_they_are_zeroed() {
    let x = leaf(&[1.0, 2.0]);
    let loss = || x.square().unwrap().sum_all().unwrap();
    loss().backward().unwrap();
    let first = x.grad().unwrap();
    loss().backward().unwrap();
    assert_eq!(grad(&x), [4.0, 8.0]);
    assert_eq!(first.to_vec::<f64>().unwrap(), [2.0, 4.0], "an earlier handle keeps its elements");
    x.zero_grad();
    assert!(x.grad().is_none());
    loss().backward().unwrap();
    assert_eq!(grad(&x), [2.0, 4.0]);
}

#[test]
fn a_variable_used_by_many_gets_the_sum_of_their_gradients() {
    let x = leaf(&[3.0]);
    let y = x.square().unwrap();
    // x² · x² + x² + x, whose derivative is 4 x³ + 2 x + 1.
    let z = (&(&(&y * &y).unwrap() + &y).unwrap() + &x).unwrap();
    z.backward().unwrap();
    assert_eq!(grad(&x), [4.0 * 27.0 + 6.0 + 1.0]);
}

#[test]
fn a_long_chain_neither_recurses_in_the_backward_nor_in_its_drop() {
    let x = leaf(&[1.0]);
    let mut y = x.clone();
    for _ in 0..20_000 {
        y = (&y + 0.5).unwrap();
    }
    let other = y.exp().unwrap();
    y.backward().unwrap();
    assert_eq!(grad(&x), [1.0]);
    drop((other, y));
}

#[test]
fn only_operands_that_require_a_gradient_get_one() {
    let (x, y) = (leaf(&[2.0]), Variable::new(Tensor::new([5.0f64], &Device::cpu()).unwrap()));
    assert!(x.is_leaf() && y.is_leaf() && !y.requires_grad());
    let z = (&x * &y).unwrap();
    assert!(z.requires_grad() && !z.is_leaf());
    z.backward().unwrap();
    assert_eq!(grad(&x), [5.0]);
    assert!(y.grad().is_none() && z.grad().is_none());
    assert!(!(&y * 2.0).unwrap().requires_grad());
    assert!(!x.floor().unwrap().requires_grad() && !x.gt(1.0).unwrap().requires_grad());
}

#[test]
fn no_grad_and_detach_stop_the_tape() {
    let x = leaf(&[2.0]);
    assert!(!no_grad(|| no_grad(|| x.exp())).unwrap().requires_grad());
    assert!(is_grad_enabled() && x.exp().unwrap().requires_grad());
    let panicked = std::panic::catch_unwind(|| no_grad(|| std::panic::resume_unwind(Box::new(()))));
    assert!(panicked.is_err() && is_grad_enabled());
    let detached = x.square().unwrap().detach();
    (&x * &detached).unwrap().backward().unwrap();
    assert_eq!(grad(&x), [4.0]);
}

#[test]
fn a_backward_without_a_gradient_needs_one_element() {
    let x = leaf(&[1.0, 2.0]);
    let y = x.exp().unwrap();
    refuses(
        y.backward(),
        "the backward of exp: found a result of shape [2] without a gradient; wanted one element, or backward_with and \
         a gradient",
    );
    let gradient = Tensor::new([1.0f64], &Device::cpu()).unwrap();
    refuses(
        y.backward_with(&gradient),
        "the backward of exp: found a gradient of f64 of shape [1]; wanted f64 of shape [2]",
    );
    refuses(
        y.detach().backward(),
        "the backward of a constant: found a variable that requires no gradient; wanted a variable that requires one: a \
         leaf of with_grad, or a result of it",
    );
    assert!(x.grad().is_none());
    assert!(Variable::with_grad(Tensor::new([1i32], &Device::cpu()).unwrap()).is_err());
}

#[test]
fn gradients_that_are_not_finite_are_errors_that_name_the_operation_while_checks_are_on() {
    let infinite = "the backward of sqrt: found a gradient of operand 0 with infinite elements, of shape [2]; wanted \
                    finite gradients within detect_anomaly";
    // The gradient of the square is 0 times that infinity.
    let loss = |x: &Variable| x.square()?.sqrt()?.sum_all();
    let x = leaf(&[0.0, 3.0]);
    refuses(detect_anomaly(|| loss(&x)?.backward()), infinite);
    assert!(x.grad().is_none(), "a failed backward changes no gradient");
    refuses(
        detect_anomaly(|| checkpoint(move |x| x[0].square()?.sqrt(), &[&x])?.sum_all()?.backward()),
        infinite,
    );
    loss(&x).unwrap().backward().unwrap();
    assert!(grad(&x)[0].is_nan());

    let (x, nan) = (leaf(&[1.0, 2.0]), Tensor::new([f64::NAN, 1.0], &Device::cpu()).unwrap());
    let of_nan = "the backward of mul: found a gradient of operand 0 with NaN elements, of shape [2]; wanted finite \
                  gradients within detect_anomaly";
    let product = || (&x * &Variable::new(nan.clone())).unwrap();
    refuses(detect_anomaly(|| product().sum_all()?.backward()), of_nan);
    refuses(
        detect_anomaly(|| x.exp()?.backward_with(&nan)),
        "the backward of exp: found a gradient of the result with NaN elements, of shape [2]; wanted finite gradients \
         within detect_anomaly",
    );
    // The checks end with the scope, after a panic too, and finite gradients pass.
    let panicked = std::panic::catch_unwind(|| detect_anomaly(|| std::panic::resume_unwind(Box::new(()))));
    assert!(panicked.is_err() && product().sum_all().unwrap().backward().is_ok());
    let y = leaf(&[1.0]);
    detect_anomaly(|| y.exp()?.backward()).unwrap();
    assert_eq!(grad(&y), [1f64.exp()]);
}

#[test]
fn a_second_backward_needs_a_retained_graph() {
    let x = leaf(&[3.0]);
    let y = x.square().unwrap();
    y.backward_retain_graph(None).unwrap();
    y.backward().unwrap();
    assert_eq!(grad(&x), [12.0]);
    let freed = "the backward of square: found saved values that an earlier backward has freed; wanted one backward of a \
                 graph, or backward_retain_graph before the last";
    refuses(y.backward(), freed);
    refuses((&y * 2.0).unwrap().backward(), freed);
    assert_eq!(grad(&x), [12.0], "a failed backward changes no gradient");
}

#[test]
fn a_backward_through_a_value_changed_in_place_is_an_error() {
    let x = leaf(&[3.0]);
    let (square, sum) = (x.square().unwrap(), (&x + 1.0).unwrap());
    no_grad(|| x.update(|value| value.sub(1.0).map(drop))).unwrap();
    assert_eq!(x.tensor().to_vec::<f64>().unwrap(), [2.0]);
    refuses(
        square.backward(),
        "the backward of square: found a value of shape [1] at version 1, which was changed in place since the \
         operation ran; wanted version 0; update it after the backward",
    );
    // A sum reads no values.
    sum.backward().unwrap();
    assert_eq!(grad(&x), [1.0]);
    refuses(
        x.update(|value| value.fill(0.0).map(drop)),
        "update: found a leaf that requires a gradient; wanted an update within no_grad",
    );
    refuses(
        no_grad(|| sum.update(|value| value.fill(0.0).map(drop))),
        "update: found the result of add; wanted a leaf or a constant",
    );
}

/// max(x, y) with the gradient of x alone, and of the wrong shape if it is `wrong`.
struct First {
    wrong: bool,
}

impl Function for First {
    fn name(&self) -> &'static str {
        "first"
    }

    fn forward(&self, context: &mut FunctionContext, inputs: &[&Tensor]) -> Result<Tensor> {
        context.save_result();
        context.save_input(1);
        context.save(inputs[0].sign()?);
        inputs[0].maximum(inputs[1])
    }

    fn backward(&self, saved: &[Tensor], gradient: &Tensor) -> Result<Vec<Option<Tensor>>> {
        if self.wrong {
            return Ok(vec![Some(gradient.reshape(&[2, 1])?.expand(&[2, 3])?), None]);
        }
        let found = (&(&saved[0] * &saved[1])? * &saved[2])?;
        Ok(vec![Some((&found * gradient)?), None])
    }
}

#[test]
fn a_custom_function_has_its_own_gradient() {
    let (x, y) = (leaf(&[-3.0, 4.0]), leaf(&[1.0, 2.0]));
    Variable::apply(First { wrong: false }, &[&x, &y]).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(grad(&x), [-1.0, 8.0]);
    assert!(y.grad().is_none());
    let result = Variable::apply(First { wrong: true }, &[&x, &y]).unwrap().sum_all().unwrap();
    refuses(
        result.backward(),
        "the backward of first: found a gradient of shape [2, 3] for an operand of shape [2]; wanted the operand's shape",
    );
    assert_eq!(grad(&x), [-1.0, 8.0]);
}

#[test]
fn gradients_have_the_same_bits_every_time() {
    let run = || {
        let x = leaf(&[0.1, 0.2, 0.3]);
        let y = x.sin().unwrap();
        let terms = [y.exp().unwrap(), (&y * &x).unwrap(), x.log().unwrap(), y.tanh().unwrap()];
        Variable::stack(&terms.iter().collect::<Vec<_>>(), 0)
            .unwrap()
            .mean_all()
            .unwrap()
            .backward()
            .unwrap();
        grad(&x).into_iter().map(f64::to_bits).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}
