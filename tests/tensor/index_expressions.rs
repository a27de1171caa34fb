//! Index expressions: shapes by NumPy's rules, and each element by the coordinates that it comes from.

use selvedge::tensor::{Device, Index, IndexExpression, Tensor};
use selvedge::types::Slice;
use selvedge::{DType, Result};

fn cpu() -> Device {
    Device::cpu()
}

fn text<T>(result: Result<T>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

/// The coordinates of an element in row-major order.
fn coordinates(shape: &[usize], mut position: usize) -> Vec<usize> {
    let mut found = vec![0; shape.len()];
    for (axis, size) in shape.iter().enumerate().rev() {
        found[axis] = position % size;
        position /= size;
    }
    found
}

/// Reads and assigns through an expression of a tensor of shape [2, 3, 4]. `source` gives the coordinates in it of the result's.
fn check<'a>(
    name: &str,
    entries: &[Index<'a>],
    shape: &[usize],
    source: impl Fn(&[usize]) -> [usize; 3],
) -> Result<()> {
    let dense = Tensor::arange(0, 24, 1, DType::I64, &cpu())?.reshape(&[2, 3, 4])?;
    let across = dense.permute(&[2, 0, 1])?.contiguous()?.permute(&[1, 2, 0])?;
    let count = shape.iter().product::<usize>();
    let places = (0..count).map(|position| {
        let [a, b, c] = source(&coordinates(shape, position));
        12 * a + 4 * b + c
    });
    let places: Vec<usize> = places.collect();
    for x in [&dense, &across] {
        let found = x.index(entries)?;
        assert_eq!(found.shape()[..], *shape, "{name}");
        let wanted: Vec<i64> = places.iter().map(|place| *place as i64).collect();
        assert_eq!(found.to_vec::<i64>()?, wanted, "{name}");

        let values = found.zeros_like()?.add(
            &Tensor::arange(100, 100 + count as i64, 1, DType::I64, &cpu())?
                .reshape(&shape.iter().map(|size| *size as isize).collect::<Vec<_>>())?,
        )?;
        let mut wanted = x.to_vec::<i64>()?;
        places.iter().enumerate().for_each(|(at, place)| wanted[*place] = 100 + at as i64);
        let mut written = x.clone();
        written.in_place().index_assign(entries, &values)?;
        assert_eq!(written.to_vec::<i64>()?, wanted, "{name}, assigned");
        places.iter().for_each(|place| wanted[*place] = -7);
        assert_eq!(written.index_assign(entries, -7)?.to_vec::<i64>()?, wanted, "{name}, filled");
    }
    assert_eq!(dense.to_vec::<i64>()?, (0..24).collect::<Vec<i64>>());
    Ok(())
}

#[test]
fn views_of_integers_slices_new_axes_and_an_ellipsis() -> Result<()> {
    let all = || Index::from(..);
    let back = Index::Slice(Slice::from(..).step(-2));
    check("x[1]", &[1.into()], &[3, 4], |at| [1, at[0], at[1]])?;
    check("x[-1, 1:]", &[(-1).into(), (1..).into()], &[2, 4], |at| [1, at[0] + 1, at[1]])?;
    check("x[..., 0]", &[Index::Ellipsis, 0.into()], &[2, 3], |at| [at[0], at[1], 0])?;
    check("x[:, None, 1, ::-2]", &[all(), Index::NewAxis, 1.into(), back], &[2, 1, 2], |at| {
        [at[0], 1, 3 - 2 * at[2]]
    })?;
    check("x[1, ..., :2]", &[1.into(), Index::Ellipsis, (..2).into()], &[3, 2], |at| [1, at[0], at[1]])?;
    check("x[0, 1, 2]", &[0.into(), 1.into(), 2.into()], &[], |_| [0, 1, 2])?;
    check(
        "x[None, ..., None]",
        &[Index::NewAxis, Index::Ellipsis, Index::NewAxis],
        &[1, 2, 3, 4, 1],
        |at| [at[1], at[2], at[3]],
    )?;
    check("x[0, 1, 2, ...]", &[0.into(), 1.into(), 2.into(), Index::Ellipsis], &[], |_| [0, 1, 2])?;
    check("x[5:]", &[(5..).into()], &[0, 3, 4], |_| [0; 3])?;
    // Views share memory.
    let x = Tensor::arange(0, 24, 1, DType::I64, &cpu())?.reshape(&[2, 3, 4])?;
    assert!(!x.index((1, 2..3))?.is_unique());
    Ok(())
}

#[test]
fn index_arrays_broadcast_and_take_the_place_that_numpy_gives_them() -> Result<()> {
    let all = || Index::from(..);
    let one = Tensor::new([1i64, 0, -1], &cpu())?;
    let i = |at: usize| [1, 0, 2][at];
    let k = |at: usize| [1, 0, 1][at];
    let column = Tensor::new([[0u8], [1]], &cpu())?;
    let scalar = Tensor::new(2i32, &cpu())?;
    check("x[:, i]", &[all(), (&one).into()], &[2, 3, 4], |at| [at[0], i(at[1]), at[2]])?;
    check("x[i]", &[(&one).into()], &[3, 3, 4], |at| [k(at[0]), at[1], at[2]])?;
    check("x[:, :, j]", &[all(), all(), (&column).into()], &[2, 3, 2, 1], |at| [at[0], at[1], at[2]])?;
    check("x[j, :, k]", &[(&column).into(), all(), (&one).into()], &[2, 3, 3], |at| {
        // -1 is the last of four.
        [at[0], at[2], [1, 0, 3][at[1]]]
    })?;
    check("x[:, j, i]", &[all(), (&column).into(), (&one).into()], &[2, 2, 3], |at| {
        [at[0], at[1], [1, 0, 3][at[2]]]
    })?;
    check("x[0, :, i]", &[0.into(), all(), (&one).into()], &[3, 3], |at| [0, at[1], [1, 0, 3][at[0]]])?;
    check("x[:, -1, i]", &[all(), (-1).into(), (&one).into()], &[2, 3], |at| [at[0], 2, [1, 0, 3][at[1]]])?;
    check("x[i, None, i]", &[(&one).into(), Index::NewAxis, (&one).into()], &[3, 1, 4], |at| {
        [k(at[0]), i(at[0]), at[2]]
    })?;
    check("x[i, i, ..., i]", &[(&one).into(), (&one).into(), Index::Ellipsis, (&one).into()], &[3], |at| {
        [k(at[0]), i(at[0]), [1, 0, 3][at[0]]]
    })?;
    check("x[..., s]", &[Index::Ellipsis, (&scalar).into()], &[2, 3], |at| [at[0], at[1], 2])?;
    check(
        "x[::-1, 1:, i]",
        &[Index::Slice(Slice::from(..).step(-1)), (1..).into(), (&one).into()],
        &[2, 2, 3],
        |at| [1 - at[0], at[1] + 1, [1, 0, 3][at[2]]],
    )?;
    let none = Tensor::zeros(&[0], DType::I64, &cpu())?;
    check("x[:, none]", &[all(), (&none).into()], &[2, 0, 4], |_| [0; 3])?;
    check("x[none, none]", &[(&none).into(), (&none).into()], &[0, 4], |_| [0; 3])
}

#[test]
fn masks_select_the_dimensions_that_they_cover() -> Result<()> {
    let all = || Index::from(..);
    let row = Tensor::new([true, false, true], &cpu())?;
    let matrix = Tensor::new([[true, false, true], [false, false, true]], &cpu())?;
    let places = [[0, 0], [0, 2], [1, 2]];
    check("x[m]", &[(&matrix).into()], &[3, 4], |at| [places[at[0]][0], places[at[0]][1], at[1]])?;
    check("x[:, m]", &[all(), (&row).into()], &[2, 2, 4], |at| [at[0], 2 * at[1], at[2]])?;
    check("x[m, 1]", &[(&matrix).into(), 1.into()], &[3], |at| [places[at[0]][0], places[at[0]][1], 1])?;
    check("x[0, m, 1:3]", &[0.into(), (&row).into(), (1..3).into()], &[2, 2], |at| {
        [0, 2 * at[0], at[1] + 1]
    })?;
    let index = Tensor::new([3, 1, 0], &cpu())?;
    check("x[m, i]", &[(&matrix).into(), (&index).into()], &[3], |at| {
        [places[at[0]][0], places[at[0]][1], [3, 1, 0][at[0]]]
    })?;
    let whole = Tensor::arange(0, 24, 1, DType::I64, &cpu())?.reshape(&[2, 3, 4])?.gt(21)?;
    check("x[x > 21]", &[(&whole).into()], &[2], |at| [1, 2, at[0] + 2])?;
    let never = Tensor::zeros(&[2, 3], DType::Bool, &cpu())?;
    check("x[never]", &[(&never).into()], &[0, 4], |_| [0; 3])
}

/// Calls with entries as they are written in programs.
fn shape_of<'a>(x: &Tensor, index: impl IndexExpression<'a>) -> Result<Vec<usize>> {
    Ok(x.index(index)?.shape().to_vec())
}

