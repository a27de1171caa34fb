//! Launch shapes, from the size of the problem and the occupancy of a kernel.

use super::function::Function;
use super::launch::{Dim3, LaunchConfig};
use crate::error::{Error, Result};

impl LaunchConfig {
    /// One thread per element of a row-major matrix: x counts columns, y counts rows, in blocks of 32 x 8 threads. The
    /// kernel must skip positions past the ends.
    ///
    /// # Errors
    ///
    /// [`Error::LaunchLimit`] for more than 524,280 rows or 2³⁶ columns, the limits of a grid. Transpose the matrix, or
    /// let the kernel loop.
    pub fn for_matrix(rows: usize, columns: usize) -> Result<LaunchConfig> {
        const BLOCK: Dim3 = Dim3 { x: 32, y: 8, z: 1 };
        let x = blocks("grid x", columns, BLOCK.x, i32::MAX as u32, any_device)?;
        let y = blocks("grid y", rows, BLOCK.y, 65_535, any_device)?;
        Ok(LaunchConfig::new((x, y), BLOCK))
    }
}

fn any_device() -> String {
    "every device".to_owned()
}

/// Returns how many blocks of `threads` threads cover `count`; at least one.
fn blocks(
    what: &'static str,
    count: usize,
    threads: u32,
    limit: u32,
    limit_of: impl Fn() -> String,
) -> Result<u32> {
    let blocks = count.div_ceil(threads.max(1) as usize).max(1);
    u32::try_from(blocks).ok().filter(|&blocks| blocks <= limit).ok_or_else(|| Error::LaunchLimit {
        what,
        found: blocks as u64,
        limit: u64::from(limit),
        limit_of: limit_of(),
    })
}

impl Function {
    /// One thread for each of `count` elements, in blocks of the size with the highest occupancy for this kernel and
    /// `dynamic_shared` bytes of dynamic shared memory per block. The kernel must skip positions past the end.
    ///
    /// # Errors
    ///
    /// [`Error::LaunchLimit`] for more elements than a grid of the device has threads (use
    /// [`config_for_loop`](Self::config_for_loop) instead), or the errors of
    /// [`suggested_block_size`](Self::suggested_block_size).
    pub fn config_for_elements(&self, count: usize, dynamic_shared: u32) -> Result<LaunchConfig> {
        let (_, block) = self.suggested_shape(dynamic_shared)?;
        let device = self.0.module.device;
        let limit_of = || format!("device {}", device.ordinal);
        // A required block shape never has more threads than `u32` counts: a block has at most 1024.
        let threads = u32::try_from(block.count()).unwrap_or(u32::MAX);
        let grid = blocks("grid x", count, threads, device.limits.grid[0], limit_of)?;
        Ok(LaunchConfig::new(grid, block).shared(dynamic_shared))
    }

    /// A shape for a grid-stride loop: as many blocks as the device holds at once, but no more than `count` elements
    /// need.
    ///
    /// # Errors
    ///
    /// The errors of [`suggested_block_size`](Self::suggested_block_size).
    pub fn config_for_loop(&self, count: usize, dynamic_shared: u32) -> Result<LaunchConfig> {
        let (most, block) = self.suggested_shape(dynamic_shared)?;
        let threads = usize::try_from(block.count()).unwrap_or(usize::MAX).max(1);
        let needed = u32::try_from(count.div_ceil(threads)).unwrap_or(u32::MAX);
        Ok(LaunchConfig::new(needed.min(most).max(1), block).shared(dynamic_shared))
    }

    /// The number of blocks that fill the device, and their shape: the one that the kernel requires, if it requires
    /// one.
    fn suggested_shape(&self, dynamic_shared: u32) -> Result<(u32, Dim3)> {
        let (grid, block) = self.suggested_block_size(dynamic_shared)?;
        match self.0.required_block {
            Some(required) => {
                let threads = u32::try_from(required.count()).unwrap_or(u32::MAX);
                let filled = u64::from(grid) * u64::from(block) / u64::from(threads.max(1));
                Ok((u32::try_from(filled).unwrap_or(u32::MAX), required))
            }
            None => Ok((grid, block.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_is_covered_or_refused() {
        let shape =
            |rows, columns| LaunchConfig::for_matrix(rows, columns).map(|config| (config.grid, config.block));
        let block = Dim3::from((32, 8));
        assert_eq!(shape(1, 1).unwrap(), (1.into(), block));
        assert_eq!(shape(9, 33).unwrap(), ((2, 2).into(), block));
        assert_eq!(shape(0, 0).unwrap(), (1.into(), block));
        assert_eq!(shape(524_280, 1).unwrap(), ((1, 65_535).into(), block));
        for (rows, columns, limit) in
            [(524_281, 1, "65535"), (1, (1 << 36) + 1, "2147483647"), (usize::MAX, 1, "65535")]
        {
            let error = shape(rows, columns).unwrap_err();
            assert!(
                matches!(error, Error::LaunchLimit { .. }) && error.to_string().contains(limit),
                "{error}"
            );
        }
    }
}
