//! Work on buffers that other code issues, such as a callback of a C program.

use super::buffer::DeviceBuffer;
use super::slice::HasView;
use super::usage::Access;
use crate::driver::graph::capture;
use crate::driver::stream::Stream;
use crate::error::Result;

impl Stream {
    /// Runs `call`, which issues work to the stream that this library does not see. The work is ordered with all other uses
    /// of these buffers: behind earlier ones, and before later ones. Each buffer comes with whether the work writes to it.
    pub(crate) fn submit_external(
        &self,
        uses: &[(&DeviceBuffer<u8>, bool)],
        call: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let state = self.state();
        if capture::any() {
            capture::join_for(
                state,
                uses.iter().map(|(buffer, writes)| (&buffer.allocation, Access::of(*writes))),
            )?;
        }
        for (buffer, writes) in uses {
            self.enter_external(buffer, *writes)?;
        }
        state.submit(call)
    }

    /// Orders the stream behind earlier uses of a buffer, and registers it as a user from now on.
    pub(crate) fn enter_external(&self, buffer: &DeviceBuffer<u8>, writes: bool) -> Result<()> {
        match writes {
            true => buffer.view().enter_write(self.state()),
            false => buffer.view().enter_read(self.state()),
        }
    }
}
