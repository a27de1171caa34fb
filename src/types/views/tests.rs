//! Tests of views against a model that lists the offset of every element and knows no strides.

use super::*;

/// The offset of each element, in row-major order.
#[derive(Debug, PartialEq)]
struct Model {
    sizes: Vec<usize>,
    offsets: Vec<usize>,
}

/// Returns every index of a shape, in row-major order.
fn indices(sizes: &[usize]) -> Vec<Vec<usize>> {
    sizes.iter().fold(vec![Vec::new()], |indices, &size| {
        let extended =
            |index: &Vec<usize>| (0..size).map(|last| [&index[..], &[last]].concat()).collect::<Vec<_>>();
        indices.iter().flat_map(extended).collect()
    })
}

impl Model {
    fn of(layout: &Layout) -> Model {
        let offset = |index: Vec<usize>| {
            let steps = index.iter().zip(layout.strides()).map(|(&index, &stride)| index as isize * stride);
            usize::try_from(layout.offset() as isize + steps.sum::<isize>()).unwrap()
        };
        Model {
            sizes: layout.shape().to_vec(),
            offsets: indices(layout.shape()).into_iter().map(offset).collect(),
        }
    }

    fn at(&self, index: &[usize]) -> usize {
        let linear = index.iter().zip(&self.sizes).fold(0, |linear, (&index, &size)| linear * size + index);
        self.offsets[linear]
    }

    /// Returns a view of these sizes whose element at `index` is the one of `self` at `source(index)`.
    fn view(&self, sizes: &[usize], source: impl Fn(&[usize]) -> Vec<usize>) -> Model {
        let offsets = indices(sizes).iter().map(|index| self.at(&source(index))).collect();
        Model { sizes: sizes.to_vec(), offsets }
    }
}

/// Returns layouts of all kinds: contiguous, permuted, stepped, reversed, broadcast, empty, of one element.
fn layouts() -> Vec<Layout> {
    let base = Layout::contiguous(&[3, 4, 2]).unwrap();
    vec![
        base,
        base.permute(&[2, 0, 1]).unwrap(),
        base.slice(1, Slice::from(..).step(-2)).unwrap(),
        base.flip(&[0, 2]).unwrap(),
        base.narrow(1, 1, 2).unwrap(),
        base.select(0, 1).unwrap().unsqueeze(1).unwrap(),
        Layout::contiguous(&[3, 1]).unwrap().expand(&Shape::new(&[2, 3, 4]).unwrap()).unwrap(),
        Layout::contiguous(&[2, 0, 3]).unwrap(),
        Layout::contiguous(&[1, 1, 1]).unwrap(),
        Layout::strided(&[2, 2, 2], &[7, -3, 0], 30).unwrap(),
    ]
}

#[test]
fn permuted_and_flipped() {
    for layout in layouts() {
        let model = Model::of(&layout);
        let axes = [2, 0, 1];
        let sizes = axes.map(|axis| layout.shape()[axis]);
        let wanted = model.view(&sizes, |index| vec![index[1], index[2], index[0]]);
        assert_eq!(Model::of(&layout.permute(&[-1, 0, 1]).unwrap()), wanted, "{layout:?}");
        let swapped =
            model.view(&[model.sizes[0], model.sizes[2], model.sizes[1]], |i| vec![i[0], i[2], i[1]]);
        assert_eq!(Model::of(&layout.transpose(1, -1).unwrap()), swapped, "{layout:?}");
        let last = model.sizes.clone();
        let flipped = model.view(&last, |i| vec![last[0] - 1 - i[0], i[1], last[2] - 1 - i[2]]);
        assert_eq!(Model::of(&layout.flip(&[0, -1]).unwrap()), flipped, "{layout:?}");
    }
}

