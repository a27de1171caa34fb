//! Tables of right values at the edges of dtypes, ranges and shapes, on the CPU (tests/tensor/values.rs) and a device
//! (tests/gpu/values.rs).
//!
//! A kind of wrong values that was once found is a function here, with inputs beside those that showed it, and runs as a method, as
//! a fused function, into an output and in place where the operation has these forms.

use selvedge::tensor::Tensor;
use selvedge::types::DType;

pub mod axes;
mod bounds;
pub mod derivatives;
pub mod edge_cases;
pub mod indexing;
pub mod integer_means;
pub mod products;
pub mod promotion;
pub mod ranges;
pub mod scalars;
pub mod smallest_parts;
pub mod squares;
pub mod uniform;

/// Calls a macro with the path of each function.
macro_rules! each {
    ($tests:ident) => {
        $tests! {
            axes::an_empty_list_of_axes_reduces_nothing,
            derivatives::derivatives_at_the_edges_are_finite_and_right,
            edge_cases::complex_functions_at_the_ends_of_the_range_are_those_of_c99,
            edge_cases::complex_quotients_with_zeros_and_infinities_are_those_of_c99,
            edge_cases::a_remainder_has_the_sign_of_the_divisor,
            edge_cases::sinc_of_whole_numbers_is_a_positive_zero_within_its_error,
            indexing::operations_by_index_without_elements_are_empty_or_change_nothing,
            integer_means::means_of_integers_do_not_overflow,
            integer_means::means_of_integers_by_index_and_segment_do_not_overflow,
            integer_means::covariances_of_more_elements_than_f16_counts_are_those_of_f64,
            products::a_zero_makes_products_0_whatever_overflows,
            products::complex_products_with_a_zero_are_0,
            promotion::tensors_without_dimensions_take_part_by_kind,
            promotion::the_values_are_those_of_the_dtype,
            ranges::distances_past_the_largest_number_count_and_interpolate,
            scalars::integers_are_compared_with_numbers_by_value,
            scalars::floats_are_compared_with_numbers_past_their_range_by_value,
            scalars::bounds_are_taken_by_value,
            scalars::other_operations_refuse_a_number_that_the_dtype_does_not_hold,
            scalars::numbers_that_fit_the_computation_are_used_as_they_are,
            scalars::negative_powers_of_integers_are_0_but_of_1_and_minus_1,
            smallest_parts::complex_functions_have_the_smallest_parts,
            squares::norms_of_elements_whose_squares_leave_the_range_are_right,
            squares::deviations_of_elements_whose_squares_leave_the_range_are_right,
            squares::a_clip_of_elements_whose_squares_leave_the_range_is_right,
            uniform::a_uniform_draw_spreads_over_ranges_past_the_largest_number,
        }
    };
}
pub(crate) use each;

/// Returns elements as f64.
fn numbers(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
}
