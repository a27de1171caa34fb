//! The tables of right values (tests/cases/values) on the CPU.

#[path = "../cases/values/mod.rs"]
mod cases;

use selvedge::tensor::Device;

macro_rules! tests {
    ($($table:ident::$name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                cases::$table::$name(&Device::cpu());
            }
        )*
    };
}

cases::each!(tests);
