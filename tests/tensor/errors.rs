//! Texts of errors: each names the operation that was called and both sides, in words that say what to do.

use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;
use selvedge::{Error, Result};

fn text<T>(result: Result<T>) -> String {
    result.map(|_| "no error".to_owned()).unwrap_or_else(|error| error.to_string())
}

#[test]
fn errors_name_the_operation_that_was_called() -> Result<()> {
    let cpu = Device::cpu();
    let (three, two) = (Tensor::new([1.0f32, 2.0, 3.0], &cpu)?, Tensor::new([1.0f32, 2.0], &cpu)?);
    let none = Tensor::zeros(&[2, 0], DType::F32, &cpu)?;
    let shapes = "found shapes [3] and [2], which do not broadcast; wanted sizes that are equal or 1, counted from the last dimension";
    let table = [
        (text(&three + &two), format!("add: {shapes}")),
        (text(&three - &two), format!("sub: {shapes}")),
        (text(&three * &two), format!("mul: {shapes}")),
        (text(&three / &two), format!("div: {shapes}")),
        (text(three.maximum(&two)), format!("maximum: {shapes}")),
        (text(three.lt(&two)), format!("lt: {shapes}")),
        (text(three.pow(&two)), format!("pow: {shapes}")),
        (text(three.item::<f32>()), "item needs 1 element, but was given 3".to_owned()),
        (text(none.item::<f32>()), "item needs 1 element, but was given 0".to_owned()),
        (
            text(two.item::<f64>()),
            "item wants a tensor of f64 (cast(DType::F64) converts it), but found one of f32".to_owned(),
        ),
        (
            text(two.to_vec::<f64>()),
            "to_vec wants a tensor of f64 (cast(DType::F64) converts it), but found one of f32".to_owned(),
        ),
        (
            text(two.to_vec::<i64>()),
            "to_vec wants a tensor of i64 (cast(DType::I64) converts it), but found one of f32".to_owned(),
        ),
    ];
    for (found, wanted) in table {
        assert_eq!(found, wanted);
    }
    let (mut into, wanted) = (two.clone(), "found shape [3] for an output of shape [2]");
    let table = [
        (text(into.in_place().add(&three)), "add"),
        (text(into.in_place().maximum(&three)), "maximum"),
        (text(two.with_output(&mut into).mul(&three)), "mul"),
    ];
    for (found, operation) in table {
        assert!(found.starts_with(&format!("{operation}: {wanted}")), "{found}");
    }
    Ok(())
}

#[test]
fn errors_of_operations_that_are_made_of_others_name_the_one_that_was_called() -> Result<()> {
    let cpu = Device::cpu();
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &cpu)?;
    let narrow = x.cast(DType::F8E4M3)?;
    let (three, whole) = (Tensor::zeros(&[3], DType::F32, &cpu)?, x.cast(DType::I32)?);
    let two = Tensor::zeros(&[2], DType::F64, &cpu)?;
    let table = [
        (text(x.cast(DType::F16)?.nan_to_num(1e9, None, None)), "nan_to_num"),
        (text(whole.index_fill(0, &Tensor::new([0i64], &cpu)?, 0.5)), "index_fill"),
        (text(x.index_fill(2, &Tensor::new([0i64], &cpu)?, 0)), "index_fill"),
        (text(x.var_mean(2, 1)), "var_mean"),
        (text(x.std_mean(2, 1)), "std_mean"),
        (text(x.nansum(2)), "nansum"),
        (text(whole.nansum(2)), "nansum"),
        (text(x.nanmean(2)), "nanmean"),
        (text(whole.nanmean(2)), "nanmean"),
        (text(x.aminmax(2)), "aminmax"),
        (text(x.max_with_indices(2)), "max_with_indices"),
        (text(x.min_with_indices(2)), "min_with_indices"),
        (text(x.unflatten(0, &[3, -1])), "unflatten"),
        (text(x.unflatten(0, &[3, 1])), "unflatten"),
        (text(narrow.diff(1, 0)), "diff"),
        (text(narrow.cov(1)), "cov"),
        (text(narrow.corrcoef()), "corrcoef"),
        (text(x.cdist(&x, f64::NAN)), "cdist"),
        (text(x.matmul(&three)), "matmul"),
        (text(x.gemv(&three)), "gemv"),
        (text(x.select(0, 0)?.dot(&three)), "dot"),
        (text(three.dot(&Tensor::zeros(&[3], DType::F64, &cpu)?)), "dot"),
        (text(three.outer(&two)), "outer"),
    ];
    for (found, operation) in table {
        let named = found.strip_prefix(operation).is_some_and(|rest| rest.starts_with([':', ' ']));
        assert!(named, "not an error of {operation}: {found}");
    }
    Ok(())
}

#[test]
fn debug_is_the_text_for_people() -> Result<()> {
    let cpu = Device::cpu();
    let x = Tensor::new([1.0f32, 2.0], &cpu)?;
    let errors = [
        x.to_vec::<f64>().unwrap_err(),
        Error::NoDevice { wanted: "7".to_owned(), found: "there is one".to_owned() },
        Error::LibraryUnavailable { library: "NVRTC", tried: "  /a/path: no such file\n  b\\c".to_owned() },
        Error::File { path: "a \"b\".npy".to_owned(), found: "x".to_owned(), wanted: "y".to_owned() },
        Error::ForkedProcess,
    ];
    for error in errors {
        assert_eq!(format!("{error:?}"), error.to_string());
        assert_eq!(format!("{:?}", Err::<(), Error>(error.clone())), format!("Err({error})"));
    }
    Ok(())
}
