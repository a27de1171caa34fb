//! `Variable::index`: the elements of `Tensor::index`, and gradients against differences.

use selvedge::fuse::Operation;
use selvedge::nn::{NoGradGuard, Variable, apply, is_grad_enabled, no_grad};
use selvedge::tensor::Index;
use selvedge::types::Slice;
use selvedge::{DType, Device, Error, Tensor};

use crate::cases::samples;
use crate::differences::{check, check_second};

#[test]
fn index_expressions_have_the_elements_of_tensors_and_gradients() {
    let cpu = Device::cpu();
    let integers = |numbers: &[i64], shape: &[usize]| Tensor::from_slice(numbers, shape, &cpu).unwrap();
    let x = samples(3, &[3, 4, 2]);
    let (rows, pairs, planes) =
        (integers(&[2, 0, 2], &[3]), integers(&[1, -1, 0, 1], &[2, 2]), integers(&[0, 1, 1], &[3]));
    let (mask, row_mask) = (x.gt(0.5).unwrap(), integers(&[1, 0, 1], &[3]).cast(DType::Bool).unwrap());
    let every_second = || Index::Slice(Slice::from(..).step(2));
    let backwards = || Index::Slice(Slice::from(..).step(-1));
    let all = || Index::Slice((..).into());
    let expressions: [(&str, Vec<Index<'_>>); 17] = [
        ("a position", vec![Index::At(-1)]),
        ("all positions", vec![Index::At(1), Index::At(2), Index::At(-2)]),
        ("slices", vec![Index::from(1..3), every_second()]),
        ("backwards", vec![backwards(), Index::At(1), backwards()]),
        ("an ellipsis", vec![Index::Ellipsis, Index::At(0)]),
        ("an ellipsis between", vec![Index::At(0), Index::Ellipsis, Index::from(1..)]),
        ("new axes", vec![Index::NewAxis, Index::At(0), Index::NewAxis, Index::Ellipsis, Index::NewAxis]),
        ("an array", vec![Index::Tensor(&rows)]),
        ("an array of two dimensions", vec![every_second(), Index::Tensor(&pairs)]),
        ("an array behind an ellipsis", vec![Index::Ellipsis, Index::Tensor(&planes)]),
        (
            "an array and new axes",
            vec![Index::NewAxis, Index::Tensor(&rows), Index::NewAxis, Index::from(..2)],
        ),
        ("two arrays", vec![Index::Tensor(&rows), Index::Tensor(&planes)]),
        ("arrays apart", vec![Index::Tensor(&rows), all(), Index::Tensor(&planes)]),
        ("an array and a position", vec![Index::At(1), all(), Index::Tensor(&planes)]),
        ("a mask", vec![Index::Tensor(&mask)]),
        ("a mask of rows", vec![Index::Tensor(&row_mask), Index::At(0)]),
        ("nothing", vec![]),
    ];
    for (name, entries) in &expressions {
        let wanted = x.index(&entries[..]).unwrap();
        let found = Variable::new(x.clone()).index(&entries[..]).unwrap().tensor();
        assert_eq!(found.shape(), wanted.shape(), "{name}");
        assert_eq!(found.to_vec::<f64>().unwrap(), wanted.to_vec::<f64>().unwrap(), "{name}");
        check(name, std::slice::from_ref(&x), |inputs| inputs[0].index(&entries[..]));
        check_second(name, std::slice::from_ref(&x), |inputs| inputs[0].square()?.index(&entries[..]));
    }
}

#[test]
fn bad_index_expressions_have_the_errors_of_tensors() {
    let cpu = Device::cpu();
    let x = Variable::with_grad(samples(1, &[2, 3])).unwrap();
    let (floats, mask) = (samples(2, &[2]), Tensor::ones(&[3], DType::Bool, &cpu).unwrap());
    let far = Tensor::new([5i64], &cpu).unwrap();
    let expressions: [Vec<Index<'_>>; 7] = [
        vec![Index::At(2)],
        vec![Index::At(0), Index::At(0), Index::At(0)],
        vec![Index::Ellipsis, Index::Ellipsis],
        vec![Index::Slice(Slice::from(..).step(0))],
        vec![Index::Tensor(&floats)],
        vec![Index::Tensor(&mask)],
        vec![Index::Tensor(&far)],
    ];
    for entries in expressions {
        let wanted = x.tensor().index(&entries[..]).unwrap_err();
        let found = x.index(&entries[..]).unwrap_err();
        assert_eq!(std::mem::discriminant(&found), std::mem::discriminant(&wanted), "{found}; {wanted}");
    }
    let many = [
        Index::Tensor(&far),
        Index::NewAxis,
        Index::Ellipsis,
        Index::from(..),
        Index::from(..),
        Index::from(..),
    ];
    assert!(x.index(&many[..]).is_err());
}

#[test]
fn guards_and_closures_disable_gradients_in_any_nesting() {
    assert!(is_grad_enabled());
    let outer = NoGradGuard::new();
    let inner = NoGradGuard::new();
    no_grad(|| assert!(!is_grad_enabled()));
    drop(outer);
    assert!(!is_grad_enabled());
    drop(inner);
    assert!(is_grad_enabled());
    let x = Variable::with_grad(samples(1, &[2])).unwrap();
    let guard = NoGradGuard::new();
    assert!(!x.exp().unwrap().requires_grad());
    drop(guard);
    assert!(x.exp().unwrap().requires_grad());
}

#[test]
fn apply_takes_numbers_first_and_refuses_other_counts() {
    check("a power of 2", &[samples(4, &[3])], |inputs| {
        apply(Operation::Pow, &[2.0.into(), (&inputs[0]).into()])
    });
    let x = Variable::new(samples(4, &[3]));
    let error = apply(Operation::Add, &[(&x).into()]).unwrap_err();
    assert!(matches!(error, Error::ArgumentCount { .. }), "{error}");
}
