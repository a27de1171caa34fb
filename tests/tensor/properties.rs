//! Random chains of views, broadcasting, and writes through views, each against the model.

use selvedge::tensor::{Device, Tensor};
use selvedge::types::Slice;

use super::model::{Model, Numbers, indices, positions};

fn sizes(numbers: &mut Numbers) -> Vec<usize> {
    (0..numbers.below(4)).map(|_| numbers.below(20).min(1) * numbers.below(6)).collect()
}

/// A view of both, of any kind; its name.
fn view(numbers: &mut Numbers, tensor: &Tensor, model: &Model) -> Option<(String, Tensor, Model)> {
    let rank = model.sizes.len();
    let sizes = model.sizes.clone();
    let kind = numbers.below(14);
    if rank == 0 && !matches!(kind, 5..=7) {
        return None;
    }
    let axis = numbers.below(rank.max(1));
    // Named from either end.
    let named = if numbers.below(2) == 0 { axis as isize } else { axis as isize - rank as isize };
    let without = |index: &[usize], axis: usize, place: usize| {
        let mut index = index.to_vec();
        index.insert(axis, place);
        index
    };
    Some(match kind {
        0 => {
            let mut axes: Vec<usize> = (0..rank).collect();
            for at in (1..rank).rev() {
                axes.swap(at, numbers.below(at + 1));
            }
            let signed: Vec<isize> = axes.iter().map(|&axis| axis as isize).collect();
            let turned: Vec<usize> = axes.iter().map(|&axis| sizes[axis]).collect();
            let from = |index: &[usize]| {
                let mut old = vec![0; rank];
                axes.iter().zip(index).for_each(|(&axis, &place)| old[axis] = place);
                old
            };
            (format!("permute {axes:?}"), tensor.permute(&signed).unwrap(), model.map(&turned, from))
        }
        1 => {
            let other = numbers.below(rank);
            let mut turned = sizes.clone();
            turned.swap(axis, other);
            let from = |index: &[usize]| {
                let mut old = index.to_vec();
                old.swap(axis, other);
                old
            };
            let view = tensor.transpose(named, other as isize).unwrap();
            (format!("transpose {axis} {other}"), view, model.map(&turned, from))
        }
        2 => {
            let size = sizes[axis] as isize;
            let step = [1, 2, 3, -1, -2][numbers.below(5)];
            let (start, stop) = (numbers.between(-size - 2, size + 2), numbers.between(-size - 2, size + 2));
            let taken = positions(sizes[axis], start, stop, step);
            let mut cut = sizes.clone();
            cut[axis] = taken.len();
            let from = |index: &[usize]| {
                let mut old = index.to_vec();
                old[axis] = taken[index[axis]];
                old
            };
            let view = tensor.slice(named, Slice::from(start..stop).step(step)).unwrap();
            (format!("slice {axis} {start}:{stop}:{step}"), view, model.map(&cut, from))
        }
        3 => {
            let start = numbers.below(sizes[axis] + 1);
            let length = numbers.below(sizes[axis] - start + 1);
            let mut cut = sizes.clone();
            cut[axis] = length;
            let from = |index: &[usize]| {
                let mut old = index.to_vec();
                old[axis] += start;
                old
            };
            let view = tensor.narrow(named, start, length).unwrap();
            (format!("narrow {axis} {start} {length}"), view, model.map(&cut, from))
        }
        4 => {
            if sizes[axis] == 0 {
                return None;
            }
            let place = numbers.below(sizes[axis]);
            let mut cut = sizes.clone();
            cut.remove(axis);
            let view = tensor.select(named, place as isize).unwrap();
            (format!("select {axis} {place}"), view, model.map(&cut, |index| without(index, axis, place)))
        }
        5 => {
            let axis = numbers.below(rank + 1);
            let mut longer = sizes.clone();
            longer.insert(axis, 1);
            let from = |index: &[usize]| {
                let mut old = index.to_vec();
                old.remove(axis);
                old
            };
            (format!("unsqueeze {axis}"), tensor.unsqueeze(axis as isize).unwrap(), model.map(&longer, from))
        }
        6 => {
            let kept: Vec<usize> = (0..rank).filter(|&axis| sizes[axis] != 1).collect();
            let cut: Vec<usize> = kept.iter().map(|&axis| sizes[axis]).collect();
            let from = |index: &[usize]| {
                let mut old = vec![0; rank];
                kept.iter().zip(index).for_each(|(&axis, &place)| old[axis] = place);
                old
            };
            ("squeeze_all".to_owned(), tensor.squeeze_all().unwrap(), model.map(&cut, from))
        }
        7 => {
            let mut wide: Vec<usize> = (0..numbers.below(2)).map(|_| numbers.below(3)).collect();
            let new = wide.len();
            wide.extend(sizes.iter().map(|&size| if size == 1 { numbers.below(4) } else { size }));
            let from = |index: &[usize]| {
                index[new..]
                    .iter()
                    .zip(&sizes)
                    .map(|(&place, &size)| if size == 1 { 0 } else { place })
                    .collect()
            };
            (format!("expand {wide:?}"), tensor.expand(&wide).unwrap(), model.map(&wide, from))
        }
        8 => {
            let from = |index: &[usize]| {
                let mut old = index.to_vec();
                old[axis] = sizes[axis] - 1 - old[axis];
                old
            };
            (format!("flip {axis}"), tensor.flip(&[named]).unwrap(), model.map(&sizes, from))
        }
        9 => {
            let other = numbers.below(rank);
            if other == axis {
                return None;
            }
            let offset = numbers.between(-3, 3);
            let (down, right) = ((-offset).max(0) as usize, offset.max(0) as usize);
            let count = sizes[axis].saturating_sub(down).min(sizes[other].saturating_sub(right));
            let mut cut: Vec<usize> =
                (0..rank).filter(|at| *at != axis && *at != other).map(|at| sizes[at]).collect();
            cut.push(count);
            let from = |index: &[usize]| {
                let (place, rest) = index.split_last().unwrap();
                let mut rest = rest.iter();
                let at = |at: usize| match at {
                    _ if at == axis => place + down,
                    _ if at == other => place + right,
                    _ => *rest.next().unwrap(),
                };
                (0..rank).map(at).collect()
            };
            let view = tensor.diagonal(offset, named, other as isize).unwrap();
            (format!("diagonal {offset} {axis} {other}"), view, model.map(&cut, from))
        }
        10 => {
            let size = numbers.below(sizes[axis] + 1);
            let step = 1 + numbers.below(3);
            let mut longer = sizes.clone();
            longer[axis] = (sizes[axis] - size) / step + 1;
            longer.push(size);
            let from = |index: &[usize]| {
                let (place, rest) = index.split_last().unwrap();
                let mut old = rest.to_vec();
                old[axis] = old[axis] * step + place;
                old
            };
            let view = tensor.unfold(named, size, step).unwrap();
            (format!("unfold {axis} {size} {step}"), view, model.map(&longer, from))
        }
        11 => {
            let to = numbers.below(rank);
            let mut order: Vec<usize> = (0..rank).collect();
            order.remove(axis);
            order.insert(to, axis);
            let moved: Vec<usize> = order.iter().map(|&axis| sizes[axis]).collect();
            let from = |index: &[usize]| {
                let mut old = vec![0; rank];
                order.iter().zip(index).for_each(|(&axis, &place)| old[axis] = place);
                old
            };
            let view = tensor.movedim(&[named], &[to as isize]).unwrap();
            (format!("movedim {axis} {to}"), view, model.map(&moved, from))
        }
        12 => {
            let last = axis + numbers.below(rank - axis);
            let mut flat = sizes[..axis].to_vec();
            flat.push(sizes[axis..=last].iter().product());
            flat.extend(&sizes[last + 1..]);
            let flat = Model { sizes: flat, elements: model.elements.clone() };
            (format!("flatten {axis} {last}"), tensor.flatten(named, last as isize).unwrap(), flat)
        }
        _ => {
            let mut other = vec![2, 3, 4, 6, 12][numbers.below(5)];
            let count = model.elements.len();
            if count == 0 || !count.is_multiple_of(other) {
                other = 1;
            }
            let reshaped = Model { sizes: vec![other, count / other], elements: model.elements.clone() };
            let open = if count == 0 { 0 } else { -1 };
            let view = tensor.reshape(&[other as isize, open]).unwrap();
            (format!("reshape {other}"), view, reshaped)
        }
    })
}

