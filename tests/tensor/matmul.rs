//! Products of tensors on the CPU, and what is refused.

mod cases;

use half::f16;
use num_complex::Complex;
use selvedge::Error;
use selvedge::gemm::{Activation, Choice, Engine};
use selvedge::tensor::{Device, Matmul, Tensor};
use selvedge::types::DType;

const CPU: Device = Device::cpu();

#[track_caller]
fn holds(checked: cases::Checked) {
    if let Err(what) = checked {
        panic!("{what}");
    }
}

#[test]
fn views_of_every_kind_are_multiplied() {
    holds(cases::every_dtype(0..1500, &CPU));
}

#[test]
fn bias_activation_and_residual_are_part_of_the_product() {
    holds(cases::every_fused(0..1000, &CPU));
}

#[test]
fn layers_keep_what_gelu_is_applied_to() {
    holds(cases::layers(&CPU));
}

#[test]
fn vectors_lose_their_dimension() {
    holds(cases::vectors(&CPU));
}

#[test]
fn results_are_rounded_once() {
    holds(cases::results(&CPU));
}

fn ones(shape: &[usize], dtype: DType) -> Tensor {
    Tensor::ones(shape, dtype, &CPU).unwrap()
}

#[test]
fn shapes_that_do_not_meet_are_both_named() {
    for (a, b) in
        [(&[2, 3][..], &[2, 3][..]), (&[3], &[4]), (&[5, 2, 3], &[4, 3, 2]), (&[], &[3]), (&[3], &[])]
    {
        let error = ones(a, DType::F32).matmul(&ones(b, DType::F32)).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{text}");
        for shape in [a, b] {
            assert!(text.contains(&format!("{shape:?}")), "{text}");
        }
    }
    let (matrix, vector) = (ones(&[2, 3], DType::F32), ones(&[3], DType::F32));
    for (name, error) in [
        ("dot", matrix.dot(&vector)),
        ("outer", vector.outer(&matrix)),
        ("gemv", matrix.gemv(&matrix)),
        ("gemv", vector.gemv(&vector)),
    ] {
        let text = error.unwrap_err().to_string();
        assert!(
            text.starts_with(name) && text.contains("[3]") || text.contains("[2, 3] and [2, 3]"),
            "{text}"
        );
    }
    let mut c = ones(&[2, 2], DType::F32);
    let error = Matmul::new().add_to(&mut c, 1, &matrix, &vector).unwrap_err().to_string();
    assert!(error.contains("[2, 3] and [3], into one of [2, 2]") && error.contains("shape [2]"), "{error}");
}

#[test]
fn dtypes_are_not_mixed() {
    let mixed = |a, b| ones(&[2, 3], a).matmul(&ones(&[3, 2], b)).unwrap_err();
    let error = mixed(DType::F32, DType::F64).to_string();
    assert!(error.contains("f32 and f64") && error.contains("[2, 3] and [3, 2]"), "{error}");
    for dtype in [DType::Bool, DType::F8E4M3, DType::F8E5M2] {
        let operand = ones(&[2, 2], DType::F32).cast(dtype).unwrap();
        let error = operand.matmul(&operand).unwrap_err();
        assert!(
            matches!(error, Error::DTypeMismatch { .. }) && error.to_string().contains("cast"),
            "{error}"
        );
    }
    let a = ones(&[2, 2], DType::F32);
    for dtype in [DType::F64, DType::F16, DType::I32] {
        let error = Matmul::new().result(dtype).of(&a, &a).unwrap_err();
        assert!(matches!(error, Error::DTypeMismatch { .. }), "{error}");
    }
    let whole = ones(&[2, 2], DType::I32);
    let error = Matmul::new().alpha(0.5).of(&whole, &whole).unwrap_err().to_string();
    assert!(error.contains("a real alpha") && error.contains("i32"), "{error}");
    let bytes = ones(&[2, 2], DType::U8);
    let error = Matmul::new().alpha(-1).of(&bytes, &bytes).unwrap_err().to_string();
    assert!(error.contains("-1") && error.contains("u8"), "{error}");
    let error = Matmul::new().alpha(Complex::new(0.0f32, 1.0)).of(&a, &a).unwrap_err().to_string();
    assert!(error.contains("a complex alpha"), "{error}");
    let mut c = ones(&[2, 2], DType::I32);
    assert!(Matmul::new().add_to(&mut c, 0.5, &whole, &whole).is_err());
    assert_eq!(c.to_vec::<i32>().unwrap(), [1; 4]);
}

#[test]
fn factors_are_of_the_type_that_is_added_in() {
    // A third is no f16, and half of what it would be as one.
    let a = ones(&[1, 1], DType::F16);
    let c = Matmul::new().alpha(1.0 / 3.0).result(DType::F32).of(&a, &a).unwrap();
    assert_eq!(c.item::<f32>().unwrap(), 1.0f32 / 3.0);
    let z = ones(&[1, 1], DType::C128);
    let c = Matmul::new().alpha(Complex::new(2.0f64, -0.1)).of(&z, &z).unwrap();
    assert_eq!(c.item::<Complex<f64>>().unwrap(), Complex::new(2.0, -0.1));
    let mut c = ones(&[1, 1], DType::I64);
    let whole = ones(&[1, 1], DType::I64);
    Matmul::new().alpha(-3).add_to(&mut c, i64::MAX, &whole, &whole).unwrap();
    assert_eq!(c.item::<i64>().unwrap(), i64::MAX - 3);
}

