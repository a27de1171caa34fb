//! The tables of right losses and gradients (tests/cases/gradient_values.rs) on the CPU.

#[path = "../cases/gradient_values.rs"]
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

cases::each!(tests);

#[test]
fn ids_do_not_count_from_the_end() {
    cases::ids_do_not_count_from_the_end(&Device::cpu());
}
