//! The size classes that requests are rounded up to.
//!
//! The classes are multiples of 512 bytes up to 8 KiB, then 16 per doubling up to 1 MiB and 64 beyond. Rounding
//! therefore loses at most a sixteenth of a small request and a sixty-fourth of a large one. Few distinct sizes make
//! blocks reusable. Every block of the pool has exactly one of these sizes, so a class also numbers a list.

/// The alignment of every block, and the smallest size.
pub(crate) const GRAIN: u64 = 512;

/// The largest class that is a multiple of the grain.
const EVEN: u64 = 8 << 10;

/// Requests up to this many bytes are small.
pub(crate) const SMALL: u64 = 1 << 20;

const EVEN_CLASSES: usize = (EVEN / GRAIN) as usize;
const SMALL_CLASSES: usize = EVEN_CLASSES + 7 * 16;

/// A size class: its size and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) index: usize,
    pub(crate) bytes: u64,
}

/// Returns the class of a request of at least one byte; `None` if it exceeds the address space.
#[inline]
pub(crate) fn class_of(bytes: u64) -> Option<Class> {
    if bytes <= EVEN {
        let grains = bytes.max(1).div_ceil(GRAIN);
        return Some(Class { index: grains as usize - 1, bytes: grains * GRAIN });
    }
    if bytes > 1 << 62 {
        return None;
    }
    let power = 63 - (bytes - 1).leading_zeros();
    let (first, first_power, parts_power) =
        if bytes <= SMALL { (EVEN_CLASSES, 13, 4) } else { (SMALL_CLASSES, 20, 6) };
    let step_power = power - parts_power;
    // From 1 to the number of steps.
    let steps = (bytes - (1 << power)).div_ceil(1 << step_power);
    let index = first + (((power - first_power) as usize) << parts_power) + steps as usize - 1;
    Some(Class { index, bytes: (1 << power) + (steps << step_power) })
}

/// Returns the size of the class with this number.
pub(crate) fn bytes_of(index: usize) -> u64 {
    let parts = |index: usize, first_power: u32, parts_power: u32| {
        let power = first_power + (index >> parts_power) as u32;
        let steps = (index as u64 & ((1 << parts_power) - 1)) + 1;
        (1 << power) + (steps << (power - parts_power))
    };
    match index {
        0..EVEN_CLASSES => (index as u64 + 1) * GRAIN,
        EVEN_CLASSES..SMALL_CLASSES => parts(index - EVEN_CLASSES, 13, 4),
        _ => parts(index - SMALL_CLASSES, 20, 6),
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, bytes_of, class_of};

    #[test]
    fn classes_hold_their_request_and_lose_little() {
        for bytes in
            (1..100_000u64).chain((1..62).flat_map(|shift| [(1 << shift) - 1, 1 << shift, (1 << shift) + 1]))
        {
            let bytes = bytes.max(1);
            let class = class_of(bytes).unwrap();
            assert!(class.bytes >= bytes && class.bytes.is_multiple_of(512), "{bytes} -> {class:?}");
            assert_eq!(bytes_of(class.index), class.bytes, "{bytes} -> {class:?}");
            let lost = class.bytes - bytes;
            assert!(lost < 512 || lost * 16 <= bytes, "{bytes} -> {class:?}");
            assert!(bytes <= 1 << 20 || lost * 64 <= bytes, "{bytes} -> {class:?}");
            assert_eq!(class_of(class.bytes), Some(class), "a class is its own class");
        }
    }

    #[test]
    fn numbers_are_without_gaps_and_in_order() {
        let mut class = Class { index: 0, bytes: 512 };
        while class.bytes < 1 << 50 {
            let next = class_of(class.bytes + 1).unwrap();
            assert_eq!(next.index, class.index + 1, "after {class:?}");
            assert!(next.bytes > class.bytes);
            class = next;
        }
    }

    #[test]
    fn a_size_past_the_address_space_has_no_class() {
        assert_eq!(class_of(u64::MAX), None);
        assert_eq!(class_of((1 << 62) + 1), None);
    }
}
