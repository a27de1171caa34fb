//! The tables of right values (tests/cases/values) on a device, so that they do not depend on the CPU's results.

#[path = "../cases/values/mod.rs"]
mod cases;

use selvedge::tensor::Device;

use crate::support::{Outcome, device_tests};

macro_rules! tests {
    ($($table:ident::$name:ident),* $(,)?) => {
        device_tests! { $($name),* }

        $(
            fn $name() -> Outcome {
                cases::$table::$name(&Device::cuda(0)?);
                Ok(())
            }
        )*
    };
}

tests! {
    axes::an_empty_list_of_axes_reduces_nothing,
    edge_cases::complex_functions_at_the_ends_of_the_range_are_those_of_c99,
    edge_cases::complex_quotients_with_zeros_and_infinities_are_those_of_c99,
    edge_cases::a_remainder_has_the_sign_of_the_divisor,
    edge_cases::sinc_of_whole_numbers_is_a_positive_zero_within_its_error,
    indexing::operations_by_index_without_elements_are_empty_or_change_nothing,
    integer_means::means_of_integers_do_not_overflow,
    products::a_zero_makes_products_0_whatever_overflows,
    products::complex_products_with_a_zero_are_0,
    promotion::tensors_without_dimensions_take_part_by_kind,
    promotion::the_values_are_those_of_the_dtype,
    scalars::integers_are_compared_with_numbers_by_value,
    scalars::floats_are_compared_with_numbers_past_their_range_by_value,
    scalars::bounds_are_taken_by_value,
    scalars::other_operations_refuse_a_number_that_the_dtype_does_not_hold,
    scalars::numbers_that_fit_the_computation_are_used_as_they_are,
    scalars::negative_powers_of_integers_are_0_but_of_1_and_minus_1,
    uniform::a_uniform_draw_spreads_over_ranges_past_the_largest_number,
}