#[test]
fn sliced_as_in_python() {
    let values: Vec<Option<isize>> =
        [None, Some(isize::MIN), Some(isize::MAX)].into_iter().chain((-6..=6).map(Some)).collect();
    for size in [0usize, 1, 4, 5] {
        let layout = Layout::strided(&[size, 2], &[-3, 1], 3 * size.max(1)).unwrap();
        let model = Model::of(&layout);
        for (&start, &stop) in values.iter().flat_map(|start| values.iter().map(move |stop| (start, stop))) {
            for step in [1, 2, 3, 100, isize::MAX, -1, -2, -3, -100, isize::MIN] {
                // The walk follows Python's documentation: from the clamped start until it reaches or passes
                // the clamped stop.
                let clamp = |position: isize, low: isize, high: isize| {
                    let position =
                        if position < 0 { position.saturating_add(size as isize) } else { position };
                    position.max(low).min(high)
                };
                let (low, high) = if step > 0 { (0, size as isize) } else { (-1, size as isize - 1) };
                let mut at =
                    start.map_or(if step > 0 { 0 } else { size as isize - 1 }, |p| clamp(p, low, high));
                let end = stop.map_or(if step > 0 { size as isize } else { -1 }, |p| clamp(p, low, high));
                let mut positions = Vec::new();
                while if step > 0 { at < end } else { at > end } {
                    positions.push(at as usize);
                    at = at.saturating_add(step);
                }
                let found = layout.slice(0, Slice { start, stop, step }).unwrap();
                let wanted = model.view(&[positions.len(), 2], |index| vec![positions[index[0]], index[1]]);
                assert_eq!(Model::of(&found), wanted, "{start:?}:{stop:?}:{step} of {size}");
            }
        }
    }
    let line = Layout::contiguous(&[4]).unwrap();
    assert!(line.slice(0, Slice::from(..).step(0)).unwrap_err().to_string().contains("a step of 0"));
    assert!(line.slice(1, ..).is_err());
    assert_eq!(line.slice(0, 1..).unwrap().count() + line.slice(0, ..-1).unwrap().count(), 6);
}

#[test]
fn narrowed_and_selected() {
    for layout in layouts() {
        let model = Model::of(&layout);
        for axis in 0..3 {
            let size = model.sizes[axis];
            for (start, length) in (0..=size).flat_map(|start| (0..=size - start).map(move |n| (start, n))) {
                let mut sizes = model.sizes.clone();
                sizes[axis] = length;
                let wanted = model.view(&sizes, |index| {
                    let mut index = index.to_vec();
                    index[axis] += start;
                    index
                });
                assert_eq!(Model::of(&layout.narrow(axis as isize, start, length).unwrap()), wanted);
            }
            for position in 0..size {
                let sizes: Vec<usize> = (0..3).filter(|at| *at != axis).map(|at| model.sizes[at]).collect();
                let wanted =
                    model.view(&sizes, |index| [&index[..axis], &[position], &index[axis..]].concat());
                let from_end = position as isize - size as isize;
                assert_eq!(Model::of(&layout.select(axis as isize - 3, from_end).unwrap()), wanted);
            }
            for index in [size as isize, -(size as isize) - 1, isize::MIN] {
                assert!(layout.select(axis as isize, index).is_err());
            }
        }
        assert!(matches!(layout.narrow(0, 2, usize::MAX), Err(Error::OutOfRange { .. })));
        assert!(layout.narrow(0, 0, model.sizes[0] + 1).is_err());
    }
}

#[test]
fn dimensions_of_one_come_and_go() {
    for layout in layouts() {
        let model = Model::of(&layout);
        for axis in -4..=3isize {
            let wide = layout.unsqueeze(axis).unwrap();
            assert_eq!(Model::of(&wide).offsets, model.offsets);
            assert_eq!(wide.shape()[if axis < 0 { (axis + 4) as usize } else { axis as usize }], 1);
            assert_eq!(Model::of(&wide.squeeze(axis).unwrap()), model);
        }
        assert!(layout.unsqueeze(4).is_err() && layout.unsqueeze(-5).is_err());
        assert!(layout.squeeze_all().shape().iter().all(|size| *size != 1));
        assert_eq!(Model::of(&layout.squeeze_all()).offsets, model.offsets);
    }
    assert!(Layout::contiguous(&[2]).unwrap().squeeze(0).unwrap_err().to_string().contains("size 2"));
    let full = Layout::contiguous(&[1; MAX_RANK]).unwrap();
    assert!(full.unsqueeze(0).unwrap_err().to_string().contains("17 dimensions"));
    assert!(full.unfold(0, 1, 1).is_err());
}

#[test]
fn expanded_by_repetition() {
    let column = Layout::strided(&[3, 1], &[-2, 5], 9).unwrap();
    let shape = Shape::new(&[2, 3, 4]).unwrap();
    let wanted = Model::of(&column).view(&shape, |index| vec![index[1], 0]);
    assert_eq!(Model::of(&column.expand(&shape).unwrap()), wanted);
    for sizes in [&[3][..], &[4, 1], &[3, 1, 2]] {
        let shape = Shape::new(sizes).unwrap();
        let error = column.expand(&shape).unwrap_err().to_string();
        assert!(error.contains("[3, 1]") && error.contains(&shape.to_string()), "{error}");
    }
}

