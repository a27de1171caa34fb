//! The folds as vector loops: sums, products of integers, and extremes of elements that are flipped so that the greatest is wanted ([`Ordered`]).

use bytemuck::Pod;

use super::ordered::Ordered;
use super::rows::position;
use super::vectors::vectorized;
use crate::fuse::plan::reduction::{LANES, SEGMENT};

/// A merge of lanes. The state of a fold is a key, which [`value`](Self::value) turns into the folded value.
pub(in crate::fuse::cpu) trait MergeKernel: Copy + Send + Sync {
    type Lane: Pod + Send + Sync;

    /// Returns the key of an element.
    fn key(self, element: Self::Lane) -> Self::Lane;

    /// Returns the value of a key.
    fn value(self, key: Self::Lane) -> Self::Lane;

    /// Folds two keys.
    fn merge(self, left: Self::Lane, right: Self::Lane) -> Self::Lane;
}

/// A fold of whole rows.
pub(super) trait FoldKernel: MergeKernel {
    /// Folds a row, or a part of one that is a node of the tree. The row has at least one element.
    fn fold_row(self, elements: &[Self::Lane]) -> Self::Lane;

    /// Folds elements into keys, each into the key beside it.
    #[inline(always)]
    fn merge_elements(self, keys: &mut [Self::Lane], elements: &[Self::Lane]) {
        keys.iter_mut().zip(elements).for_each(|(key, &x)| *key = self.merge(*key, self.key(x)));
    }

    /// Folds keys into keys.
    #[inline(always)]
    fn merge_keys(self, keys: &mut [Self::Lane], others: &[Self::Lane]) {
        keys.iter_mut().zip(others).for_each(|(key, &other)| *key = self.merge(*key, other));
    }

    /// Returns whether a later key is the extreme of the two. A sum has no extreme.
    fn exceeds(self, later: Self::Lane, key: Self::Lane) -> bool;

    /// Returns whether an element has this key, in the order of the fold.
    fn has_key(self, element: Self::Lane, key: Self::Lane) -> bool;

    /// Returns the key of a row's extreme, and the position of the first element that has it. The key of a zero may
    /// have either sign, because zeros are equal. The row has from 1 to [`BLOCK`](super::rows::BLOCK) elements.
    #[inline(always)]
    fn first_extreme(self, elements: &[Self::Lane]) -> (Self::Lane, usize) {
        let key = self.fold_row(elements);
        (key, position(self, elements, key))
    }

    /// Returns whether [`first_extremes`](Self::first_extremes) has a vector loop for so many columns.
    #[inline(always)]
    fn has_first_extremes(self, _: usize) -> bool {
        false
    }

    /// Finds the key of each column's extreme, and the position among all elements of the first one that has it, if one pass
    /// finds both: the fold has a vector loop for so many columns, and no element is NaN. The elements are rows of
    /// one number for each column, and at most [`COLUMNS_BLOCK`].
    #[inline(always)]
    fn first_extremes(self, _: &[Self::Lane], _: &mut [Self::Lane], _: &mut [usize]) -> bool {
        false
    }
}

/// The most elements of a matrix whose extremes one pass finds: positions are floats in vectors, which are exact.
pub(super) const COLUMNS_BLOCK: usize = 1 << 16;

/// A number that sums are made of.
pub(super) trait Addend: Pod + Send + Sync {
    fn plus(self, other: Self) -> Self;

    /// Returns the sum of a row.
    fn sum(elements: &[Self]) -> Self;
}

/// Sums. A key is the sum itself.
#[derive(Clone, Copy)]
pub(in crate::fuse::cpu) struct Sum<T>(std::marker::PhantomData<T>);

impl<T> Sum<T> {
    pub(in crate::fuse::cpu) fn new() -> Sum<T> {
        Sum(std::marker::PhantomData)
    }
}

impl<T: Addend> MergeKernel for Sum<T> {
    type Lane = T;

    #[inline(always)]
    fn key(self, element: T) -> T {
        element
    }

    #[inline(always)]
    fn value(self, key: T) -> T {
        key
    }

    #[inline(always)]
    fn merge(self, left: T, right: T) -> T {
        left.plus(right)
    }
}

impl<T: Addend> FoldKernel for Sum<T> {
    #[inline(always)]
    fn fold_row(self, elements: &[T]) -> T {
        T::sum(elements)
    }

    fn exceeds(self, _: T, _: T) -> bool {
        false
    }

