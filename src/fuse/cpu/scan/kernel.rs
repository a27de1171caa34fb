//! The vector loops of scans: eight runs side by side, one in each lane.
//!
//! With a run in a lane, all steps of the order are the same for every lane, so any fold of any dtype becomes plain
//! vector code. Only the way in and out transposes.

use bytemuck::Pod;

use super::RUN;
use crate::fuse::cpu::reduction::{MergeKernel, vectorized};
use crate::fuse::plan::scan::QUAD;

/// Runs that are scanned together.
pub(super) const LANES: usize = 8;
/// Elements of a run.
pub(super) const RUN_ELEMENTS: usize = RUN * QUAD;

/// Runs of 128 elements, or rows of at most as many.
#[repr(C, align(64))]
pub(super) struct Runs<T> {
    /// The elements of each run, and the folds within each quad.
    elements: [[T; LANES]; RUN_ELEMENTS],
    /// The fold of each run up to the end of each quad.
    quads: [[T; LANES]; RUN],
}

impl<T: Pod> Runs<T> {
    /// Creates runs of zeros.
    pub(super) fn new() -> Box<Runs<T>> {
        let elements = [[T::zeroed(); LANES]; RUN_ELEMENTS];
        Box::new(Runs { elements, quads: [[T::zeroed(); LANES]; RUN] })
    }

    /// Returns the folds of whole runs.
    pub(super) fn totals(&self) -> [T; LANES] {
        self.quads[RUN - 1]
    }

    /// Reads so many quads of eight runs that begin at multiples of `pitch`.
    pub(super) fn read(&mut self, elements: &[T], pitch: usize, quads: usize) {
        assert!(quads <= RUN && elements.len() >= (LANES - 1) * pitch + QUAD * quads, "runs of elements");
        #[cfg(target_arch = "x86_64")]
        if crate::fuse::cpu::has_vectors() {
            let (from, to) = (elements.as_ptr(), self.elements.as_mut_ptr());
            match size_of::<T>() {
                // SAFETY: the processor has AVX2, the elements are there, and `to` has a place for each of the quads.
                4 => unsafe {
                    return avx2::read_words(from.cast(), pitch, quads, to.cast());
                },
                // SAFETY: as above.
                8 => unsafe {
                    return avx2::read_double_words(from.cast(), pitch, quads, to.cast());
                },
                _ => {}
            }
        }
        for (at, lanes) in self.elements[..QUAD * quads].iter_mut().enumerate() {
            for (run, lane) in lanes.iter_mut().enumerate() {
                *lane = elements[run * pitch + at];
            }
        }
    }

    /// Writes so many quads of eight runs that begin at multiples of `pitch`.
    ///
    /// # Safety
    ///
    /// Memory from `to` has `7 · pitch + 4 · quads` elements, which nobody else accesses.
    pub(super) unsafe fn write(&self, to: *mut T, pitch: usize, quads: usize) {
        #[cfg(target_arch = "x86_64")]
        if crate::fuse::cpu::has_vectors() {
            let from = self.elements.as_ptr();
            match size_of::<T>() {
                // SAFETY: the processor has AVX2, and the caller guarantees the memory.
                4 => unsafe {
                    return avx2::write_words(from.cast(), to.cast(), pitch, quads);
                },
                // SAFETY: as above.
                8 => unsafe {
                    return avx2::write_double_words(from.cast(), to.cast(), pitch, quads);
                },
                _ => {}
            }
        }
        for (at, lanes) in self.elements[..QUAD * quads].iter().enumerate() {
            for (run, lane) in lanes.iter().enumerate() {
                // SAFETY: the caller guarantees it.
                unsafe { to.add(run * pitch + at).write(*lane) };
            }
        }
    }
}

#[inline(always)]
fn merge<K: MergeKernel>(kernel: K, left: [K::Lane; LANES], mut right: [K::Lane; LANES]) -> [K::Lane; LANES] {
    for lane in 0..LANES {
        right[lane] = kernel.merge(left[lane], right[lane]);
    }
    right
}

vectorized! {
    /// Folds elements within quads, and quads within runs.
    pub(super) fn scan_runs<K: MergeKernel>(kernel: K, runs: &mut Runs<K::Lane>, quads: usize) {
        for (quad, through) in runs.elements.chunks_exact_mut(QUAD).zip(&mut runs.quads).take(quads) {
            let mut fold = quad[0];
            for lane in &mut fold {
                *lane = kernel.key(*lane);
            }
            quad[0] = fold;
            for element in &mut quad[1..] {
                let mut key = *element;
                for lane in &mut key {
                    *lane = kernel.key(*lane);
                }
                fold = merge(kernel, fold, key);
                *element = fold;
            }
            *through = fold;
        }
        let mut distance = 1;
        while distance < quads {
            for quad in (0..quads).filter(|quad| quad & distance != 0) {
                let lower = (quad & !(2 * distance - 1)) + distance - 1;
                let (left, right) = (runs.quads[lower], runs.quads[quad]);
                runs.quads[quad] = merge(kernel, left, right);
            }
            distance *= 2;
        }
    }

    /// Turns the folds of quads into results, which have the prefixes of their runs and of their tile in front.
    pub(super) fn finish_runs<K: MergeKernel>(
        kernel: K,
        runs: &mut Runs<K::Lane>,
        quads: usize,
        before_runs: Option<[K::Lane; LANES]>,
        before_tile: Option<K::Lane>,
    ) {
        let before_tile = before_tile.map(|before| [before; LANES]);
        for (index, quad) in runs.elements.chunks_exact_mut(QUAD).take(quads).enumerate() {
            for element in quad {
                let mut value = *element;
                if index > 0 {
                    value = merge(kernel, runs.quads[index - 1], value);
                }
                if let Some(before) = before_runs {
                    value = merge(kernel, before, value);
                }
                if let Some(before) = before_tile {
                    value = merge(kernel, before, value);
                }
                for lane in &mut value {
                    *lane = kernel.value(*lane);
                }
                *element = value;
            }
        }
    }
}

