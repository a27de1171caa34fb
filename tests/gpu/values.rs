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

cases::each!(tests);
