//! A callback runs on a thread of the driver, so it can be sent there.

use std::rc::Rc;

use selvedge::driver::Stream;

fn not_sent(stream: &Stream, count: Rc<u32>) -> selvedge::Result<()> {
    stream.on_complete(move || drop(count))
}

fn main() {}
