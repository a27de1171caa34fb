//! A fallback may be called by any thread at any time, so it owns what it names and shares it safely.

use std::cell::Cell;

use selvedge::launcher::Fallback;

fn borrowed(count: &mut u32) -> Fallback {
    Fallback::cpu(|_| {
        *count += 1;
        Ok(())
    })
}

fn not_shared(count: Cell<u32>) -> Fallback {
    Fallback::cpu(move |_| {
        count.set(1);
        Ok(())
    })
}

fn main() {}
