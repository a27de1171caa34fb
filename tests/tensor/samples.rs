//! Tensors of any element type with distinct elements, in every memory layout, for the tests of operations that move
//! elements.

use half::f16;
use num_complex::Complex;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::{Element, Slice};

/// Numbers that look random: a linear congruential generator's upper half.
pub struct Draws(pub u64);

impl Draws {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }

    pub fn shape(&mut self, rank: usize, largest: usize) -> Vec<usize> {
        (0..rank).map(|_| 1 + self.below(largest)).collect()
    }

    /// An axis, and how it is named: from either end.
    pub fn axis(&mut self, rank: usize) -> (usize, isize) {
        let axis = self.below(rank);
        (axis, if self.below(2) == 0 { axis as isize } else { axis as isize - rank as isize })
    }

    /// An index, a third of them from the end.
    pub fn index(&mut self, size: usize) -> i64 {
        let index = self.below(size) as i64;
        if self.below(3) == 0 { index - size as i64 } else { index }
    }
}

/// An element that a number makes, each another one.
pub trait Sample: Element {
    fn of(number: usize) -> Self;
}

macro_rules! samples {
    ($($type:ty => |$number:ident| $sample:expr;)*) => {$(
        impl Sample for $type {
            fn of($number: usize) -> $type {
                $sample
            }
        }
    )*};
}

samples! {
    u8 => |number| number as u8;
    // NaNs among them, which only a copy of bits keeps apart.
    f16 => |number| f16::from_bits((number as u16).wrapping_mul(0x9e37) | 1);
    i32 => |number| number as i32;
    f32 => |number| 1.0 + number as f32;
    i64 => |number| 1 << 40 | number as i64;
    Complex<f32> => |number| Complex::new(number as f32, -1.0);
    Complex<f64> => |number| Complex::new(0.5, number as f64);
}

/// The bytes of elements: equal for what is bit for bit the same.
pub fn bits<T: Element>(elements: &[T]) -> &[u8] {
    bytemuck::cast_slice(elements)
}

pub fn counting<T: Sample>(sizes: &[usize]) -> Tensor {
    let elements: Vec<T> = (0..sizes.iter().product()).map(T::of).collect();
    Tensor::from_slice(&elements, sizes, &Device::cpu()).expect("a tensor")
}

pub const LAYOUTS: usize = 7;

/// A tensor of these sizes in one of several layouts.
pub fn with_layout<T: Sample>(sizes: &[usize], layout: usize) -> Tensor {
    let rank = sizes.len();
    let reversed: Vec<isize> = (0..rank as isize).rev().collect();
    match layout {
        1 => {
            let sizes: Vec<usize> = sizes.iter().rev().copied().collect();
            counting::<T>(&sizes).permute(&reversed).expect("a view")
        }
        2 => {
            let wide: Vec<usize> = sizes.iter().map(|size| 2 * size + 1).collect();
            (0..rank).fold(counting::<T>(&wide), |tensor, axis| {
                tensor.slice(axis as isize, Slice::from(1..).step(2)).expect("a view")
            })
        }
        3 => {
            let axes: Vec<isize> = (0..rank as isize).collect();
            counting::<T>(sizes).flip(&axes).expect("a view")
        }
        4 if rank > 0 => {
            let mut narrow = sizes.to_vec();
            narrow[0] = 1;
            counting::<T>(&narrow).expand(sizes).expect("a view")
        }
        5 => {
            // One element into the memory, and with a gap behind each row.
            let mut wide = sizes.to_vec();
            wide.iter_mut().for_each(|size| *size += 1);
            (0..rank).zip(sizes).fold(counting::<T>(&wide), |tensor, (axis, size)| {
                tensor.narrow(axis as isize, 1, *size).expect("a view")
            })
        }
        6 if rank > 1 => {
            let mut swapped = sizes.to_vec();
            swapped.swap(rank - 1, rank - 2);
            counting::<T>(&swapped).transpose(-1, -2).expect("a view")
        }
        _ => counting::<T>(sizes),
    }
}

/// Every index of a shape, in row-major order.
pub fn places(sizes: &[usize]) -> Vec<Vec<usize>> {
    sizes.iter().fold(vec![Vec::new()], |places, &size| {
        let longer = |place: Vec<usize>| (0..size).map(move |next| [place.clone(), vec![next]].concat());
        places.into_iter().flat_map(longer).collect()
    })
}

/// The place of an index in row-major order.
pub fn flat(sizes: &[usize], place: &[usize]) -> usize {
    place.iter().zip(sizes).fold(0, |flat, (index, size)| flat * size + index)
}

/// Which position an index names.
pub fn position(index: i64, size: usize) -> usize {
    (if index < 0 { index + size as i64 } else { index }) as usize
}

/// Calls a function of one type for each kind of element: all sizes, and bits that arithmetic would change.
macro_rules! for_each_sample {
    ($function:ident($($argument:expr),*)) => {
        $function::<u8>($($argument),*);
        $function::<half::f16>($($argument),*);
        $function::<f32>($($argument),*);
        $function::<i64>($($argument),*);
        $function::<num_complex::Complex<f32>>($($argument),*);
        $function::<num_complex::Complex<f64>>($($argument),*);
    };
}
pub(crate) use for_each_sample;