/// Transpositions of quads. The lanes of runs 0 to 3 are the lower half of a register.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{LANES, QUAD};

    #[inline]
    #[target_feature(enable = "avx2")]
    fn transpose_words(rows: [__m256; 4]) -> [__m256; 4] {
        let [a, b, c, d] = rows;
        let (low, high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
        let (other_low, other_high) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
        [
            _mm256_shuffle_ps::<0x44>(low, other_low),
            _mm256_shuffle_ps::<0xee>(low, other_low),
            _mm256_shuffle_ps::<0x44>(high, other_high),
            _mm256_shuffle_ps::<0xee>(high, other_high),
        ]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn transpose_double_words(rows: [__m256d; 4]) -> [__m256d; 4] {
        let [a, b, c, d] = rows;
        let (even, odd) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
        let (other_even, other_odd) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
        [
            _mm256_permute2f128_pd::<0x20>(even, other_even),
            _mm256_permute2f128_pd::<0x20>(odd, other_odd),
            _mm256_permute2f128_pd::<0x31>(even, other_even),
            _mm256_permute2f128_pd::<0x31>(odd, other_odd),
        ]
    }

    /// # Safety
    ///
    /// `from` has the elements of the runs, and `to` a place for each.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn read_words(from: *const f32, pitch: usize, quads: usize, to: *mut f32) {
        for quad in 0..quads {
            // SAFETY: the caller guarantees it.
            unsafe {
                let at = |run: usize| _mm_loadu_ps(from.add(run * pitch + QUAD * quad));
                let pair = |run| _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(at(run)), at(run + 4));
                let elements = transpose_words([pair(0), pair(1), pair(2), pair(3)]);
                for (index, lanes) in elements.into_iter().enumerate() {
                    _mm256_storeu_ps(to.add((QUAD * quad + index) * LANES), lanes);
                }
            }
        }
    }

    /// # Safety
    ///
    /// As [`read_words`].
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn read_double_words(from: *const f64, pitch: usize, quads: usize, to: *mut f64) {
        for (quad, half) in (0..quads).flat_map(|quad| [(quad, 0), (quad, 4)]) {
            // SAFETY: the caller guarantees it.
            unsafe {
                let at = |run: usize| _mm256_loadu_pd(from.add((half + run) * pitch + QUAD * quad));
                let elements = transpose_double_words([at(0), at(1), at(2), at(3)]);
                for (index, lanes) in elements.into_iter().enumerate() {
                    _mm256_storeu_pd(to.add((QUAD * quad + index) * LANES + half), lanes);
                }
            }
        }
    }

    /// # Safety
    ///
    /// `from` has the lanes of the elements, and `to` a place for each.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn write_words(from: *const f32, to: *mut f32, pitch: usize, quads: usize) {
        for quad in 0..quads {
            // SAFETY: the caller guarantees it.
            unsafe {
                let at = |index: usize| _mm256_loadu_ps(from.add((QUAD * quad + index) * LANES));
                let pairs = transpose_words([at(0), at(1), at(2), at(3)]);
                for (run, pair) in pairs.into_iter().enumerate() {
                    let to = to.add(run * pitch + QUAD * quad);
                    _mm_storeu_ps(to, _mm256_castps256_ps128(pair));
                    _mm_storeu_ps(to.add(4 * pitch), _mm256_extractf128_ps::<1>(pair));
                }
            }
        }
    }

    /// # Safety
    ///
    /// As [`write_words`].
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn write_double_words(from: *const f64, to: *mut f64, pitch: usize, quads: usize) {
        for (quad, half) in (0..quads).flat_map(|quad| [(quad, 0), (quad, 4)]) {
            // SAFETY: the caller guarantees it.
            unsafe {
                let at = |index: usize| _mm256_loadu_pd(from.add((QUAD * quad + index) * LANES + half));
                let runs = transpose_double_words([at(0), at(1), at(2), at(3)]);
                for (run, elements) in runs.into_iter().enumerate() {
                    _mm256_storeu_pd(to.add((half + run) * pitch + QUAD * quad), elements);
                }
            }
        }
    }
}
