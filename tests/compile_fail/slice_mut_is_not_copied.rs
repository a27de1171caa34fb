//! An exclusive part cannot be had twice: passing it on gives it away, `reborrow` lends it.

use selvedge::driver::{DeviceSliceMut, Function, LaunchConfig, Stream};

fn twice(stream: &Stream, scale: &Function, part: DeviceSliceMut<'_, f32>) -> selvedge::Result<()> {
    let config = LaunchConfig::for_elements(part.len());
    // SAFETY: not reached, this does not compile.
    unsafe { scale.launch(stream, config, (part,))? };
    // SAFETY: as above.
    unsafe { scale.launch(stream, config, (part,)) }
}

fn main() {}
