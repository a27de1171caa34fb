//! Any bytes that a kernel writes must be a value of the element type: `bool` and references have patterns that are none,
//! and what owns memory cannot be made of bytes.

use selvedge::driver::Stream;

fn upload(stream: &Stream, text: String) -> selvedge::Result<()> {
    let _ = stream.upload(&[true, false])?;
    let _ = stream.upload(&[&1.0f32])?;
    let _ = stream.upload(&[text])?;
    Ok(())
}

fn main() {}