#[test]
fn a_result_that_is_not_read_may_be_no_number() {
    let a = ones(&[2, 2], DType::F32);
    let mut c = Tensor::full(&[2, 2], f32::NAN, DType::F32, &CPU).unwrap();
    Matmul::new().add_to(&mut c, 0.0, &a, &a).unwrap();
    assert_eq!(c.to_vec::<f32>().unwrap(), [2.0; 4]);
    // With an alpha of 0 the operands are not read.
    let nothing = Tensor::full(&[2, 2], f32::NAN, DType::F32, &CPU).unwrap();
    Matmul::new().alpha(0).add_to(&mut c, 0.5, &nothing, &nothing).unwrap();
    assert_eq!(c.to_vec::<f32>().unwrap(), [1.0; 4]);
}

#[test]
fn an_output_that_is_an_input_is_written_last() {
    // The operands share C's elements, which are copied before anything is written.
    let mut c = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &CPU).unwrap();
    let (a, b) = (c.clone(), c.transpose(0, 1).unwrap());
    Matmul::new().add_to(&mut c, 1, &a, &b).unwrap();
    assert_eq!(c.to_vec::<f32>().unwrap(), [6.0, 13.0, 14.0, 29.0]);
    assert_eq!(a.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    // A part of a tensor: the rest stays.
    let mut wide = Tensor::zeros(&[3, 4], DType::F32, &CPU).unwrap();
    Matmul::new().add_to(wide.slice_mut(1, 1..3).unwrap().narrow(0, 1, 2).unwrap(), 0, &a, &a).unwrap();
    assert_eq!(
        wide.to_vec::<f32>().unwrap(),
        [0.0, 0.0, 0.0, 0.0, 0.0, 7.0, 10.0, 0.0, 0.0, 15.0, 22.0, 0.0]
    );
}

#[test]
fn what_does_not_fit_a_result_says_both_shapes() {
    let (a, b) = (ones(&[4, 2, 3], DType::F32), ones(&[3, 5], DType::F32));
    for shape in [&[4][..], &[2, 5], &[4, 1, 1], &[4, 1, 5], &[3, 1, 4, 2, 5]] {
        let bias = ones(shape, DType::F32);
        let text = Matmul::new().bias(&bias).of(&a, &b).unwrap_err().to_string();
        assert!(text.contains(&format!("a bias of shape {shape:?} for a result of [4, 2, 5]")), "{text}");
    }
    for shape in [&[4][..], &[5, 5], &[1, 4, 2, 5]] {
        let residual = ones(shape, DType::F32);
        let text = Matmul::new().residual(&residual).of(&a, &b).unwrap_err().to_string();
        assert!(text.contains(&format!("a residual of shape {shape:?} for a result of [4, 2, 5]")), "{text}");
    }
    let mut c = ones(&[4, 2, 5], DType::F32);
    let bias = ones(&[4], DType::F32);
    assert!(Matmul::new().bias(&bias).add_to(&mut c, 1, &a, &b).is_err());
    assert_eq!(c.to_vec::<f32>().unwrap(), [1.0; 40]);
    // Nothing is computed, so nothing is read.
    let none = Matmul::new().bias(&ones(&[5], DType::F32)).of_with_aux(&ones(&[0, 3], DType::F32), &b);
    assert_eq!(none.unwrap().1.shape()[..], [0, 5]);
}

#[test]
fn what_is_fused_has_the_results_dtype() {
    let (half, single, whole) =
        (ones(&[2, 2], DType::F16), ones(&[2, 2], DType::F32), ones(&[2, 2], DType::I32));
    let mismatch = |matmul: Matmul<'_>, operand: &Tensor| {
        let error = matmul.of(operand, operand).unwrap_err();
        assert!(matches!(error, Error::DTypeMismatch { .. }), "{error}");
        error.to_string()
    };
    let text = mismatch(Matmul::new().bias(&single), &half);
    assert!(text.contains("the bias of f32 (shape [2, 2]), for f16 (shapes [2, 2] and [2, 2])"), "{text}");
    let text = mismatch(Matmul::new().residual(&half).result(DType::F32), &half);
    assert!(text.contains("the residual of f16") && text.contains("cast them"), "{text}");
    let text = mismatch(Matmul::new().residual(&whole), &whole);
    assert!(text.contains("the residual for a result of i32"), "{text}");
    let text = mismatch(Matmul::new().activation(Activation::Relu), &ones(&[2, 2], DType::C64));
    assert!(text.contains("an activation for a result of c64"), "{text}");
    let text = Matmul::new().of_with_aux(&whole, &whole).unwrap_err().to_string();
    assert!(text.contains("what is kept for a result of i32"), "{text}");
}

