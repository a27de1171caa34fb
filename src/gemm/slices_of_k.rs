//! [`SlicesOfK`], the division of k into products of their own.

use crate::types::DType;

/// The unit of a slice's depth: whole stages of the kernels, and starts of slices at multiples of 16 bytes.
pub(super) const DEPTH_UNIT: usize = 32;

/// Slices of k: `count` of the same depth, and one of the rest if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlicesOfK {
    pub count: usize,
    pub depth: usize,
    pub rest: usize,
    pub operand: DType,
}

impl SlicesOfK {
    pub fn new(k: usize, count: usize, operand: DType) -> SlicesOfK {
        let depth = if count == 1 { k } else { k / count / DEPTH_UNIT * DEPTH_UNIT };
        SlicesOfK { count, depth, rest: k - count * depth, operand }
    }

    /// Returns the number of partials.
    pub fn partials(&self) -> usize {
        self.count + usize::from(self.rest > 0)
    }

    /// Returns the depths of all slices in the order of k.
    pub fn depths(&self) -> Vec<usize> {
        let whole = std::iter::repeat_n(self.depth, self.count);
        whole.chain(Some(self.rest).filter(|rest| *rest > 0)).collect()
    }

    /// Returns the name of the kernel that adds the partials.
    pub fn kernel(&self) -> &'static str {
        match self.operand {
            DType::F64 => "gemm_reduce_f64",
            DType::C64 => "gemm_reduce_c64",
            DType::C128 => "gemm_reduce_c128",
            _ => "gemm_reduce_f32",
        }
    }
}
