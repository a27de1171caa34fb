//! The tables of right losses and gradients (tests/cases/gradient_values.rs) on a device, so that they do not depend on the CPU's
//! results.

#[path = "../cases/gradient_values.rs"]
mod cases;

use selvedge::tensor::Device;

use crate::support::{Outcome, device_tests};

macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        device_tests! { $($name,)* ids_do_not_count_from_the_end => in_child(&[]) }

        $(
            fn $name() -> Outcome {
                cases::$name(&Device::cuda(0)?);
                Ok(())
            }
        )*
    };
}

cases::each!(tests);

fn ids_do_not_count_from_the_end() -> Outcome {
    cases::ids_do_not_count_from_the_end(&Device::cuda(0)?);
    Ok(())
}