#[test]
fn entries_are_given_alone_in_tuples_and_in_arrays() -> Result<()> {
    let x = Tensor::arange(0, 24, 1, DType::I64, &cpu())?.reshape(&[2, 3, 4])?;
    let index = Tensor::new([0, 1, 1], &cpu())?;
    assert_eq!(shape_of(&x, 1)?, [3, 4]);
    assert_eq!(shape_of(&x, ..1)?, [1, 3, 4]);
    assert_eq!(shape_of(&x, &index)?, [3, 3, 4]);
    assert_eq!(shape_of(&x, (0,))?, [3, 4]);
    assert_eq!(shape_of(&x, (.., Index::NewAxis, 1..3, &index))?, [2, 1, 2, 3]);
    assert_eq!(shape_of(&x, (0, 0, 0, Index::NewAxis, Index::NewAxis, Index::Ellipsis))?, [1, 1]);
    assert_eq!(shape_of(&x, [Index::At(0), Index::NewAxis])?, [1, 3, 4]);
    assert_eq!(shape_of(&x, Index::Ellipsis)?, [2, 3, 4]);
    // Values broadcast and are cast; part of a part is written.
    let mut y = x.cast(DType::F32)?;
    y.in_place().select(0, 1)?.index_assign((.., &index), &Tensor::new([[7], [8], [9]], &cpu())?)?;
    assert_eq!(y.index((1, .., 1))?.to_vec::<f32>()?, [7.0, 8.0, 9.0]);
    assert_eq!(y.index(0)?.to_vec::<f32>()?, (0..12).map(|x| x as f32).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn bad_index_expressions_name_both_sides_and_write_nothing() -> Result<()> {
    let x = Tensor::arange(0, 24, 1, DType::I64, &cpu())?.reshape(&[2, 3, 4])?;
    let bad = Tensor::new([0, 3], &cpu())?;
    let three = Tensor::new([0, 1, 1], &cpu())?;
    let float = Tensor::new([0.0f32], &cpu())?;
    let mask = Tensor::new([true, false], &cpu())?;
    let always = Tensor::new(true, &cpu())?;
    let table: [(&[Index<'_>], &str); 12] = [
        (&[(..).into(), (&bad).into()], "index: found index 3 along axis 1; wanted one of 0 to 2"),
        (&[(..).into(), (&bad).into(), (&bad).into()], "index: found index 3 along axis 1"),
        (&[(&three).into(), (..).into(), 4.into()], "index: found index 4 along axis 2"),
        (&[Index::NewAxis, 0.into(), (&bad).into()], "index: found index 3 along axis 1"),
        (&[2.into()], "index: found index 2 along axis 0; wanted one of 0 to 1"),
        (
            &[0.into(), 0.into(), 0.into(), 0.into()],
            "entries for 4 dimensions of shape [2, 3, 4]; wanted at most 3",
        ),
        (&[Index::Ellipsis, Index::Ellipsis], "2 ellipses"),
        (&[(&float).into()], "an index of integers"),
        (&[(..).into(), (&mask).into()], "a mask of shape [2] for dimensions from 1 of shape [2, 3, 4]"),
        (&[(&always).into()], "a mask of shape []"),
        (&[(&bad).into(), (&three).into()], "broadcast"),
        (&[Index::Slice(Slice::from(..).step(0))], "step"),
    ];
    let mut y = x.clone();
    for (entries, wanted) in table {
        let (read, write) = (text(x.index(entries)), text(y.in_place().index_assign(entries, 0)));
        assert!(read.contains(wanted), "{read}; wanted {wanted}");
        assert!(write.contains(wanted), "{write}; wanted {wanted}");
    }
    assert!(!text(y.in_place().index_assign((.., &three), &bad)).is_empty());
    assert!(text(y.in_place().index_assign((.., &three), 1.5)).contains("1.5"));
    assert_eq!(y.to_vec::<i64>()?, x.to_vec::<i64>()?);
    Ok(())
}
