//! Reading and writing by index, against loops over all coordinates.

use selvedge::Error;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use super::samples::{
    Draws, LAYOUTS, Sample, bits, counting, flat, for_each_sample, places, position, with_layout,
};

/// An index of these sizes along an axis of `size` positions, of some dtype and in some layout; its values.
fn index(draws: &mut Draws, sizes: &[usize], size: usize) -> (Tensor, Vec<i64>) {
    let layout = draws.below(4);
    let rank = sizes.len();
    let turned: Vec<isize> = (0..rank as isize).rev().collect();
    let stored: Vec<usize> = match layout {
        1 => sizes.iter().rev().copied().collect(),
        2 if rank > 0 => [&[1], &sizes[1..]].concat(),
        _ => sizes.to_vec(),
    };
    let count = stored.iter().product();
    let dtype =
        [DType::I64, DType::I32, DType::I8, DType::I16, DType::U8, DType::U16, DType::U32, DType::U64]
            [draws.below(8)];
    let negative = dtype.is_signed_integer();
    let values: Vec<i64> =
        (0..count).map(|_| if negative { draws.index(size) } else { draws.below(size) as i64 }).collect();
    let tensor = Tensor::from_slice(&values, &stored, &Device::cpu()).unwrap().cast(dtype).unwrap();
    let tensor = match layout {
        1 => tensor.permute(&turned).unwrap(),
        2 if rank > 0 => tensor.expand(sizes).unwrap(),
        _ => tensor,
    };
    let values = tensor.cast(DType::I64).unwrap().to_vec::<i64>().unwrap();
    (tensor, values)
}

fn check<T: Sample>(found: &Tensor, sizes: &[usize], wanted: &[T], what: &str) {
    assert_eq!(**found.shape(), *sizes, "{what}");
    assert_eq!(found.dtype(), T::DTYPE, "{what}");
    assert_eq!(bits(&found.to_vec::<T>().unwrap()), bits(wanted), "{what}");
}

fn reads<T: Sample>(seed: u64) {
    let draws = &mut Draws(seed);
    for case in 0..120 {
        let rank = 1 + draws.below(4);
        let sizes = draws.shape(rank, 5);
        let array = with_layout::<T>(&sizes, case % LAYOUTS);
        let elements = array.to_vec::<T>().unwrap();
        let (axis, named) = draws.axis(rank);
        let what = format!("{:?} of {sizes:?} along {axis}, case {case}", T::DTYPE);

        let mut of_index: Vec<usize> = sizes.iter().map(|&size| 1 + draws.below(size)).collect();
        of_index[axis] = draws.below(7);
        let (gathers, values) = index(draws, &of_index, sizes[axis]);
        let wanted: Vec<T> = places(&of_index)
            .into_iter()
            .zip(&values)
            .map(|(mut place, &index)| {
                place[axis] = position(index, sizes[axis]);
                elements[flat(&sizes, &place)]
            })
            .collect();
        check(&array.gather(named, &gathers).unwrap(), &of_index, &wanted, &format!("gather {what}"));
        let unchecked = array.gather_unchecked(named, &gathers).unwrap();
        check(&unchecked, &of_index, &wanted, &format!("gather_unchecked {what}"));

        let count = draws.below(6);
        let (list, values) = index(draws, &[count], sizes[axis]);
        let mut selected = sizes.clone();
        selected[axis] = count;
        let wanted: Vec<T> = places(&selected)
            .into_iter()
            .map(|mut place| {
                place[axis] = position(values[place[axis]], sizes[axis]);
                elements[flat(&sizes, &place)]
            })
            .collect();
        check(
            &array.index_select(named, &list).unwrap(),
            &selected,
            &wanted,
            &format!("index_select {what}"),
        );

        let rank_of_take = draws.below(3);
        let of_take = draws.shape(rank_of_take, 4);
        let (takes, values) = index(draws, &of_take, elements.len());
        let wanted: Vec<T> = values.iter().map(|&index| elements[position(index, elements.len())]).collect();
        check(&array.take(&takes).unwrap(), &of_take, &wanted, &format!("take {what}"));

        let mut of_index: Vec<usize> =
            sizes.iter().map(|&size| if draws.below(2) == 0 { 1 } else { size }).collect();
        of_index[axis] = 1 + draws.below(4);
        let (along, values) = index(draws, &of_index, sizes[axis]);
        let mut whole = sizes.clone();
        whole[axis] = of_index[axis];
        let wanted: Vec<T> = places(&whole)
            .into_iter()
            .map(|mut place| {
                let of: Vec<usize> =
                    place.iter().zip(&of_index).map(|(&at, size)| at.min(size - 1)).collect();
                place[axis] = position(values[flat(&of_index, &of)], sizes[axis]);
                elements[flat(&sizes, &place)]
            })
            .collect();
        let found = array.take_along_axis(named, &along).unwrap();
        check(&found, &whole, &wanted, &format!("take_along_axis {what}"));
    }
}

