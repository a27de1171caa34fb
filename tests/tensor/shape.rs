//! Tensors put together and taken apart, against loops over all coordinates.

use half::f16;
use selvedge::tensor::{Device, Padding, Tensor};
use selvedge::types::{Bool, DType};

use super::samples::{Draws, LAYOUTS, Sample, bits, counting, flat, for_each_sample, places, with_layout};

/// The tensor of these sizes whose element at a place is what `from` says.
fn check<T: Sample>(found: &Tensor, sizes: &[usize], from: impl Fn(&[usize]) -> T, what: &str) {
    assert_eq!(**found.shape(), *sizes, "{what}");
    let wanted: Vec<T> = places(sizes).iter().map(|place| from(place)).collect();
    assert_eq!(bits(&found.to_vec::<T>().unwrap()), bits(&wanted), "{what}");
}

fn joins<T: Sample>(seed: u64) {
    let draws = &mut Draws(seed);
    for case in 0..100 {
        let rank = 1 + draws.below(4);
        let sizes = draws.shape(rank, 4);
        let (axis, named) = draws.axis(rank);
        let what = format!("{:?} {sizes:?} along {axis}, case {case}", T::DTYPE);
        let parts: Vec<Tensor> = (0..1 + draws.below(3))
            .map(|part| {
                let mut sizes = sizes.clone();
                sizes[axis] = draws.below(4);
                with_layout::<T>(&sizes, (case + part) % LAYOUTS)
            })
            .collect();
        let elements: Vec<Vec<T>> = parts.iter().map(|part| part.to_vec().unwrap()).collect();
        let mut joined = sizes.clone();
        joined[axis] = parts.iter().map(|part| part.shape()[axis]).sum();
        let found = Tensor::cat(&parts.iter().collect::<Vec<_>>(), named).unwrap();
        let from = |place: &[usize]| {
            let mut place = place.to_vec();
            let mut part = 0;
            while place[axis] >= parts[part].shape()[axis] {
                place[axis] -= parts[part].shape()[axis];
                part += 1;
            }
            elements[part][flat(parts[part].shape(), &place)]
        };
        check(&found, &joined, from, &format!("cat {what}"));
        let lengths: Vec<usize> = parts.iter().map(|part| part.shape()[axis]).collect();
        for (view, part) in found.split(&lengths, named).unwrap().iter().zip(&elements) {
            assert_eq!(bits(&view.to_vec::<T>().unwrap()), bits(part), "split {what}");
        }

        let same: Vec<Tensor> =
            (0..2).map(|part| with_layout::<T>(&sizes, (case + part) % LAYOUTS)).collect();
        let elements: Vec<Vec<T>> = same.iter().map(|part| part.to_vec().unwrap()).collect();
        let new = draws.below(rank + 1);
        let mut stacked = sizes.clone();
        stacked.insert(new, 2);
        let found = Tensor::stack(&[&same[0], &same[1]], new as isize).unwrap();
        let from = |place: &[usize]| {
            let mut place = place.to_vec();
            let part = place.remove(new);
            elements[part][flat(&sizes, &place)]
        };
        check(&found, &stacked, from, &format!("stack {what} at {new}"));

        let x = &same[0];
        let elements = &elements[0];
        let other = draws.below(rank);
        let shifts = [draws.below(13) as isize - 6, draws.below(13) as isize - 6];
        let from = |place: &[usize]| {
            let mut place = place.to_vec();
            for (at, shift) in [(axis, shifts[0]), (other, shifts[1])] {
                place[at] = (place[at] as isize - shift).rem_euclid(sizes[at] as isize) as usize;
            }
            elements[flat(&sizes, &place)]
        };
        let found = x.roll(&shifts, &[named, other as isize]).unwrap();
        check(&found, &sizes, from, &format!("roll {what} by {shifts:?}, {other} too"));

        let more = draws.below(2);
        let times: Vec<usize> = (0..rank + more).map(|_| draws.below(4)).collect();
        let tiled: Vec<usize> = times
            .iter()
            .enumerate()
            .map(|(at, times)| times * if at < more { 1 } else { sizes[at - more] })
            .collect();
        let from = |place: &[usize]| {
            let place: Vec<usize> = place[more..].iter().zip(&sizes).map(|(at, size)| at % size).collect();
            elements[flat(&sizes, &place)]
        };
        check(&x.repeat(&times).unwrap(), &tiled, from, &format!("repeat {what} {times:?}"));
        let times = draws.below(4);
        let mut wide = sizes.clone();
        wide[axis] *= times;
        let from = |place: &[usize]| {
            let mut place = place.to_vec();
            place[axis] /= times;
            elements[flat(&sizes, &place)]
        };
        check(&x.repeat_interleave(times, named).unwrap(), &wide, from, &format!("repeat_interleave {what}"));
    }
}