#[test]
fn diagonals() {
    for layout in layouts() {
        let model = Model::of(&layout);
        for offset in [0, 1, 2, 3, -1, -2, -3, -9, 9, isize::MIN, isize::MAX] {
            let offsets: Vec<(usize, usize)> = (0..model.sizes[1])
                .flat_map(|row| (0..model.sizes[2]).map(move |column| (row, column)))
                .filter(|&(row, column)| column as isize - row as isize == offset)
                .collect();
            let wanted = model.view(&[model.sizes[0], offsets.len()], |index| {
                vec![index[0], offsets[index[1]].0, offsets[index[1]].1]
            });
            assert_eq!(Model::of(&layout.diagonal(offset, 1, 2).unwrap()), wanted, "{layout:?} {offset}");
        }
        assert!(layout.diagonal(0, 1, -2).is_err());
    }
}

#[test]
fn windows() {
    for layout in layouts() {
        let model = Model::of(&layout);
        for axis in 0..3 {
            for (size, step) in [(1, 1), (2, 1), (2, 3), (1, 2), (0, 1), (2, usize::MAX / 2)] {
                let Some(rest) = model.sizes[axis].checked_sub(size) else {
                    assert!(layout.unfold(axis as isize, size, step).is_err());
                    continue;
                };
                let mut sizes = model.sizes.clone();
                sizes[axis] = rest / step + 1;
                sizes.push(size);
                let wanted = model.view(&sizes, |index| {
                    let mut source = index[..3].to_vec();
                    source[axis] = index[axis] * step + index[3];
                    source
                });
                assert_eq!(Model::of(&layout.unfold(axis as isize, size, step).unwrap()), wanted);
            }
            assert!(layout.unfold(axis as isize, 1, 0).is_err());
        }
    }
}

#[test]
fn reshaped_where_strides_allow() {
    let shapes: [&[usize]; 12] = [
        &[24],
        &[6, 4],
        &[2, 12],
        &[4, 6],
        &[3, 8],
        &[2, 3, 4],
        &[1, 24, 1],
        &[2, 2, 2, 3],
        &[8],
        &[1],
        &[0, 7],
        &[16],
    ];
    let mut copies = 0;
    for layout in layouts() {
        let offsets = Model::of(&layout).offsets;
        for sizes in shapes {
            let shape = Shape::new(sizes).unwrap();
            if shape.count() != layout.count() {
                assert!(layout.reshape(&shape).is_err());
                continue;
            }
            match layout.reshape(&shape).unwrap() {
                Some(view) => {
                    assert_eq!(Model::of(&view), Model { sizes: sizes.to_vec(), offsets: offsets.clone() })
                }
                None => {
                    copies += 1;
                    assert!(!any_strides_express(&offsets, sizes), "{layout:?} to {shape}");
                }
            }
        }
    }
    assert!(copies > 3, "{copies}");
    let error = layouts()[0].reshape(&Shape::new(&[5]).unwrap()).unwrap_err().to_string();
    assert!(error.contains("24 elements") && error.contains("5 for"), "{error}");
}

/// Returns whether some strides give these offsets. The neighbours of the first element determine the only
/// candidates.
fn any_strides_express(offsets: &[usize], sizes: &[usize]) -> bool {
    let mut apart = vec![0isize; sizes.len()];
    let mut linear = 1;
    for (axis, &size) in sizes.iter().enumerate().rev() {
        if size > 1 {
            apart[axis] = offsets[linear] as isize - offsets[0] as isize;
        }
        linear *= size;
    }
    indices(sizes).iter().zip(offsets).all(|(index, &offset)| {
        let steps = index.iter().zip(&apart).map(|(&index, &apart)| index as isize * apart);
        offsets[0] as isize + steps.sum::<isize>() == offset as isize
    })
}

#[test]
fn bad_permutations_are_errors() {
    let layout = Layout::contiguous(&[2, 3]).unwrap();
    for axes in [&[0][..], &[0, 0], &[0, 1, 1], &[0, 2], &[]] {
        assert!(layout.permute(axes).is_err(), "{axes:?}");
    }
    assert!(layout.flip(&[0, -2]).is_err());
}