#[test]
fn reads_are_those_of_loops() {
    for_each_sample!(reads(7));
}

fn writes<T: Sample>(seed: u64) {
    let draws = &mut Draws(seed);
    for case in 0..120 {
        let rank = 1 + draws.below(4);
        let sizes = draws.shape(rank, 5);
        let array = with_layout::<T>(&sizes, case % LAYOUTS);
        let before = array.to_vec::<T>().unwrap();
        let (axis, named) = draws.axis(rank);
        let layout = draws.below(LAYOUTS);
        let what = format!("{:?} of {sizes:?} along {axis}, case {case}, layout {layout}", T::DTYPE);

        let mut of_index: Vec<usize> = sizes.iter().map(|&size| 1 + draws.below(size)).collect();
        of_index[axis] = draws.below(7);
        let (scatters, values) = index(draws, &of_index, sizes[axis]);
        let elements = with_layout::<T>(&of_index, layout);
        let mut wanted = before.clone();
        let from = elements.to_vec::<T>().unwrap();
        for ((mut place, &index), element) in places(&of_index).into_iter().zip(&values).zip(&from) {
            place[axis] = position(index, sizes[axis]);
            wanted[flat(&sizes, &place)] = *element;
        }
        let found = array.scatter(named, &scatters, &elements).unwrap();
        check(&found, &sizes, &wanted, &format!("scatter {what}"));
        let found = array.scatter_unchecked(named, &scatters, &elements).unwrap();
        check(&found, &sizes, &wanted, &format!("scatter_unchecked {what}"));

        let count = draws.below(6);
        let (list, values) = index(draws, &[count], sizes[axis]);
        let mut parts = sizes.clone();
        parts[axis] = count;
        let elements = with_layout::<T>(&parts, layout);
        let from = elements.to_vec::<T>().unwrap();
        let mut wanted = before.clone();
        for (mut place, element) in places(&parts).into_iter().zip(&from) {
            place[axis] = position(values[place[axis]], sizes[axis]);
            wanted[flat(&sizes, &place)] = *element;
        }
        let found = array.index_copy(named, &list, &elements).unwrap();
        check(&found, &sizes, &wanted, &format!("index_copy {what}"));

        let of_put = draws.shape(2, 4);
        let (puts, values) = index(draws, &of_put, before.len());
        let elements = with_layout::<T>(&of_put, layout);
        let mut wanted = before.clone();
        for (index, element) in values.iter().zip(elements.to_vec::<T>().unwrap()) {
            wanted[position(*index, before.len())] = element;
        }
        check(&array.put(&puts, &elements).unwrap(), &sizes, &wanted, &format!("put {what}"));
        // Into what is there: a view that steps, whose other elements stay.
        if case % LAYOUTS != 4 {
            let mut own = array.copy().unwrap();
            own.in_place().put(&puts, &elements).unwrap();
            check(&own, &sizes, &wanted, &format!("put in place {what}"));
        }
        assert_eq!(
            bits(&array.to_vec::<T>().unwrap()),
            bits(&before),
            "{what} changed what it was made from"
        );
    }
}

#[test]
fn writes_are_those_of_loops_and_the_last_one_stays() {
    for_each_sample!(writes(11));
}

