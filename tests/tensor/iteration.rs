//! Rows, slices along a dimension, single elements, and elements as Rust's numbers and bools.

use selvedge::tensor::{Device, Tensor};
use selvedge::{DType, Error, Result};

fn cube() -> Tensor {
    Tensor::arange(0, 24, 1, DType::I64, &Device::cpu()).unwrap().reshape(&[2, 3, 4]).unwrap()
}

#[test]
fn rows_are_the_views_along_the_first_dimension() -> Result<()> {
    let x = cube();
    let rows = x.rows()?;
    assert_eq!(rows.len(), 2);
    for (index, row) in rows.enumerate() {
        assert_eq!(row.shape()[..], [3, 4]);
        assert_eq!(row.to_vec::<i64>()?, x.select(0, index as isize)?.to_vec::<i64>()?);
    }
    let backwards: Vec<i64> = x.get(&[0, 0])?.rows()?.rev().map(|x| x.item().unwrap()).collect();
    assert_eq!(backwards, [3, 2, 1, 0]);
    assert_eq!(x.transpose(0, 2)?.rows()?.nth(1).unwrap().to_vec::<i64>()?, [1, 13, 5, 17, 9, 21]);
    assert_eq!(Tensor::zeros(&[0, 3], DType::F32, &Device::cpu())?.rows()?.count(), 0);
    let scalar = x.get(&[0, 0, 0])?;
    let error = scalar.rows().err().map(|error| error.to_string());
    assert_eq!(
        error.as_deref(),
        Some("rows: found a tensor without dimensions; wanted at least one dimension")
    );
    Ok(())
}

#[test]
fn unbind_gives_the_views_along_any_dimension() -> Result<()> {
    let x = cube();
    for axis in -3isize..3 {
        let parts = x.unbind(axis)?;
        let at = axis.rem_euclid(3) as usize;
        assert_eq!(parts.len(), x.shape()[at]);
        for (index, part) in parts.iter().enumerate() {
            assert_eq!(part.to_vec::<i64>()?, x.select(axis, index as isize)?.to_vec::<i64>()?);
        }
    }
    assert!(matches!(x.unbind(3), Err(Error::InvalidArgument { .. })));
    Ok(())
}

#[test]
fn get_takes_up_to_as_many_indices_as_dimensions() -> Result<()> {
    let x = cube();
    assert_eq!(x.get(&[1, 2, 3])?.item::<i64>()?, 23);
    assert_eq!(x.get(&[-1, 0, -4])?.item::<i64>()?, 12);
    assert_eq!(x.get(&[1, 1])?.to_vec::<i64>()?, [16, 17, 18, 19]);
    assert_eq!(x.get(&[])?.count(), 24);
    for index in [&[2][..], &[0, 3], &[0, 0, -5], &[0, 0, 0, 0]] {
        assert!(x.get(index).is_err(), "{index:?}");
    }
    Ok(())
}

#[test]
fn elements_are_read_as_bools() -> Result<()> {
    let x = Tensor::new([1.0f32, -1.0], &Device::cpu())?;
    let positive = x.gt(0.0)?;
    assert_eq!(positive.to_vec::<bool>()?, [true, false]);
    assert!(positive.any_all()?.item::<bool>()?);
    assert!(!positive.all_all()?.item::<bool>()?);
    assert!(matches!(x.to_vec::<bool>(), Err(Error::DTypeMismatch { .. })));
    assert!(matches!(x.sum_all()?.item::<bool>(), Err(Error::DTypeMismatch { .. })));
    Ok(())
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() -> Result<()> {
    let x = Tensor::arange(0, 1_000_000, 1, DType::F32, &Device::cpu())?;
    let index = Tensor::arange(999_999, -1, -3, DType::I64, &Device::cpu())?;
    let run = || -> Result<(Vec<f32>, f32, Vec<f32>)> {
        let picked = x.index_select(0, &index)?.to_vec()?;
        Ok(((&x * 0.5)?.sqrt()?.to_vec()?, x.sin()?.sum_all()?.item()?, picked))
    };
    let wanted = run()?;
    for threads in [1, 2, 7] {
        selvedge::set_threads(threads);
        assert_eq!(selvedge::thread_count(), threads);
        assert!(run()? == wanted, "{threads} threads");
    }
    selvedge::set_threads(0);
    assert!(selvedge::thread_count() >= 1);
    Ok(())
}
