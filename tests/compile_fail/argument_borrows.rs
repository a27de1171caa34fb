//! An argument of a run-time list borrows its buffer as a tuple's argument does.

use selvedge::driver::{Argument, DeviceBuffer, Stream};

fn outlives(stream: &Stream) -> selvedge::Result<Argument<'static>> {
    let buffer = stream.zeros::<f32>(1)?;
    Ok(Argument::read(&buffer))
}

fn read_while_listed(stream: &Stream, buffer: &mut DeviceBuffer<f32>) -> selvedge::Result<Vec<f32>> {
    let arguments = [Argument::write(buffer)];
    let values = stream.download(buffer)?;
    drop(arguments);
    Ok(values)
}

fn listed_twice(buffer: &mut DeviceBuffer<f32>) -> [Argument<'_>; 2] {
    [Argument::read(buffer), Argument::write(buffer)]
}

fn main() {}