#[test]
fn parts_are_written_in_place() {
    let cpu = Device::cpu();
    let mut x = counting::<i32>(&[3, 4]);
    let clone = x.clone();
    let index = Tensor::new([[1, 0]], &cpu).unwrap();
    let elements = Tensor::new([[-1, -2]], &cpu).unwrap();
    x.slice_mut(1, 1..3).unwrap().scatter(1, &index, &elements).unwrap();
    assert_eq!(x.to_vec::<i32>().unwrap(), [0, -2, -1, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    // No stride counts through a part of rows.
    let ends = Tensor::new([0, -1], &cpu).unwrap();
    x.slice_mut(1, 2..).unwrap().put(&ends, &Tensor::new([20, 21], &cpu).unwrap()).unwrap();
    assert_eq!(x.to_vec::<i32>().unwrap(), [0, -2, 20, 3, 4, 5, 6, 7, 8, 9, 10, 21]);
    let row = Tensor::new([30, 31, 32, 33], &cpu).unwrap();
    x.in_place().index_copy(0, &Tensor::new(1, &cpu).unwrap(), &row).unwrap();
    assert_eq!(x.to_vec::<i32>().unwrap(), [0, -2, 20, 3, 30, 31, 32, 33, 8, 9, 10, 21]);
    // As many elements in another shape count in row-major order.
    let (places, three) =
        (Tensor::new([[2, 0, 1]], &cpu).unwrap(), Tensor::new([[40], [41], [42]], &cpu).unwrap());
    assert_eq!(x.put(&places, &three).unwrap().to_vec::<i32>().unwrap()[..4], [41, 42, 40, 3]);
    assert!(x.put(&places, &Tensor::new([40, 41], &cpu).unwrap()).is_err());
    // Elements broadcast.
    let column = Tensor::new([[0], [1], [2]], &cpu).unwrap();
    x.in_place().scatter(1, &column, &Tensor::new(7, &cpu).unwrap()).unwrap();
    assert_eq!(x.to_vec::<i32>().unwrap(), [7, -2, 20, 3, 30, 7, 32, 33, 8, 9, 7, 21]);
    assert_eq!(clone.to_vec::<i32>().unwrap(), (0..12).collect::<Vec<i32>>());
}

#[test]
fn much_is_shared_out_among_threads() {
    let cpu = Device::cpu();
    let (rows, width, count) = (1000, 257, 3001);
    let x = counting::<i32>(&[rows, width]);
    let draws = &mut Draws(3);
    let values: Vec<i32> = (0..count).map(|_| draws.below(rows) as i32).collect();
    let index = Tensor::from_slice(&values, &[count], &cpu).unwrap();
    let found = x.index_select(0, &index).unwrap().to_vec::<i32>().unwrap();
    let wanted =
        values.iter().flat_map(|&row| (0..width as i32).map(move |column| row * width as i32 + column));
    assert!(found.into_iter().eq(wanted));
    let elements = counting::<i32>(&[count, width]);
    let found = x.index_copy(0, &index, &elements).unwrap().to_vec::<i32>().unwrap();
    let mut wanted: Vec<i32> = (0..(rows * width) as i32).collect();
    for (from, &row) in values.iter().enumerate() {
        for column in 0..width {
            wanted[row as usize * width + column] = (from * width + column) as i32;
        }
    }
    assert_eq!(found, wanted);

    let count = 1 << 19;
    let values: Vec<i64> = (0..count).map(|_| draws.below(1000) as i64 - 500).collect();
    let index = Tensor::from_slice(&values, &[count], &cpu).unwrap();
    let small = counting::<u8>(&[500]);
    let found = small.take(&index).unwrap().to_vec::<u8>().unwrap();
    assert!(found.into_iter().eq(values.iter().map(|&index| position(index, 500) as u8)));
    let found = small.cast(DType::I32).unwrap().put(&index, &counting::<i32>(&[count])).unwrap();
    let mut wanted = vec![0; 500];
    values.iter().enumerate().for_each(|(at, &index)| wanted[position(index, 500)] = at as i32);
    assert_eq!(found.to_vec::<i32>().unwrap(), wanted);
    // The error names the first wrong one, whichever thread finds it.
    let mut wrong = values;
    for (at, first) in [(count - 1, count - 1), (count / 2, count / 2), (400_000, count / 2)] {
        wrong[at] = 500 + at as i64;
        let index = Tensor::from_slice(&wrong, &[count], &cpu).unwrap();
        let index_of_first = 500 + first as i64;
        let wanted =
            Error::IndexOutOfRange { operation: "take", index: index_of_first, axis: None, size: 500 };
        assert_eq!(small.take(&index).unwrap_err().to_string(), wanted.to_string());
    }
}

#[test]
fn one_hot_is_one_at_its_class() {
    let cpu = Device::cpu();
    for dtype in [DType::I64, DType::U8, DType::I32, DType::U64] {
        let x = Tensor::new([[2i64, 0], [1, 1]], &cpu).unwrap().cast(dtype).unwrap();
        let found = x.one_hot(3).unwrap();
        assert_eq!((found.dtype(), &**found.shape()), (dtype, &[2, 2, 3][..]));
        let found = found.cast(DType::I64).unwrap().to_vec::<i64>().unwrap();
        assert_eq!(found, [0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0]);
    }
    let error = Tensor::new([3, 0], &cpu).unwrap().one_hot(3).unwrap_err().to_string();
    assert_eq!(
        error,
        "one_hot: found index 3 along axis 1; wanted one of 0 to 2, or of -3 to -1 from the end"
    );
}

/// The error's text has all of these parts.
fn says(result: selvedge::Result<Tensor>, parts: &[&str]) {
    let error = result.unwrap_err().to_string();
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn indices_out_of_range_are_errors_and_nothing_is_lost() {
    let cpu = Device::cpu();
    let x = counting::<f32>(&[2, 3]);
    let list = |values: &[i64]| Tensor::from_slice(values, &[values.len()], &cpu).unwrap();
    for (wrong, size) in [(2, 2), (-3, 2), (i64::MAX, 2), (i64::MIN, 2)] {
        let told =
            [format!("index {wrong} along axis 0"), format!("0 to {}", size - 1), "index_select".into()];
        says(x.index_select(0, &list(&[0, wrong])), &told.each_ref().map(String::as_str));
    }
    let mut y = x.copy().unwrap();
    let ones = Tensor::ones(&[], DType::F32, &cpu).unwrap();
    for wrong in [6, -7, i64::MIN] {
        let error = y.in_place().put(&list(&[0, wrong]), &ones).err().unwrap();
        let wanted = Error::IndexOutOfRange { operation: "put", index: wrong, axis: None, size: 6 };
        assert_eq!(error.to_string(), wanted.to_string());
        assert_eq!(y.to_vec::<f32>().unwrap(), x.to_vec::<f32>().unwrap(), "what failed wrote something");
    }
    says(
        x.take(&Tensor::from_slice(&[u64::MAX], &[1], &cpu).unwrap()),
        &["take", "of all elements", "0 to 5"],
    );
    says(x.narrow(0, 0, 0).unwrap().index_select(0, &list(&[0])), &["no positions"]);
    says(x.scatter(-1, &Tensor::new([[3]], &cpu).unwrap(), &ones), &["scatter", "index 3 along axis 1"]);
    says(x.index_copy(0, &list(&[-3]), &ones), &["index_copy", "index -3 along axis 0"]);
    says(
        x.take_along_axis(1, &Tensor::new([[5]], &cpu).unwrap()),
        &["take_along_axis", "index 5 along axis 1"],
    );

    let unchecked = x.index_select_unchecked(1, &list(&[9, 0, -9])).unwrap();
    assert_eq!(unchecked.to_vec::<f32>().unwrap(), [0.0, 1.0, 0.0, 0.0, 4.0, 0.0]);
    assert_eq!(x.take_unchecked(&list(&[i64::MIN, 5])).unwrap().to_vec::<f32>().unwrap(), [0.0, 6.0]);
    let index = Tensor::new([[3, 1]], &cpu).unwrap();
    assert_eq!(x.gather_unchecked(1, &index).unwrap().to_vec::<f32>().unwrap(), [0.0, 2.0]);
    let unchecked = x.scatter_unchecked(1, &index, &Tensor::new([[-1.0f32, -2.0]], &cpu).unwrap()).unwrap();
    assert_eq!(unchecked.to_vec::<f32>().unwrap(), [1.0, -2.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn what_does_not_fit_names_both_sides() {
    let cpu = Device::cpu();
    let x = counting::<f32>(&[2, 3]);
    let index = Tensor::new([[0, 1]], &cpu).unwrap();
    says(x.gather(2, &index), &["gather", "2"]);
    says(x.gather(0, &Tensor::new([0, 1], &cpu).unwrap()), &["shape [2]", "shape [2, 3]"]);
    says(
        x.gather(1, &Tensor::new([[0], [1], [0]], &cpu).unwrap()),
        &["shape [3, 1]", "shape [2, 3]", "axis 1"],
    );
    says(x.gather(1, &Tensor::new([[0.5f32]], &cpu).unwrap()), &["gather", "integers", "f32"]);
    says(x.take(&Tensor::new([true], &cpu).unwrap()), &["take", "integers", "bool"]);
    says(x.index_select(0, &index), &["index_select", "shape [1, 2]", "one dimension"]);
    says(x.take_along_axis(0, &Tensor::new([0], &cpu).unwrap()), &["shape [1]", "shape [2, 3]"]);
    says(x.take_along_axis(0, &Tensor::new([[0, 1]], &cpu).unwrap()), &["take_along_axis: ", "[1, 2]"]);
    let elements = Tensor::new([[1i32, 2]], &cpu).unwrap();
    says(x.scatter(0, &index, &elements), &["scatter", "elements of f32", "elements of i32"]);
    says(x.scatter(0, &index, &counting::<f32>(&[3])), &["expand", "[3]", "[1, 2]"]);
    says(Tensor::new([0.5f32], &cpu).unwrap().one_hot(2), &["one_hot", "integers", "f32"]);
    // Nothing to do is no error.
    let none = x.index_select(1, &Tensor::from_slice::<i32>(&[], &[0], &cpu).unwrap()).unwrap();
    assert_eq!(**none.shape(), [2, 0]);
    let empty = x.narrow(0, 0, 0).unwrap();
    assert_eq!(**empty.index_select(1, &Tensor::new([2, 2], &cpu).unwrap()).unwrap().shape(), [0, 2]);
}

#[test]
fn one_hot_of_no_classes_has_no_position_for_an_element() {
    let error = Tensor::zeros(&[1], DType::I64, &Device::cpu()).unwrap().one_hot(0).unwrap_err();
    assert!(matches!(error, Error::IndexOutOfRange { operation: "one_hot", size: 0, .. }), "{error}");
}
