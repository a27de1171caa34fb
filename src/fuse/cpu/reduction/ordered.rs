//! The orders of numbers, as vector loops that find the greatest one and its position.

use bytemuck::Pod;

use super::vectors::vectorized;

/// A number with an order.
pub(in crate::fuse::cpu) trait Ordered:
    Pod + Send + Sync + PartialEq + PartialOrd
{
    /// Inverts the order, or the position of the sign bit's half, as `flip` says.
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

    /// Returns whether there is a vector loop for so many columns.
    #[inline(always)]
    fn has_loop_of_columns(_: usize) -> bool {
        false
    }

    /// As [`FoldKernel::first_extremes`](super::kernel::FoldKernel::first_extremes), of the flipped elements.
    #[inline(always)]
    fn first_greatest_of_columns(_: &[Self], _: Self, _: &mut [Self], _: &mut [usize]) -> bool {
        false
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
    ($type:ident, $greatest:ident, $greatest_of_lanes:ident, $first_greatest:ident, $of_columns:ident, $keep_greater:ident, $lanes:literal: $set:ident $load:ident $store:ident $max:ident $xor:ident $or:ident $and:ident $compare:ident $choose:ident $mask:ident) => {
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
                let greater = if self > other { self } else { other };
                // Equal numbers have equal bits, zeros apart.
                let both = <$type>::from_bits(self.to_bits() & other.to_bits());
                let greater = if self == other { both } else { greater };
                if self != self { self } else { greater }
            }

            #[inline(always)]
            fn keep_greater(keys: &mut [Self], elements: &[Self], flip: Self) {
                #[cfg(target_arch = "x86_64")]
                let done = match crate::fuse::cpu::has_vectors() {
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
                if crate::fuse::cpu::has_vectors() {
                    // SAFETY: the processor has these instructions.
                    return unsafe { $greatest(elements, flip) };
                }
                greatest_in_any_order(elements, flip)
            }

            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            fn first_greatest(elements: &[Self], flip: Self) -> Option<(Self, usize)> {
                if !crate::fuse::cpu::has_vectors() {
                    return None;
                }
                // SAFETY: the processor has these instructions.
                unsafe { $first_greatest(elements, flip) }
            }

            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            fn has_loop_of_columns(columns: usize) -> bool {
                $lanes % columns == 0 && crate::fuse::cpu::has_vectors()
            }

            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            fn first_greatest_of_columns(
                elements: &[Self],
                flip: Self,
                keys: &mut [Self],
                positions: &mut [usize],
            ) -> bool {
                Self::has_loop_of_columns(keys.len())
                    // SAFETY: the processor has these instructions.
                    && unsafe { $of_columns(elements, flip, keys, positions) }
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
                let greater = $choose($and(x_last, key_last), nan, is_nan);
                // SAFETY: as above.
                unsafe { $store(keys.as_mut_ptr(), greater) };
            }
            count
        }

        /// Returns the greatest flipped element of each lane, and the start of the first step that has it, by AVX2; none if
        /// an element is NaN or there are fewer elements than a step has.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        #[inline]
        fn $greatest_of_lanes(elements: &[$type], flip: $type) -> Option<([$type; $lanes], [$type; $lanes])> {
            use std::arch::x86_64::*;
            const STEP: usize = 4 * $lanes;
            let last = elements.len().checked_sub(STEP)?;
            let flips = $set(flip);
            let mut best = $set($type::NEG_INFINITY);
            // Starts are at most the length of a block, which floats hold exactly.
            let mut found = $set(0.0);
            let mut nan = $set(0.0);
            // Each vector by name: a function of `core` over an array of them has no AVX2, and is not always inlined.
            let mut step = |start: usize| {
                // SAFETY: the caller's `start` is at most `last`.
                let at = |index: usize| unsafe { $load(elements.as_ptr().add(start + index * $lanes)) };
                let (a, b, c, d) = (at(0), at(1), at(2), at(3));
                nan = $or(nan, $or($compare::<_CMP_UNORD_Q>(a, b), $compare::<_CMP_UNORD_Q>(c, d)));
                let (a, b, c, d) = ($xor(a, flips), $xor(b, flips), $xor(c, flips), $xor(d, flips));
                let greatest = $max($max(a, b), $max(c, d));
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
            Some((keys, starts))
        }

        /// Returns the greatest flipped element and its first position by AVX2; none as for the lanes. The first position is
        /// in the least step of the lanes that have the row's greatest value.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn $first_greatest(elements: &[$type], flip: $type) -> Option<($type, usize)> {
            use std::arch::x86_64::*;
            let (keys, starts) = $greatest_of_lanes(elements, flip)?;
            let greater = |x: $type, y: $type| if x > y { x } else { y };
            let key = keys.into_iter().fold($type::NEG_INFINITY, greater);
            let mut start = elements.len() as $type;
            for lane in 0..$lanes {
                let first = if keys[lane] == key { starts[lane] } else { start };
                start = if first < start { first } else { start };
            }
            let start = start as usize;
            let (keys, flips) = ($set(key), $set(flip));
            let mut mask = 0;
            for index in (0..4).rev() {
                // SAFETY: a step has so many elements.
                let x = unsafe { $load(elements.as_ptr().add(start + index * $lanes)) };
                mask = mask << $lanes | $mask($compare::<_CMP_EQ_OQ>($xor(x, flips), keys)) as u32;
            }
            Some((key, start + mask.trailing_zeros() as usize))
        }

        /// Finds the greatest flipped element of each column and its first position by AVX2. The lanes are a multiple of the
        /// columns, so a lane has elements of one column. Returns false as for the lanes.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn $of_columns(elements: &[$type], flip: $type, keys: &mut [$type], positions: &mut [usize]) -> bool {
            let Some((of_lanes, starts)) = $greatest_of_lanes(elements, flip) else { return false };
            let columns = keys.len();
            for (column, (key, position)) in keys.iter_mut().zip(positions).enumerate() {
                let lanes = || (column..$lanes).step_by(columns);
                *key = lanes().fold($type::NEG_INFINITY, |key, lane| key.greater(of_lanes[lane]));
                let having = lanes().filter(|&lane| of_lanes[lane] == *key);
                let start = having.map(|lane| starts[lane] as usize).min().unwrap_or(0);
                let mut of_column = elements[start + column..].iter().step_by(columns);
                let before = of_column.position(|x| x.flipped(flip) == *key).unwrap_or(0);
                *position = start + column + before * columns;
            }
            true
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

floats!(f32, greatest_f32, greatest_of_lanes_f32, first_greatest_f32, of_columns_f32, keep_greater_f32, 8: _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_max_ps _mm256_xor_ps _mm256_or_ps _mm256_and_ps _mm256_cmp_ps _mm256_blendv_ps _mm256_movemask_ps);
floats!(f64, greatest_f64, greatest_of_lanes_f64, first_greatest_f64, of_columns_f64, keep_greater_f64, 4: _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_max_pd _mm256_xor_pd _mm256_or_pd _mm256_and_pd _mm256_cmp_pd _mm256_blendv_pd _mm256_movemask_pd);
