//! Operations by index without elements are empty or change nothing.

use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

/// Every operation by index, of an array, an index and elements of these shapes (the elements' is the index's for `put`).
fn indexed(
    device: &Device,
    array: &[usize],
    axis: isize,
    of_index: &[usize],
    of_elements: &[usize],
) -> Vec<Vec<usize>> {
    let x = Tensor::ones(array, DType::F32, device).unwrap();
    let index = Tensor::zeros(of_index, DType::I64, device).unwrap();
    let elements = Tensor::full(of_elements, 2.0, DType::F32, device).unwrap();
    let unchanged = |name: &str, result: selvedge::Result<Tensor>| {
        let result = result.unwrap_or_else(|error| panic!("{name} of {array:?} by {of_index:?}: {error}"));
        assert_eq!(result.to_vec::<f32>().unwrap(), x.to_vec::<f32>().unwrap(), "{name} of {array:?}");
        assert_eq!(**result.shape(), *array, "{name}");
        assert_eq!(x.to_vec::<f32>().unwrap(), vec![1.0; x.count()], "{name} of {array:?}");
    };
    let in_place = |name: &str, write: &dyn Fn(&mut Tensor) -> selvedge::Result<()>| {
        let mut y = x.copy().unwrap();
        let result = write(&mut y).map(|()| y);
        unchanged(name, result);
    };
    let mut shapes = Vec::new();
    let mut read = |name: &str, result: selvedge::Result<Tensor>| {
        let result = result.unwrap_or_else(|error| panic!("{name} of {array:?} by {of_index:?}: {error}"));
        assert_eq!(result.count(), 0, "{name} of {array:?} by {of_index:?}");
        assert!(result.to_vec::<f32>().unwrap().is_empty(), "{name}");
        shapes.push(result.shape().to_vec());
    };
    if of_index.len() == array.len() {
        unchanged("scatter", x.scatter(axis, &index, &elements));
        unchanged("scatter_unchecked", x.scatter_unchecked(axis, &index, &elements));
        in_place("scatter in place", &|y| y.in_place().scatter(axis, &index, &elements).map(drop));
        in_place("scatter_unchecked in place", &|y| {
            y.in_place().scatter_unchecked(axis, &index, &elements).map(drop)
        });
        read("gather", x.gather(axis, &index));
        read("gather_unchecked", x.gather_unchecked(axis, &index));
        let along = axis.rem_euclid(array.len() as isize) as usize;
        if (0..array.len()).all(|at| at == along || of_index[at] == array[at]) {
            read("take_along_axis", x.take_along_axis(axis, &index));
        }
    }
    if of_index.len() == 1 {
        unchanged("index_copy", x.index_copy(axis, &index, &elements));
        in_place("index_copy in place", &|y| y.in_place().index_copy(axis, &index, &elements).map(drop));
        read("index_select", x.index_select(axis, &index));
        read("index_select_unchecked", x.index_select_unchecked(axis, &index));
    }
    if index.count() == 0 {
        let two = Tensor::full(&[], 2.0, DType::F32, device).unwrap();
        unchanged("put", x.put(&index, &two));
        in_place("put in place", &|y| y.in_place().put(&index, &two).map(drop));
        read("take", x.take(&index));
        read("take_unchecked", x.take_unchecked(&index));
    }
    shapes
}

pub fn operations_by_index_without_elements_are_empty_or_change_nothing(device: &Device) {
    // (array, axis, index, elements)
    type Case = (&'static [usize], isize, &'static [usize], &'static [usize]);
    let cases: [Case; 17] = [
        (&[2, 2], 0, &[2, 0], &[2, 0]),
        (&[2, 2], 1, &[2, 0], &[2, 0]),
        (&[2, 2], 0, &[0, 2], &[0, 2]),
        (&[2, 2], 1, &[0, 2], &[1, 2]),
        (&[2, 2], -1, &[0, 0], &[1]),
        (&[3, 0], 0, &[2, 0], &[2, 0]),
        (&[3, 0], 0, &[1], &[1, 0]),
        (&[3, 0], 0, &[0], &[0, 0]),
        (&[0, 3], 0, &[0], &[0, 3]),
        (&[0, 3], 1, &[2], &[0, 2]),
        (&[3, 3], 0, &[0], &[0, 3]),
        (&[3, 3], 1, &[0], &[3, 0]),
        (&[2, 0, 4], 2, &[5], &[2, 0, 5]),
        (&[2, 0, 4], 0, &[7], &[1]),
        (&[0], 0, &[0], &[0]),
        (&[5], 0, &[0], &[]),
        (&[0, 0], 1, &[0, 0], &[0, 0]),
    ];
    for (array, axis, index, elements) in cases {
        indexed(device, array, axis, index, elements);
    }
    for (shape, classes) in [(&[0][..], 3), (&[0], 0), (&[2, 0], 3), (&[0, 2], 1), (&[0, 0], 0)] {
        for dtype in [DType::I64, DType::U8, DType::I32, DType::U64] {
            let found = Tensor::zeros(shape, dtype, device).unwrap().one_hot(classes).unwrap();
            assert_eq!((found.dtype(), found.shape().to_vec()), (dtype, [shape, &[classes]].concat()));
        }
    }
    let x = Tensor::ones(&[0, 3], DType::F32, device).unwrap();
    for mask in [&[0, 3][..], &[0, 1], &[1, 3], &[]] {
        let mask = Tensor::ones(mask, DType::Bool, device).unwrap();
        assert_eq!(x.masked_fill(&mask, 2.0).unwrap().shape().to_vec(), [0, 3]);
        x.copy().unwrap().in_place().masked_fill(&mask, 2.0).unwrap();
    }
    let mut shapes = indexed(device, &[3, 0], 0, &[2, 0], &[2, 0]);
    shapes.dedup();
    assert_eq!(shapes, [[2, 0]]);
    assert_eq!(indexed(device, &[2, 0, 4], 2, &[5], &[2, 0, 5]), [[2, 0, 5]; 2]);
}