#[test]
fn a_residual_may_be_the_result_before() {
    // It shares the result's elements, which are copied before anything is written.
    let a = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &CPU).unwrap();
    let mut c = Tensor::new([[10.0f32, 20.0], [30.0, 40.0]], &CPU).unwrap();
    let (residual, bias) = (c.transpose(0, 1).unwrap(), c.select(0, 0).unwrap());
    Matmul::new().bias(&bias).residual(&residual).add_to(&mut c, -1, &a, &a).unwrap();
    assert_eq!(c.to_vec::<f32>().unwrap(), [17.0, 40.0, 15.0, 42.0]);
    assert_eq!(bias.to_vec::<f32>().unwrap(), [10.0, 20.0]);
    // A part whose rows lie apart, and columns.
    let mut wide = Tensor::zeros(&[3, 4], DType::F32, &CPU).unwrap();
    let part = wide.slice_mut(1, 1..3).unwrap().narrow(0, 1, 2).unwrap();
    Matmul::new().residual(&a).add_to(part, 0, &a, &a).unwrap();
    let wanted = [0.0, 0.0, 0.0, 0.0, 0.0, 8.0, 12.0, 0.0, 0.0, 18.0, 26.0, 0.0];
    assert_eq!(wide.to_vec::<f32>().unwrap(), wanted);
}

#[test]
fn a_repeated_row_is_no_result() {
    let a = ones(&[2, 2], DType::F16);
    let mut c = ones(&[1, 2], DType::F16).expand(&[2, 2]).unwrap();
    // As with every operation in place: what is repeated becomes elements of its own.
    Matmul::new().add_to(&mut c, 1, &a, &a).unwrap();
    assert_eq!(c.to_vec::<f16>().unwrap(), [f16::from_f32(3.0); 4]);
}

type View<'a> = &'a dyn Fn(&[usize]) -> Tensor;

/// Empty products, and products without a depth, of dense, expanded, sliced and reversed operands.
#[test]
fn empty_products_need_no_elements_of_their_operands() {
    let expanded = |shape: &[usize]| ones(&vec![1; shape.len()], DType::F32).expand(shape).unwrap();
    // An empty view inside of a larger tensor, with a step between its matrices.
    let sliced = |shape: &[usize]| {
        let mut view = ones(&shape.iter().map(|size| size + 3).collect::<Vec<_>>(), DType::F32);
        for (axis, size) in shape.iter().enumerate() {
            view = view.narrow(axis as isize, 3, *size).unwrap();
        }
        view
    };
    let reversed = |shape: &[usize]| {
        (0..shape.len()).fold(sliced(shape), |view, axis| view.flip(&[axis as isize]).unwrap())
    };
    let dense = |shape: &[usize]| ones(shape, DType::F32);
    let transposed = |shape: &[usize]| {
        let mut sizes = shape.to_vec();
        let rank = sizes.len();
        sizes.swap(rank - 2, rank - 1);
        expanded(&sizes).transpose(-2, -1).unwrap()
    };
    let views: [View<'_>; 5] = [&dense, &expanded, &sliced, &reversed, &transposed];
    for (a, b, c) in [
        (&[2, 0][..], &[0, 3][..], &[2, 3][..]),
        (&[4, 2, 0], &[0, 3], &[4, 2, 3]),
        (&[4, 2, 0], &[4, 0, 3], &[4, 2, 3]),
        (&[4, 2, 0], &[4, 0, 1], &[4, 2, 1]),
        (&[4, 1, 0], &[1, 0, 3], &[4, 1, 3]),
        (&[0, 2], &[2, 2], &[0, 2]),
        (&[2, 2], &[2, 0], &[2, 0]),
        (&[0, 2, 2], &[0, 2, 2], &[0, 2, 2]),
        (&[0, 2, 2], &[2, 2], &[0, 2, 2]),
        (&[2, 2], &[0, 2, 2], &[0, 2, 2]),
        (&[3, 0, 2], &[3, 2, 2], &[3, 0, 2]),
        (&[5, 0, 2, 2], &[1, 2, 2], &[5, 0, 2, 2]),
    ] {
        for (left, right) in views.iter().flat_map(|left| views.iter().map(move |right| (left, right))) {
            let (left, right) = (left(a), right(b));
            let product = left.matmul(&right).unwrap_or_else(|error| panic!("{a:?} x {b:?}: {error}"));
            assert_eq!(product.shape()[..], *c, "{a:?} x {b:?}");
            assert!(product.to_vec::<f32>().unwrap().iter().all(|sum| *sum == 0.0), "{a:?} x {b:?}");
            let mut sum = dense(c);
            Matmul::new().add_to(&mut sum, 2, &left, &right).unwrap();
            assert!(sum.to_vec::<f32>().unwrap().iter().all(|sum| *sum == 2.0), "{a:?} x {b:?}");
        }
    }
}

#[test]
fn engines_are_those_of_devices() {
    // On the CPU there is one engine, whatever is asked for.
    let a = ones(&[2, 2], DType::F32);
    let c = Matmul::new().by(Choice::Only(Engine::Wgmma)).of(&a, &a).unwrap();
    assert_eq!(c.to_vec::<f32>().unwrap(), [2.0; 4]);
}