#[test]
fn joins_are_those_of_loops() {
    for_each_sample!(joins(5));
}

fn pads<T: Sample>(seed: u64) {
    let draws = &mut Draws(seed);
    for case in 0..100 {
        let rank = 1 + draws.below(3);
        let sizes = draws.shape(rank, 4);
        let x = with_layout::<T>(&sizes, case % LAYOUTS);
        let elements = x.to_vec::<T>().unwrap();
        let padding = [Padding::ZEROS, Padding::Reflect, Padding::Replicate, Padding::Circular][case % 4];
        let most = |size: usize| match padding {
            Padding::Reflect => size,
            Padding::Circular => size + 1,
            _ => 4,
        };
        let widths: Vec<(usize, usize)> = sizes[..1 + draws.below(rank)]
            .iter()
            .map(|&size| (draws.below(most(size)), draws.below(most(size))))
            .collect();
        let width = |axis: usize| widths.get(axis).copied().unwrap_or_default();
        let padded: Vec<usize> =
            sizes.iter().enumerate().map(|(axis, size)| size + width(axis).0 + width(axis).1).collect();
        let from = |place: &[usize]| {
            let mut inside = Vec::new();
            for (axis, &at) in place.iter().enumerate() {
                let (at, size) = (at as isize - width(axis).0 as isize, sizes[axis] as isize);
                inside.push(match padding {
                    Padding::Constant(_) if !(0..size).contains(&at) => return T::zeroed(),
                    Padding::Reflect if at < 0 => -at,
                    Padding::Reflect if at >= size => 2 * (size - 1) - at,
                    Padding::Circular => at.rem_euclid(size),
                    _ => at.clamp(0, size - 1),
                } as usize);
            }
            elements[flat(&sizes, &inside)]
        };
        let what = format!("pad {:?} {sizes:?} by {widths:?} with {padding:?}, case {case}", T::DTYPE);
        check(&x.pad(&widths, padding).unwrap(), &padded, from, &what);
    }
}

#[test]
fn pads_are_those_of_loops() {
    for_each_sample!(pads(9));
}

fn triangles<T: Sample>(seed: u64) {
    let draws = &mut Draws(seed);
    for case in 0..60 {
        let rank = 2 + draws.below(2);
        let sizes = draws.shape(rank, 5);
        let x = with_layout::<T>(&sizes, case % LAYOUTS);
        let elements = x.to_vec::<T>().unwrap();
        let diagonal = draws.below(9) as isize - 4;
        let what = format!("{:?} {sizes:?} from {diagonal}, case {case}", T::DTYPE);
        let across = |place: &[usize]| place[rank - 1] as isize - place[rank - 2] as isize;
        let kept =
            |place: &[usize], keeps: bool| if keeps { elements[flat(&sizes, place)] } else { T::zeroed() };
        let lower = x.tril(diagonal).unwrap();
        check(&lower, &sizes, |place| kept(place, across(place) <= diagonal), &format!("tril {what}"));
        let upper = x.triu(diagonal).unwrap();
        check(&upper, &sizes, |place| kept(place, across(place) >= diagonal), &format!("triu {what}"));
    }
}

#[test]
fn triangles_are_those_of_loops() {
    for_each_sample!(triangles(13));
}