    fn has_key(self, _: T, _: T) -> bool {
        false
    }
}

/// A number that products are made of, whose product is the same in any order.
pub(super) trait Factor: Pod {
    const ONE: Self;

    fn times(self, other: Self) -> Self;
}

impl Factor for u64 {
    const ONE: u64 = 1;

    #[inline(always)]
    fn times(self, other: u64) -> u64 {
        self.wrapping_mul(other)
    }
}

/// Products of integers. A key is the product itself.
#[derive(Clone, Copy)]
pub(in crate::fuse::cpu) struct Product;

impl MergeKernel for Product {
    type Lane = u64;

    #[inline(always)]
    fn key(self, element: u64) -> u64 {
        element
    }

    #[inline(always)]
    fn value(self, key: u64) -> u64 {
        key
    }

    #[inline(always)]
    fn merge(self, left: u64, right: u64) -> u64 {
        left.times(right)
    }
}

impl FoldKernel for Product {
    #[inline(always)]
    fn fold_row(self, elements: &[u64]) -> u64 {
        product_in_any_order(elements)
    }

    fn exceeds(self, _: u64, _: u64) -> bool {
        false
    }

    fn has_key(self, _: u64, _: u64) -> bool {
        false
    }
}

macro_rules! float_addends {
    ($($type:ty),*) => {$(
        impl Addend for $type {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn sum(elements: &[Self]) -> Self {
                sum_in_tree(elements)
            }
        }
    )*};
}

float_addends!(f32, f64);

impl Addend for u64 {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn sum(elements: &[Self]) -> Self {
        sum_in_any_order(elements)
    }
}

/// Bytes by which a line is asked for early.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 4096;

/// Asks for the lines of so many elements early: the loads of a segment's lanes leave the prefetcher behind.
#[inline(always)]
fn prefetch<T>(elements: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..size_of_val(elements)).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = elements.as_ptr().cast::<i8>().wrapping_add(line + AHEAD);
        // SAFETY: a hint reads nothing, so the address need not be valid.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = elements;
}

/// A segment's lanes. Vectors that cross lines of the cache took up to three times as long.
#[repr(align(64))]
struct Lanes<T>([T; LANES]);

/// Returns the sum of a segment's lanes after they have been folded to `COUNT`.
macro_rules! halve {
    ($lanes:ident: $($half:literal)*) => {$(
        for lane in 0..$half {
            $lanes[lane] = $lanes[lane].plus($lanes[lane + $half]);
        }
    )*};
}

vectorized! {
    /// Returns the sum in the tree of reductions, which reads each segment front to back.
    pub(super) fn sum_in_tree<T: Addend>(elements: &[T]) -> T {
        // A level for each bit of a count of segments.
        let mut tree = [T::zeroed(); usize::BITS as usize];
        let (mut depth, mut count) = (0, 0usize);
        for segment in elements.chunks(SEGMENT) {
            let mut lanes = Lanes([T::zeroed(); LANES]);
            let lanes = &mut lanes.0;
            let mut value = match <&[T; SEGMENT]>::try_from(segment) {
                Ok(segment) => {
                    let (first, rest) = segment.split_at(LANES);
                    prefetch(first);
                    lanes.copy_from_slice(first);
                    for round in rest.chunks_exact(LANES) {
                        prefetch(round);
                        for lane in 0..LANES {
                            lanes[lane] = lanes[lane].plus(round[lane]);
                        }
                    }
                    halve!(lanes: 128 64 32 16 8 4 2 1);
                    lanes[0]
                }
                Err(_) => {
                    for (round, elements) in segment.chunks(LANES).enumerate() {
                        match round {
                            0 => lanes[..elements.len()].copy_from_slice(elements),
                            _ => lanes.iter_mut().zip(elements).for_each(|(lane, &x)| *lane = lane.plus(x)),
                        }
                    }
                    let mut present = LANES.min(segment.len());
                    while present > 1 {
                        let half = present.next_power_of_two() / 2;
                        let (lower, upper) = lanes.split_at_mut(half);
                        let upper = &upper[..present - half];
                        lower.iter_mut().zip(upper).for_each(|(lane, &x)| *lane = lane.plus(x));
                        present = half;
                    }
                    lanes[0]
                }
            };
            for _ in 0..count.trailing_ones() {
                depth -= 1;
                value = tree[depth].plus(value);
            }
            tree[depth] = value;
            depth += 1;
            count += 1;
        }
        let mut value = tree[depth.max(1) - 1];
        for &left in tree[..depth.max(1) - 1].iter().rev() {
            value = left.plus(value);
        }
        value
    }

    /// Returns the product of integers.
    pub(super) fn product_in_any_order<T: Factor>(elements: &[T]) -> T {
        elements.iter().fold(T::ONE, |product, &x| product.times(x))
    }

    /// Returns the sum of integers.
    pub(super) fn sum_in_any_order<T: Addend>(elements: &[T]) -> T {
        elements.iter().fold(T::zeroed(), |sum, &x| sum.plus(x))
    }
}