#[test]
fn views_show_what_the_model_shows() {
    let mut numbers = Numbers(1);
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    for _ in 0..3000 {
        let mut model = Model::counting(&sizes(&mut numbers));
        let mut tensor = model.tensor();
        let mut story = format!("{:?}", model.sizes);
        for _ in 0..4 {
            if model.sizes.len() > 6 || model.elements.len() > 2000 {
                break;
            }
            let Some((name, next, wanted)) = view(&mut numbers, &tensor, &model) else { continue };
            *seen.entry(name.split(' ').next().unwrap().to_owned()).or_default() += 1;
            story = format!("{story}, {name}");
            wanted.check(&next, &story);
            (tensor, model) = (next, wanted);
        }
        // Through an operation, which walks the strides in its own way.
        let negative: Vec<i32> = model.elements.iter().map(|x| -x).collect();
        assert_eq!(tensor.neg().unwrap().to_vec::<i32>().unwrap(), negative, "{story}");
    }
    assert_eq!(seen.len(), 14, "{seen:?}");
    assert!(seen.values().all(|count| *count > 50), "{seen:?}");
}

#[test]
fn operands_are_broadcast() {
    let mut numbers = Numbers(2);
    let (mut good, mut bad) = (0, 0);
    for _ in 0..1500 {
        let full: Vec<usize> = (0..1 + numbers.below(3)).map(|_| numbers.below(5)).collect();
        // Some sizes are 1, some dimensions are not there, and now and then one is wrong.
        let part = |numbers: &mut Numbers| {
            let from = numbers.below(full.len() + 1);
            let size = |&size: &usize| match numbers.below(7) {
                0..2 => 1,
                2 => size + 1,
                _ => size,
            };
            full[from..].iter().map(size).collect::<Vec<usize>>()
        };
        let (left, right) = (Model::counting(&part(&mut numbers)), Model::counting(&part(&mut numbers)));
        let rank = left.sizes.len().max(right.sizes.len());
        let size = |sizes: &[usize], axis: usize| {
            (axis + sizes.len()).checked_sub(rank).map_or(1, |axis| sizes[axis])
        };
        let both: Option<Vec<usize>> = (0..rank)
            .map(|axis| match (size(&left.sizes, axis), size(&right.sizes, axis)) {
                (1, other) | (other, 1) => Some(other),
                (one, other) => (one == other).then_some(one),
            })
            .collect();
        let found = &left.tensor() - &right.tensor();
        let Some(both) = both else {
            let error = found.unwrap_err().to_string();
            assert!(error.contains(&format!("{:?} and {:?}", left.sizes, right.sizes)), "{error}");
            bad += 1;
            continue;
        };
        let at = |model: &Model, index: &[usize]| {
            let index = &index[rank - model.sizes.len()..];
            let index: Vec<usize> = index
                .iter()
                .zip(&model.sizes)
                .map(|(&place, &size)| if size == 1 { 0 } else { place })
                .collect();
            model.elements[model.place(&index)]
        };
        let elements = indices(&both).iter().map(|index| at(&left, index) - at(&right, index)).collect();
        Model { sizes: both, elements }.check(&found.unwrap(), &format!("{left:?} {right:?}"));
        good += 1;
    }
    assert!(good > 500 && bad > 50, "{good} {bad}");
}