#[test]
fn bits_come_out_as_they_went_in() {
    let cpu = Device::cpu();
    // Signalling NaNs, which arithmetic would make quiet, zeros with a sign, and a bool that is another byte.
    let halves: Vec<f16> = [0x7c01, 0xfc01, 0x8000, 0x0001].map(f16::from_bits).to_vec();
    let x = Tensor::from_slice(&halves, &[4], &cpu).unwrap();
    let twice = Tensor::cat(&[&x, &x], 0).unwrap().narrow(0, 4, 4).unwrap();
    assert_eq!(bits(&twice.to_vec::<f16>().unwrap()), bits(&halves));
    let singles: Vec<f32> = [0x7f80_0001u32, 0xff80_0001, 0x8000_0000, 1].map(f32::from_bits).to_vec();
    let x = Tensor::from_slice(&singles, &[4], &cpu).unwrap();
    let rolled = x.roll(&[4], &[0]).unwrap().roll(&[1], &[0]).unwrap().roll(&[-1], &[0]).unwrap();
    assert_eq!(bits(&rolled.to_vec::<f32>().unwrap()), bits(&singles));
    assert_eq!(
        bits(&x.take(&Tensor::new([0, 1, 2, 3], &cpu).unwrap()).unwrap().to_vec::<f32>().unwrap()),
        bits(&singles)
    );
    // The 8-bit floats, which have no arithmetic, move like all others.
    for dtype in [DType::F8E4M3, DType::F8E5M2] {
        let x = Tensor::new([1.0f32, -2.0, 0.5], &cpu).unwrap().cast(dtype).unwrap();
        let joined = Tensor::cat(&[&x, &x], 0).unwrap();
        assert_eq!(joined.dtype(), dtype);
        let found = joined.roll(&[1], &[0]).unwrap().cast(DType::F32).unwrap().to_vec::<f32>().unwrap();
        assert_eq!(found, [0.5, 1.0, -2.0, 0.5, 1.0, -2.0]);
        let taken = x.take(&Tensor::new([2], &cpu).unwrap()).unwrap().cast(DType::F32).unwrap();
        assert_eq!(taken.item::<f32>().unwrap(), 0.5);
        let padded = x.pad(&[(1, 0)], Padding::Constant(4.0.into())).unwrap().cast(DType::F32).unwrap();
        assert_eq!(padded.to_vec::<f32>().unwrap(), [4.0, 1.0, -2.0, 0.5]);
    }
    let bools = Tensor::new([true, false], &cpu).unwrap().repeat(&[2]).unwrap();
    assert_eq!(bools.to_vec::<Bool>().unwrap(), [true, false, true, false].map(Bool::from));
}

#[test]
fn several_dtypes_are_promoted() {
    let cpu = Device::cpu();
    let integers = Tensor::new([1i32, -2], &cpu).unwrap();
    let halves = Tensor::new([0.5f32], &cpu).unwrap().cast(DType::F16).unwrap();
    let joined = Tensor::cat(&[&integers, &halves], 0).unwrap();
    assert_eq!(joined.dtype(), DType::F16);
    assert_eq!(joined.cast(DType::F64).unwrap().to_vec::<f64>().unwrap(), [1.0, -2.0, 0.5]);
    let bools = Tensor::new([true], &cpu).unwrap();
    let joined = Tensor::cat(&[&bools, &integers], 0).unwrap();
    assert_eq!(joined.to_vec::<i32>().unwrap(), [1, 1, -2]);
}

#[test]
fn chunks_are_of_one_size_but_the_last() {
    for (size, count, wanted) in [
        (5, 3, &[2, 2, 1][..]),
        (6, 3, &[2, 2, 2]),
        (4, 3, &[2, 2]),
        (2, 5, &[1, 1]),
        (0, 2, &[0]),
        (3, 1, &[3]),
    ] {
        let x = counting::<i32>(&[2, size]);
        let parts = x.chunk(count, 1).unwrap();
        let sizes: Vec<usize> = parts.iter().map(|part| part.shape()[1]).collect();
        assert_eq!(sizes, wanted, "{size} in {count}");
        let joined = Tensor::cat(&parts.iter().collect::<Vec<_>>(), 1).unwrap();
        assert_eq!(joined.to_vec::<i32>().unwrap(), x.to_vec::<i32>().unwrap());
    }
}

#[test]
fn many_dimensions_are_repeated_one_half_first() {
    let sizes = [1, 2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2];
    let x = counting::<i32>(&sizes);
    let times = [2, 2, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 2];
    let found = x.repeat(&times).unwrap();
    let tiled: Vec<usize> = sizes.iter().zip(&times).map(|(size, times)| size * times).collect();
    let from = |place: &[usize]| {
        let place: Vec<usize> = place.iter().zip(&sizes).map(|(at, size)| at % size).collect();
        flat(&sizes, &place) as i32
    };
    check(&found, &tiled, from, "repeat of 16 dimensions");
    let found = x.repeat_interleave(2, 3).unwrap();
    assert_eq!((found.shape()[3], found.count()), (4, 2 * x.count()));
}

