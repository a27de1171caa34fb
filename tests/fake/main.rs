//! Tests on the fake driver: a `libcuda.so.1` in C that keeps books (`csrc/fake_driver/fake.h`).
//!
//! It is compiled here, with the host's C compiler, so these tests need Linux and no GPU. Each module gives its trials.

#[cfg(target_os = "linux")]
mod self_check;
#[cfg(target_os = "linux")]
mod support;

fn main() {
    let arguments = libtest_mimic::Arguments::from_args();
    let mut trials = Vec::new();
    #[cfg(target_os = "linux")]
    trials.extend(self_check::trials());
    libtest_mimic::run(&arguments, trials).exit();
}
