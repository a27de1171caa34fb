//! A transfer gives its buffer back once.

use selvedge::driver::Transfer;

fn twice(transfer: Transfer<f32>) -> selvedge::Result<()> {
    transfer.wait()?;
    transfer.wait()?;
    Ok(())
}

fn main() {}