#[test]
fn masks_replace_in_the_dtype_of_the_tensor() {
    let cpu = Device::cpu();
    let x = counting::<i32>(&[2, 2]).cast(DType::I16).unwrap();
    let mask = Tensor::new([[true], [false]], &cpu).unwrap();
    let filled = x.masked_fill(&mask, 9).unwrap();
    assert_eq!(filled.to_vec::<i16>().unwrap(), [9, 9, 2, 3]);
    let values = Tensor::new([-1i64, -2], &cpu).unwrap();
    assert_eq!(x.masked_fill(&mask, &values).unwrap().to_vec::<i16>().unwrap(), [-1, -2, 2, 3]);
    let mut own = x.copy().unwrap();
    let shared = own.clone();
    own.in_place().masked_fill(&mask, 7).unwrap();
    own.slice_mut(1, 1..).unwrap().masked_fill(&mask, &values.narrow(0, 1, 1).unwrap()).unwrap();
    assert_eq!(own.to_vec::<i16>().unwrap(), [7, -2, 2, 3]);
    assert_eq!(shared.to_vec::<i16>().unwrap(), [0, 1, 2, 3]);
    let error = x.masked_fill(&mask, 0.5).unwrap_err().to_string();
    assert!(error.contains("f32") && error.contains("i16"), "{error}");
    let error = x.masked_fill(&x, 1).unwrap_err().to_string();
    assert!(error.contains("bool") && error.contains("i16"), "{error}");
}

#[test]
fn what_does_not_fit_names_both_sides() {
    let cpu = Device::cpu();
    let x = counting::<i32>(&[2, 3]);
    let says = |result: selvedge::Result<Tensor>, parts: &[&str]| {
        let error = result.unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    };
    says(Tensor::cat(&[], 0), &["cat", "no tensors"]);
    says(Tensor::stack(&[], 0), &["no tensors"]);
    says(Tensor::cat(&[&x, &counting::<i32>(&[2, 4])], 0), &["[2, 3]", "[2, 4]", "axis 0"]);
    says(Tensor::cat(&[&x, &counting::<i32>(&[6])], 0), &["[2, 3]", "[6]"]);
    says(Tensor::cat(&[&x], 2), &["cat", "2"]);
    says(Tensor::stack(&[&x, &counting::<i32>(&[3, 2])], 0), &["stack", "[2, 3]", "[3, 2]"]);
    let eight = Tensor::new([1.0f32], &cpu).unwrap().cast(DType::F8E4M3).unwrap();
    assert!(Tensor::cat(&[&eight, &Tensor::new([1.0f32], &cpu).unwrap()], 0).is_err());
    says(x.roll(&[1], &[0, 1]), &["roll", "1 shifts", "2 axes"]);
    says(x.pad(&[(0, 0); 3], Padding::ZEROS), &["3 axes", "[2, 3]"]);
    says(x.pad(&[(2, 0)], Padding::Reflect), &["2 and 0", "axis 0 of size 2", "at most 1"]);
    says(x.pad(&[(0, 3)], Padding::Circular), &["at most 2"]);
    says(x.narrow(0, 0, 0).unwrap().pad(&[(1, 0)], Padding::Replicate), &["at most 0"]);
    says(x.pad(&[(usize::MAX, usize::MAX)], Padding::ZEROS), &["elements"]);
    says(x.repeat(&[usize::MAX, 2]), &["elements"]);
    says(x.repeat(&[1; 17]), &["17", "16"]);
    says(x.repeat_interleave(usize::MAX, 0), &["elements"]);
    says(x.flatten(0, -1).unwrap().tril(0), &["tril", "[6]", "two dimensions"]);
    assert!(x.split(&[1, 3], 1).unwrap_err().to_string().contains("sum is 3"));
    assert!(x.split(&[usize::MAX, 4], 1).unwrap_err().to_string().contains("sum is 3"));
    assert!(x.chunk(0, 0).unwrap_err().to_string().contains("at least one"));
}

#[test]
fn t_exchanges_the_axes_of_a_matrix_alone() {
    for (rank, sizes) in [[].as_slice(), &[3], &[2, 3]].into_iter().enumerate() {
        let transposed: Vec<usize> = sizes.iter().rev().copied().collect();
        assert_eq!(counting::<i32>(sizes).t().unwrap().shape()[..], transposed, "{rank}");
    }
    let error = counting::<i32>(&[2, 3, 4]).t().unwrap_err();
    assert_eq!(
        error.to_string(),
        "t: found 3 dimensions; wanted at most 2; use transpose, which names the axes"
    );
}
