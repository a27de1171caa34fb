//! A struct goes to a kernel by value only where it is plain data without padding.

use selvedge::driver::{ByValue, Function, LaunchConfig, Stream};

#[repr(C)]
#[derive(Clone, Copy)]
struct Settings {
    steps: u8,
    scale: f32,
}

fn launch(stream: &Stream, kernel: &Function, settings: Settings) -> selvedge::Result<()> {
    // SAFETY: not reached, this does not compile.
    unsafe { kernel.launch(stream, LaunchConfig::new(1, 32), (ByValue(settings),)) }
}

fn main() {}
