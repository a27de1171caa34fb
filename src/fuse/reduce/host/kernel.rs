//! The folds as vector loops: sums, and extremes of elements that are turned so that the greatest is wanted.

use bytemuck::Pod;

use super::super::plan::{LANES, SEGMENT};
use super::rows::position;
use super::vectors::vectorized;

/// A merge of lanes. The state of a fold is a key, which [`value`](Self::value) turns into the folded value.
pub(in crate::fuse::reduce) trait MergeKernel: Copy + Send + Sync {
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
}

/// A number that sums are made of.
pub(in crate::fuse::reduce) trait Addend: Pod + Send + Sync {
    fn plus(self, other: Self) -> Self;

    /// Returns the sum of a row.
    fn sum(elements: &[Self]) -> Self;
}

/// Sums. A key is the sum itself.
#[derive(Clone, Copy)]
pub(in crate::fuse::reduce) struct Sum<T>(std::marker::PhantomData<T>);

impl<T> Sum<T> {
    pub(in crate::fuse::reduce) fn new() -> Sum<T> {
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
            let mut lanes = [T::zeroed(); LANES];
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

    /// Returns the sum of integers.
    pub(super) fn sum_in_any_order<T: Addend>(elements: &[T]) -> T {
        elements.iter().fold(T::zeroed(), |sum, &x| sum.plus(x))
    }
}

/// A number with an order.
pub(in crate::fuse::reduce) trait Ordered:
    Pod + Send + Sync + PartialEq + PartialOrd
{
    /// Inverts the order, or the place of the sign bit's half, as `flip` says.
    fn flipped(self, flip: Self) -> Self;

    /// Returns the flip of elements of which the least or greatest is wanted.
    fn flip(least: bool, signed: bool) -> Self;

    fn is_nan(self) -> bool;

    /// Returns the greater one: NaN if one is, and 0 above -0.
    fn greater(self, other: Self) -> Self;

    /// Replaces each key by the greater one of it and the flipped element beside it.
    #[inline(always)]
    fn keep_greater(keys: &mut [Self], elements: &[Self], flip: Self) {
        keys.iter_mut().zip(elements).for_each(|(key, x)| *key = key.greater(x.flipped(flip)));
    }

    /// Returns the greatest of the flipped elements, of which there is at least one.
    fn greatest(elements: &[Self], flip: Self) -> Self;

    /// Returns the greatest of the flipped elements and the first position of an equal one, if one pass finds both.
    #[inline(always)]
    fn first_greatest(_: &[Self], _: Self) -> Option<(Self, usize)> {
        None
    }
}

/// Extremes and the tests any and all. A key is an element flipped so that the greatest is wanted.
#[derive(Clone, Copy)]
pub(in crate::fuse::reduce) struct Extreme<T> {
    flip: T,
}

impl<T: Ordered> Extreme<T> {
    pub(in crate::fuse::reduce) fn new(least: bool, signed: bool) -> Extreme<T> {
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
    fn exceeds(self, later: T, key: T) -> bool {
        !key.is_nan() && (later.is_nan() || later > key)
    }

    #[inline(always)]
    fn has_key(self, element: T, key: T) -> bool {
        let of_element = self.key(element);
        of_element == key || of_element.is_nan() & key.is_nan()
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Ordered for $type {
            #[inline(always)]
            fn flipped(self, flip: Self) -> Self {
                self ^ flip
            }

            fn flip(least: bool, signed: bool) -> Self {
                (if least { !0 } else { 0 }) ^ if signed { 0 } else { <$type>::MIN }
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }

            #[inline(always)]
            fn greater(self, other: Self) -> Self {
                self.max(other)
            }

            fn greatest(elements: &[Self], flip: Self) -> Self {
                greatest_in_any_order(elements, flip)
            }
        }
    )*};
}

integers!(i32, i64);

vectorized! {
    /// Returns the greatest flipped element.
    pub(super) fn greatest_in_any_order<T: Ordered>(elements: &[T], flip: T) -> T {
        let mut best = elements[0].flipped(flip);
        for &element in elements {
            best = best.greater(element.flipped(flip));
        }
        best
    }
}

macro_rules! floats {
    ($type:ident, $greatest:ident, $first_greatest:ident, $keep_greater:ident, $lanes:literal: $set:ident $load:ident $store:ident $max:ident $xor:ident $or:ident $and:ident $compare:ident $choose:ident $mask:ident) => {
        impl Ordered for $type {
            #[inline(always)]
            fn flipped(self, flip: Self) -> Self {
                <$type>::from_bits(self.to_bits() ^ flip.to_bits())
            }

            fn flip(least: bool, _: bool) -> Self {
                if least { -0.0 } else { 0.0 }
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                self != self
            }

            #[inline(always)]
            fn greater(self, other: Self) -> Self {
                // The second one if it is NaN.
                let number = if self > other { self } else { other };
                // Equal numbers have equal bits, zeros apart.
                let both = <$type>::from_bits(self.to_bits() & other.to_bits());
                let number = if self == other { both } else { number };
                if self != self { self } else { number }
            }

            #[inline(always)]
            fn keep_greater(keys: &mut [Self], elements: &[Self], flip: Self) {
                #[cfg(target_arch = "x86_64")]
                let done = match crate::fuse::host::has_vectors() {
                    // SAFETY: the processor has these instructions.
                    true => unsafe { $keep_greater(keys, elements, flip) },
                    false => 0,
                };
                #[cfg(not(target_arch = "x86_64"))]
                let done = 0;
                let rest = keys.iter_mut().zip(elements).skip(done);
                rest.for_each(|(key, x)| *key = key.greater(x.flipped(flip)));
            }

            fn greatest(elements: &[Self], flip: Self) -> Self {
                #[cfg(target_arch = "x86_64")]
                if crate::fuse::host::has_vectors() {
                    // SAFETY: the processor has these instructions.
                    return unsafe { $greatest(elements, flip) };
                }
                greatest_in_any_order(elements, flip)
            }

            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            fn first_greatest(elements: &[Self], flip: Self) -> Option<(Self, usize)> {
                if !crate::fuse::host::has_vectors() {
                    return None;
                }
                // SAFETY: the processor has these instructions.
                unsafe { $first_greatest(elements, flip) }
            }
        }

        /// Replaces keys by the greater ones of them and the flipped elements beside them by AVX2, with the bits of
        /// `greater`. Returns the count of keys in whole vectors, which are done.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn $keep_greater(keys: &mut [$type], elements: &[$type], flip: $type) -> usize {
            use std::arch::x86_64::*;
            let flips = $set(flip);
            let keys = keys.chunks_exact_mut($lanes);
            let elements = elements.chunks_exact($lanes);
            let count = keys.len().min(elements.len()) * $lanes;
            for (keys, elements) in keys.zip(elements) {
                // SAFETY: both chunks have so many elements.
                let (key, x) = unsafe { ($load(keys.as_ptr()), $xor($load(elements.as_ptr()), flips)) };
                // Of two zeros, and of a NaN and a number, each maximum is its second operand.
                let (x_last, key_last) = ($max(key, x), $max(x, key));
                // Chosen from maxima, because a choice of `key` itself becomes a slow masked store.
                let nan = $choose(x_last, key_last, $compare::<_CMP_UNORD_Q>(key, key));
                let is_nan = $compare::<_CMP_UNORD_Q>(key, x);
                let number = $choose($and(x_last, key_last), nan, is_nan);
                // SAFETY: as above.
                unsafe { $store(keys.as_mut_ptr(), number) };
            }
            count
        }

        /// Returns the greatest flipped element and its first position by AVX2; none if an element is NaN or the row is
        /// shorter than a step.
        ///
        /// Each lane keeps its greatest value and the start of the first step that had it, so the first position is in
        /// the least such step of the lanes that have the row's greatest value.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn $first_greatest(elements: &[$type], flip: $type) -> Option<($type, usize)> {
            use std::arch::x86_64::*;
            const STEP: usize = 4 * $lanes;
            let last = elements.len().checked_sub(STEP)?;
            let flips = $set(flip);
            let mut best = $set($type::NEG_INFINITY);
            // Starts are at most a block's length, which floats hold exactly.
            let mut found = $set(0.0);
            let mut nan = $set(0.0);
            let mut step = |start: usize| {
                // SAFETY: the caller's `start` is at most `last`.
                let x: [_; 4] = std::array::from_fn(|index| unsafe {
                    $load(elements.as_ptr().add(start + index * $lanes))
                });
                let unordered =
                    $or($compare::<_CMP_UNORD_Q>(x[0], x[1]), $compare::<_CMP_UNORD_Q>(x[2], x[3]));
                nan = $or(nan, unordered);
                let x = x.map(|x| $xor(x, flips));
                let greatest = $max($max(x[0], x[1]), $max(x[2], x[3]));
                let is_greater = $compare::<_CMP_GT_OQ>(greatest, best);
                found = $choose(found, $set(start as $type), is_greater);
                best = $max(greatest, best);
            };
            for start in (0..last).step_by(STEP) {
                step(start);
            }
            // The last step overlaps the one before, whose elements are no greater than the best.
            step(last);
            if $mask(nan) != 0 {
                return None;
            }
            let (mut keys, mut starts) = ([0.0; $lanes], [0.0; $lanes]);
            // SAFETY: so many lanes.
            unsafe {
                $store(keys.as_mut_ptr(), best);
                $store(starts.as_mut_ptr(), found);
            }
            let greater = |x: $type, y: $type| if x > y { x } else { y };
            let key = keys.into_iter().fold($type::NEG_INFINITY, greater);
            let mut start = last as $type;
            for lane in 0..$lanes {
                let first = if keys[lane] == key { starts[lane] } else { start };
                start = if first < start { first } else { start };
            }
            let start = start as usize;
            let keys = $set(key);
            let mut mask = 0;
            for index in (0..4).rev() {
                // SAFETY: a step has so many elements.
                let x = unsafe { $load(elements.as_ptr().add(start + index * $lanes)) };
                mask = mask << $lanes | $mask($compare::<_CMP_EQ_OQ>($xor(x, flips), keys)) as u32;
            }
            Some((key, start + mask.trailing_zeros() as usize))
        }

