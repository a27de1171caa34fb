//! Running a declared kernel is unsafe: it can leave its buffers. So is running by name.

use selvedge::driver::{DeviceBuffer, LaunchConfig, Stream};
use selvedge::launcher::Launcher;

selvedge::kernel! {
    pub unsafe fn saxpy(x: &[f32], y: &mut [f32], a: f32, n: u32);
}

fn launch(stream: &Stream, saxpy: &saxpy, x: &DeviceBuffer<f32>, y: &mut DeviceBuffer<f32>) -> selvedge::Result<()> {
    saxpy.run(stream, LaunchConfig::new(1, 32), x, y, 2.0, 1)?;
    Ok(())
}

fn by_name(launcher: &Launcher) -> selvedge::Result<()> {
    launcher.run("saxpy", 1, 32, (1u32,))?;
    Ok(())
}

fn main() {}