/// Extremes and the tests any and all. A key is an element flipped so that the greatest is wanted.
#[derive(Clone, Copy)]
pub(in crate::fuse::cpu) struct Extreme<T> {
    flip: T,
}

impl<T: Ordered> Extreme<T> {
    pub(in crate::fuse::cpu) fn new(least: bool, signed: bool) -> Extreme<T> {
        Extreme { flip: T::flip(least, signed) }
    }
}

impl<T: Ordered> MergeKernel for Extreme<T> {
    type Lane = T;

    #[inline(always)]
    fn key(self, element: T) -> T {
        element.flipped(self.flip)
    }

    #[inline(always)]
    fn value(self, key: T) -> T {
        key.flipped(self.flip)
    }

    #[inline(always)]
    fn merge(self, left: T, right: T) -> T {
        left.greater(right)
    }
}

impl<T: Ordered> FoldKernel for Extreme<T> {
    #[inline(always)]
    fn fold_row(self, elements: &[T]) -> T {
        T::greatest(elements, self.flip)
    }

    #[inline(always)]
    fn merge_elements(self, keys: &mut [T], elements: &[T]) {
        T::keep_greater(keys, elements, self.flip);
    }

    #[inline(always)]
    fn merge_keys(self, keys: &mut [T], others: &[T]) {
        T::keep_greater(keys, others, T::flip(false, true));
    }

    #[inline(always)]
    fn first_extreme(self, elements: &[T]) -> (T, usize) {
        T::first_greatest(elements, self.flip).unwrap_or_else(|| {
            let key = self.fold_row(elements);
            (key, position(self, elements, key))
        })
    }

    #[inline(always)]
    fn has_first_extremes(self, columns: usize) -> bool {
        T::has_loop_of_columns(columns)
    }

    #[inline(always)]
    fn first_extremes(self, elements: &[T], keys: &mut [T], positions: &mut [usize]) -> bool {
        T::first_greatest_of_columns(elements, self.flip, keys, positions)
    }

    #[inline(always)]
    fn exceeds(self, later: T, key: T) -> bool {
        !key.is_nan() && (later.is_nan() || later > key)
    }

    #[inline(always)]
    fn has_key(self, element: T, key: T) -> bool {
        let of_element = self.key(element);
        of_element == key || of_element.is_nan() & key.is_nan()
    }
}

/// The pending nodes of a tree of neighbours, each of one key or of one for each of several columns.
pub(super) struct Neighbours<T> {
    levels: Vec<Vec<T>>,
    count: usize,
}

impl<T> Default for Neighbours<T> {
    fn default() -> Neighbours<T> {
        Neighbours { levels: Vec::new(), count: 0 }
    }
}

impl<T: Pod> Neighbours<T> {
    /// Adds the next leaf, and folds the nodes that it completes.
    pub(super) fn push<K: MergeKernel<Lane = T>>(&mut self, kernel: K, keys: &[T]) {
        let mut node = keys.to_vec();
        for _ in 0..self.count.trailing_ones() {
            node = self.fold_last(kernel, node);
        }
        self.levels.push(node);
        self.count += 1;
    }

    fn fold_last<K: MergeKernel<Lane = T>>(&mut self, kernel: K, node: Vec<T>) -> Vec<T> {
        let Some(mut left) = self.levels.pop() else { return node };
        left.iter_mut().zip(&node).for_each(|(left, &right)| *left = kernel.merge(*left, right));
        left
    }

    /// Folds the pending nodes, and empties the tree.
    pub(super) fn finish<K: MergeKernel<Lane = T>>(&mut self, kernel: K) -> Vec<T> {
        self.count = 0;
        let mut node = self.levels.pop().unwrap_or_default();
        while !self.levels.is_empty() {
            node = self.fold_last(kernel, node);
        }
        node
    }
}