#[test]
fn writes_through_views_reach_these_elements_alone() {
    let mut numbers = Numbers(3);
    let mut written = 0;
    for round in 0..1500 {
        let mut model = Model::counting(&sizes(&mut numbers));
        let mut tensor = model.tensor();
        // Half of the time somebody else has the elements too.
        let other = (round % 2 == 0).then(|| tensor.clone());
        let before = model.clone();
        let rank = model.sizes.len();
        if rank == 0 {
            continue;
        }
        let (first, second) = (numbers.below(rank), numbers.below(rank));
        let (a, b) = (model.sizes[first] as isize, model.sizes[second] as isize);
        let cut = |numbers: &mut Numbers, size: isize| match [1, 2, -1, -3][numbers.below(4)] {
            step if step > 0 => (numbers.between(0, 2), size - numbers.between(-1, 1), step),
            step => (size - numbers.between(0, 2), -size - 1 + numbers.between(0, 1), step),
        };
        let (from, to) = (cut(&mut numbers, a), cut(&mut numbers, b));
        let slice = |(start, stop, step): (isize, isize, isize)| Slice::from(start..stop).step(step);
        // Which elements the view shows, as the model of their places sees it.
        let places = tensor.slice(first as isize, slice(from)).unwrap();
        let places = places.slice(second as isize, slice(to)).unwrap();
        let places: Vec<i32> = places.to_vec().unwrap();
        let view = tensor.slice_mut(first as isize, slice(from)).unwrap();
        let mut view = view.slice(second as isize, slice(to)).unwrap();
        match numbers.below(3) {
            0 => {
                view.mul(-3).unwrap().add(1).unwrap();
                places.iter().for_each(|&place| model.elements[place as usize] = -3 * place + 1);
            }
            1 => {
                view.fill(-7).unwrap();
                places.iter().for_each(|&place| model.elements[place as usize] = -7);
            }
            _ => {
                let values: Vec<i32> = (0..places.len() as i32).map(|x| 1000 + x).collect();
                let sizes = view.shape().to_vec();
                view.assign(&Tensor::from_slice(&values, &sizes, &Device::cpu()).unwrap()).unwrap();
                places.iter().zip(&values).for_each(|(&place, &x)| model.elements[place as usize] = x);
            }
        }
        written += places.len();
        model.check(&tensor, &format!("{:?} {first} {from:?} {second} {to:?}", model.sizes));
        if let Some(other) = other {
            before.check(&other, "the clone");
        }
    }
    assert!(written > 2000, "{written}");
}
