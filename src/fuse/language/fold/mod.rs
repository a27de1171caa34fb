//! `folds!`: the list of functions that combine two values, from which [`Fold`] and its rules are generated.
//!
//! Each line has:
//!
//! - the variant of [`Fold`] and the name that errors use
//! - the dtypes that the fold takes
//! - the function of an element before the fold: [`FoldMap`]
//! - the functions that derive the dtype in which it folds and, after an arrow, that of its result from that of the elements
//! - the bits of an identity (padding) element, and those of an empty reduction: [`Empty`]
//! - the function that emits the instructions of a merge, and the [`MergeOrder`] that the bits of the result depend on
//! - the [`FoldLoop`] of the CPU's loops
//! - in brackets, `scan` for a fold of scans, `index` if a value includes its index
//! - the documentation
//!
//! A sum, extreme or test of another function of the elements needs no new fold, but an expression before one of these. A new
//! fold is a new merge of two values: a line here, and a case of `fold_gradient` in `src/fuse/language/gradient/chain.rs`; new
//! functions of its columns are in the files of this folder. Folds with one result are before those with two
//! ([`Fold::SINGLE_RESULT`] has the former).
//!
//! A value has at most two parts: a number, the parts of a complex number, or an extreme and its index.
//!
//! Invariant: merging [`FoldRules::identity`] with any value gives that value bit for bit (except the bits of
//! a NaN), because padding elements are the identity on a device and absent on the CPU. The identity of sums is -0, because 0
//! would turn -0 into 0.

mod accumulator;
mod identity;
mod merge;
mod rescale;
mod result;
mod rules;

use super::operation::{self, DTypes};
use crate::error::{Error, Result};
use crate::fuse::ir::program::{Program, ValueParts};
use crate::types::DType;
pub(in crate::fuse) use rescale::{Rescale, RescalingBits};
pub(in crate::fuse) use rules::{FoldRules, bytes};

/// The function of an element before the fold, in the dtype in which values are folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fuse) enum FoldMap {
    Identity,
    /// True if the element is nonzero; NaN is nonzero.
    ToBool,
    /// |x|².
    Square,
}

/// The value of an empty reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Empty {
    /// An empty reduction is an error.
    Error,
    /// The identity.
    Identity,
    /// 0, where the identity is -0.
    Zero,
    /// 0, with the factor 1 as the second part.
    ZeroWithFactor,
}

/// The order that the bits of a fold's result may depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MergeOrder {
    /// The bits depend neither on the tree of the merges nor on the order of the elements.
    AnyOrder,
    /// The bits depend on the tree, but not on the order of the two values of a merge.
    FixedTree,
    /// The bits depend on both.
    FixedOrder,
}

/// The loop by which the CPU merges values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fuse) enum FoldLoop {
    Sum,
    Product,
    /// The least value; of bools, whether all are true.
    Minimum,
    /// The greatest value; of bools, whether any is true.
    Maximum,
}

/// Emits the merge of two values of a dtype: of any two in order, or, if `append`, of a value of earlier elements and an element,
/// which is not the identity.
type Merge = fn(program: &mut Program, dtype: DType, both: [ValueParts; 2], append: bool) -> ValueParts;

macro_rules! folds {
    (one_result { $($one:ident $one_name:literal $one_dtypes:ident $one_map:ident, $one_accumulator:ident => $one_result:ident,
       $one_identity:ident $one_empty:ident, $one_merge:ident $one_order:ident, $one_loop:ident [$($one_flag:ident)*],
       $one_doc:literal;)* }
     two_results { $($two:ident $two_name:literal $two_dtypes:ident $two_map:ident, $two_accumulator:ident => $two_result:ident,
       $two_identity:ident $two_empty:ident, $two_merge:ident $two_order:ident, $two_loop:ident [$($two_flag:ident)*],
       $two_doc:literal;)* }) => {
        impl Fold {
            /// All folds but [`SumOfSquares`](Self::SumOfSquares), which has two results: the sum and its factor.
            pub const SINGLE_RESULT: [Fold; [$($one_name),*].len()] = [$(Fold::$one),*];
        }

        folds! {
            $($one $one_name $one_dtypes $one_map, $one_accumulator => $one_result, $one_identity $one_empty,
              $one_merge $one_order, $one_loop [$($one_flag)*], $one_doc;)*
            $($two $two_name $two_dtypes $two_map, $two_accumulator => $two_result, $two_identity $two_empty,
              $two_merge $two_order, $two_loop [$($two_flag)*], $two_doc;)*
        }
    };
    ($($variant:ident $name:literal $dtypes:ident $map:ident, $accumulator:ident => $result:ident, $identity:ident $empty:ident,
       $merge:ident $order:ident, $cpu_loop:ident [$($flag:ident)*], $doc:literal;)*) => {
        /// The function that a reduction or scan folds values with.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Fold {
            $(#[doc = $doc] $variant,)*
        }

        impl Fold {
            /// Returns the name that errors use.
            pub const fn name(self) -> &'static str {
                match self { $(Fold::$variant => $name),* }
            }

            /// Returns the dtypes that the fold takes.
            const fn dtypes(self) -> DTypes {
                match self { $(Fold::$variant => operation::$dtypes),* }
            }

            /// Returns the function of an element before the fold.
            pub(in crate::fuse) const fn map(self) -> FoldMap {
                match self { $(Fold::$variant => FoldMap::$map),* }
            }

            /// Returns the dtype in which elements of a dtype that the fold takes are folded.
            fn accumulator_of(self, dtype: DType) -> DType {
                match self { $(Fold::$variant => accumulator::$accumulator(dtype)),* }
            }

            /// Returns the dtype of the result for elements of a dtype that the fold takes.
            fn result_of(self, dtype: DType) -> DType {
                match self { $(Fold::$variant => result::$result(dtype)),* }
            }

            /// Returns the bits of the parts of an identity (padding) element.
            fn identity(self, dtype: DType) -> [u64; 2] {
                match self { $(Fold::$variant => identity::$identity(dtype)),* }
            }

            const fn empty(self) -> Empty {
                match self { $(Fold::$variant => Empty::$empty),* }
            }

            const fn merge(self) -> Merge {
                match self { $(Fold::$variant => merge::$merge),* }
            }

            const fn order(self) -> MergeOrder {
                match self { $(Fold::$variant => MergeOrder::$order),* }
            }

            /// Returns the loop by which the CPU merges values.
            pub(in crate::fuse) const fn cpu_loop(self) -> FoldLoop {
                match self { $(Fold::$variant => FoldLoop::$cpu_loop),* }
            }

            const fn flags(self) -> Flags {
                match self { $(Fold::$variant => Flags { $($flag: true,)* ..Flags::NONE }),* }
            }
        }
    };
}

