//! Fields of structs that are kept for later versions: a number other than 0 is refused by name.

use std::ptr::null_mut;

use selvedge::capi::burst::rule::{sv_plasticity_rule, sv_simulation_add_rule};
use selvedge::capi::burst::state::{sv_network_state, sv_simulation_set_state};
use selvedge::capi::classifier::{
    sv_classifier_create, sv_classifier_options, sv_classifier_report, sv_classifier_train,
    sv_classifier_training_options,
};
use selvedge::capi::matmul::{sv_matmul, sv_matmul_options};
use selvedge::capi::status::SV_ERROR_INVALID_ARGUMENT;
use selvedge::capi::tensor::index::{sv_index, sv_tensor_index};
use selvedge::capi::tensor::{SV_DTYPE_F32, creation, sv_number};

use super::{CPU, fails, floats, real};

/// Returns a struct of zeros with its size.
macro_rules! sized {
    ($structure:ident { $($field:ident: $value:expr),* }) => {{
        // SAFETY: zeros are a value of each of these structs.
        let mut given: $structure = unsafe { std::mem::zeroed() };
        given.size = size_of::<$structure>();
        $(given.$field = $value;)*
        given
    }};
}

#[test]
fn reserved_fields_must_be_zero() {
    let x = floats(&[1.0], &[1, 1]);
    let mut result = 7;
    let state = sized!(sv_network_state { reserved: 1 });
    let rule = sized!(sv_plasticity_rule { reserved: [0, 0, 0, 0, 0, 1] });
    let product = sized!(sv_matmul_options { reserved: -1 });
    let options = sized!(sv_classifier_options { reserved: 1 });
    let training = sized!(sv_classifier_training_options { reserved: 1 });
    let mut report = sized!(sv_classifier_report {});
    // SAFETY: the pointers are to locals; no function reads further than a reserved field.
    unsafe {
        let item = sv_index { reserved: 1, ..std::mem::zeroed() };
        let number = sv_number { reserved: 1, ..real(1.0) };
        let refused = SV_ERROR_INVALID_ARGUMENT;
        fails(sv_simulation_set_state(0, &state), refused, "state->reserved: found 1");
        fails(sv_simulation_add_rule(0, &rule), refused, "rule->reserved");
        fails(sv_matmul(x, x, &product, &mut result), refused, "options.reserved: found -1");
        fails(sv_classifier_create(&options, CPU, &mut result), refused, "options->reserved");
        let trained = sv_classifier_train(0, 0, 0, &training, None, null_mut(), &mut report);
        fails(trained, refused, "options->reserved");
        fails(sv_tensor_index(x, &item, 1, &mut result), refused, "items.reserved");
        let full = creation::sv_tensor_full(&number, SV_DTYPE_F32, [1].as_ptr(), 1, CPU, &mut result);
        fails(full, refused, "number.reserved");
    }
    assert_eq!(result, 7);
}
