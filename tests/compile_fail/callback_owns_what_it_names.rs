//! A callback runs when the caller may be gone, so it borrows nothing.

use selvedge::driver::Stream;

fn borrowed(stream: &Stream) -> selvedge::Result<()> {
    let mut done = false;
    stream.on_complete(|| done = true)
}

fn main() {}
