//! Gradients at edges (tests/cases/edge_gradients.rs) on the CPU.

#[path = "../cases/edge_gradients.rs"]
mod cases;

use selvedge::Device;

macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                cases::$name(&Device::cpu());
            }
        )*
    };
}

tests! {
    gradients_of_products_are_products_of_the_others, gradients_of_cumulative_products_are_products_of_the_others,
    elements_that_equal_an_infinite_logsumexp_share_its_gradient,
    operands_of_which_only_the_sign_counts_have_gradients_of_zeros,
}
