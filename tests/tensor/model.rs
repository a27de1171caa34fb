//! The model: a shape and the elements in row-major order. Each view is written index by index.

use selvedge::tensor::{Device, Tensor};

/// Numbers that look random: a linear congruential generator's upper half.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }

    pub fn between(&mut self, low: isize, high: isize) -> isize {
        low + self.below((high - low + 1) as usize) as isize
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub sizes: Vec<usize>,
    pub elements: Vec<i32>,
}

/// Every index of a shape, in row-major order.
pub fn indices(sizes: &[usize]) -> Vec<Vec<usize>> {
    sizes.iter().fold(vec![Vec::new()], |indices, &size| {
        let longer = |index: Vec<usize>| (0..size).map(move |next| [index.clone(), vec![next]].concat());
        indices.into_iter().flat_map(longer).collect()
    })
}

impl Model {
    /// Whose elements are 0, 1, 2 and so on.
    pub fn counting(sizes: &[usize]) -> Model {
        Model { sizes: sizes.to_vec(), elements: (0..sizes.iter().product::<usize>() as i32).collect() }
    }

    pub fn tensor(&self) -> Tensor {
        Tensor::from_slice(&self.elements, &self.sizes, &Device::cpu()).expect("a tensor")
    }

    pub fn place(&self, index: &[usize]) -> usize {
        index.iter().zip(&self.sizes).fold(0, |place, (index, size)| place * size + index)
    }

    /// The model of other sizes whose element at an index is this one's at what `from` makes of it.
    pub fn map(&self, sizes: &[usize], from: impl Fn(&[usize]) -> Vec<usize>) -> Model {
        let elements = indices(sizes).iter().map(|index| self.elements[self.place(&from(index))]).collect();
        Model { sizes: sizes.to_vec(), elements }
    }

    pub fn check(&self, tensor: &Tensor, what: &str) {
        assert_eq!(**tensor.shape(), self.sizes[..], "{what}");
        assert_eq!(tensor.to_vec::<i32>().expect("elements"), self.elements, "{what}");
    }
}

/// Positions along a dimension by the rules of Python, one by one.
pub fn positions(size: usize, start: isize, stop: isize, step: isize) -> Vec<usize> {
    let size = size as isize;
    let wrap = |position: isize| if position < 0 { position + size } else { position };
    let (start, stop) = (wrap(start), wrap(stop));
    let mut found = Vec::new();
    if step > 0 {
        let mut at = start.max(0);
        while at < stop.min(size) {
            found.push(at as usize);
            at += step;
        }
    } else {
        let mut at = start.min(size - 1);
        while at > stop.max(-1) {
            found.push(at as usize);
            at += step;
        }
    }
    found
}