        /// Returns the greatest flipped element by AVX2.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn $greatest(elements: &[$type], flip: $type) -> $type {
            use std::arch::x86_64::*;
            const VECTORS: usize = 4;
            let mut best = [$set($type::NEG_INFINITY); VECTORS];
            let mut nan = [$set(0.0); VECTORS];
            let flips = $set(flip);
            let chunks = elements.chunks_exact(VECTORS * $lanes);
            let rest = chunks.remainder();
            for chunk in chunks {
                for index in 0..VECTORS {
                    // SAFETY: the chunk has so many elements.
                    let x = unsafe { $load(chunk.as_ptr().add(index * $lanes)) };
                    nan[index] = $or(nan[index], $compare::<_CMP_UNORD_Q>(x, x));
                    // Of a NaN and a number the number; NaN is found by the comparison.
                    best[index] = $max($xor(x, flips), best[index]);
                }
            }
            let nan = $or($or(nan[0], nan[1]), $or(nan[2], nan[3]));
            if $mask(nan) != 0 {
                return $type::NAN;
            }
            let best = $max($max(best[0], best[1]), $max(best[2], best[3]));
            let mut lanes = [0.0; $lanes];
            // SAFETY: so many lanes.
            unsafe { $store(lanes.as_mut_ptr(), best) };
            let mut greatest = $type::NEG_INFINITY;
            for &key in &lanes {
                greatest = greatest.greater(key);
            }
            for &x in rest {
                greatest = greatest.greater(x.flipped(flip));
            }
            if greatest == 0.0 {
                // The maximum of vectors does not tell zeros apart.
                let zero = flip.to_bits();
                return if elements.iter().any(|x| x.to_bits() == zero) { 0.0 } else { -0.0 };
            }
            greatest
        }
    };
}

floats!(f32, greatest_f32, first_greatest_f32, keep_greater_f32, 8: _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_max_ps _mm256_xor_ps _mm256_or_ps _mm256_and_ps _mm256_cmp_ps _mm256_blendv_ps _mm256_movemask_ps);
floats!(f64, greatest_f64, first_greatest_f64, keep_greater_f64, 4: _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_max_pd _mm256_xor_pd _mm256_or_pd _mm256_and_pd _mm256_cmp_pd _mm256_blendv_pd _mm256_movemask_pd);

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