/// The properties of a fold in brackets.
struct Flags {
    scan: bool,
    index: bool,
}

impl Flags {
    const NONE: Flags = Flags { scan: false, index: false };
}

folds! {
    one_result {
        Sum "sum" ALL Identity, sums => whole, negative_zero Zero, add FixedTree, Sum [scan], "x + y. Integers and bools are summed in i64 (u64 in u64), f16 and bf16 in f32 with rounding at the end.";
        Product "prod" ALL Identity, sums => whole, one Identity, multiply FixedOrder, Product [scan], "x · y, in the dtypes of a sum. A product with a zero is 0 even if partial products overflow, and NaN if an element is infinite or NaN.";
        Minimum "min" ORDERED Identity, extremes => same, greatest Error, minimum AnyOrder, Minimum [scan], "The smallest element; NaN if any element is NaN. -0 is less than 0.";
        Maximum "max" ORDERED Identity, extremes => same, least Error, maximum AnyOrder, Maximum [scan], "The largest element; NaN if any element is NaN. 0 is greater than -0.";
        ArgMinimum "argmin" ORDERED Identity, extremes => index, greatest_at_end Error, minimum_with_index FixedOrder, Minimum [index], "The index of the smallest element, the first of equal ones. NaN is less than all numbers, and zeros are equal.";
        ArgMaximum "argmax" ORDERED Identity, extremes => index, least_at_end Error, maximum_with_index FixedOrder, Maximum [index], "The index of the largest element, the first of equal ones. NaN is greater than all numbers, and zeros are equal.";
        Any "any" ALL ToBool, tests => test, zero Identity, or AnyOrder, Maximum [], "True if any element is nonzero; NaN is nonzero.";
        All "all" ALL ToBool, tests => test, one Identity, and AnyOrder, Minimum [], "True if all elements are nonzero.";
    }
    two_results {
        SumOfSquares "sum_of_squares" FLOATS_AND_COMPLEX Square, squares => squares, negative_zero ZeroWithFactor, add FixedTree, Sum [], "Σ (s x)² and the factor s, as the parts of a complex number; |x| of complex elements. s is 1, or a power of two if the sum of squares is infinite or near the end of the normal range. f16 and bf16 are added in f32.";
    }
}

impl Fold {
    /// Returns whether an empty reduction has a value: true for sums, products and tests, false for minima
    /// and maxima.
    pub const fn has_empty(self) -> bool {
        !matches!(self.empty(), Empty::Error)
    }

    /// Returns the dtype of the result for elements of a dtype.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for dtypes without an order or without arithmetic.
    pub fn result(self, dtype: DType) -> Result<DType> {
        self.check(dtype)?;
        Ok(self.result_of(dtype))
    }

    /// Returns the dtype in which elements of a dtype are folded.
    ///
    /// # Errors
    ///
    /// As [`result`](Self::result).
    pub(in crate::fuse) fn accumulator(self, dtype: DType) -> Result<DType> {
        self.check(dtype)?;
        Ok(self.accumulator_of(dtype))
    }

    fn check(self, dtype: DType) -> Result<()> {
        if self.dtypes().contains(dtype) {
            return Ok(());
        }
        let wanted = match self.dtypes() {
            operation::ORDERED => "a real dtype, or bool",
            _ if dtype.is_storage_only() => "a dtype to compute in; cast it first, such as to f32",
            _ => "a float or complex dtype",
        };
        let (wanted, found) = (wanted.to_owned(), dtype.to_string());
        Err(Error::DTypeMismatch { operation: self.name(), wanted, found })
    }

    /// Returns whether the bits of the result may depend on the order in which values are merged.
    pub(in crate::fuse) fn has_order(self) -> bool {
        self.order() != MergeOrder::AnyOrder
    }

    /// Returns whether merging two values in either order gives the same bits.
    pub(in crate::fuse) fn is_commutative(self) -> bool {
        self.order() != MergeOrder::FixedOrder
    }

    /// Returns whether a value includes its index.
    pub(in crate::fuse) fn has_index(self) -> bool {
        self.flags().index
    }

    /// Returns whether the fold has scans.
    pub(in crate::fuse) fn has_scan(self) -> bool {
        self.flags().scan
    }

    /// Returns whether the fold of a dtype, one from [`accumulator`](Self::accumulator), is a product of floats, which only the
    /// interpreter of the CPU computes.
    pub(in crate::fuse) fn is_product_of_floats(self, dtype: DType) -> bool {
        self.cpu_loop() == FoldLoop::Product && (dtype.is_float() || dtype.is_complex())
    }
}
