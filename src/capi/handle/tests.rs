use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::{Barrier, mpsc};

use super::super::object;
use super::*;

#[derive(Clone, Debug, PartialEq)]
struct Number(u32);
object!(Number, Generator);

fn message(result: Result<Number>) -> String {
    result.unwrap_err().message
}

impl<T: Object> Table<T> {
    /// Pins an object for as long as a test wants.
    fn try_pin(&self, handle: u64) -> Option<Pin<'_, T>> {
        let (slot, generation) = self.find(handle)?;
        (slot.pin(generation) == Attempt::Taken).then(|| Pin { table: self, slot, index: handle as u32 })
    }
}

#[test]
fn a_released_handle_never_reaches_its_successor() {
    let table: Table<Number> = Table::new();
    let first = table.insert(Number(1)).unwrap();
    assert_eq!(table.get(first, "x").unwrap(), Number(1));
    table.retain(first, "x").unwrap();
    table.release(first, "x").unwrap();
    assert_eq!(table.get(first, "x").unwrap(), Number(1));
    table.release(first, "x").unwrap();
    let second = table.insert(Number(2)).unwrap();
    assert_eq!(second as u32, first as u32);
    assert!(message(table.get(first, "x")).contains("which was released"));
    assert!(table.release(first, "x").is_err() && table.retain(first, "x").is_err());
    assert_eq!(table.get(second, "x").unwrap(), Number(2));
}

#[test]
fn handles_that_were_never_given_are_refused() {
    let table: Table<Number> = Table::new();
    assert!(
        message(table.get(0, "x"))
            .starts_with("x: found 0, which is no object; wanted the handle of a live generator")
    );
    assert!(message(table.get(1 << 56 | 1 << 32, "x")).contains("the handle of a stream"));
    assert!(message(table.get(u64::MAX - 1, "x")).contains("never gave"));
    assert!(message(table.get(13 << 56 | 1 << 32 | 7, "x")).contains("never gave"));
    table.insert(Number(1)).unwrap();
    assert!(message(table.get(13 << 56 | 1 << 32 | 7, "x")).contains("released"));
}

#[test]
fn a_table_grows_and_keeps_its_objects() {
    let table: Table<Number> = Table::new();
    let handles: Vec<u64> = (0..10_000).map(|number| table.insert(Number(number)).unwrap()).collect();
    for (number, handle) in handles.iter().enumerate() {
        assert_eq!(table.get(*handle, "x").unwrap(), Number(number as u32));
    }
    assert_eq!((table.clear(), table.clear()), (10_000, 0));
    assert!(handles.iter().all(|handle| table.get(*handle, "x").is_err()));
}

#[test]
fn threads_share_a_table_and_never_a_slot() {
    let table: Table<Number> = Table::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let table = &table;
            scope.spawn(move || {
                for round in 0..2000 {
                    let numbers = [thread << 16 | round, thread << 16 | round | 1 << 15];
                    let handles = numbers.map(|number| table.insert(Number(number)).unwrap());
                    for (number, handle) in numbers.into_iter().zip(handles) {
                        assert_eq!(table.get(handle, "x").unwrap(), Number(number));
                        table.release(handle, "x").unwrap();
                    }
                }
            });
        }
    });
    // No more slots were used than were live at a time.
    assert!(table.used.load(Ordering::Relaxed) <= 8);
}

#[test]
fn a_slot_without_generations_is_not_used_again() {
    let table: Table<Number> = Table::new();
    let handle = table.insert(Number(1)).unwrap();
    table.release(handle, "x").unwrap();
    table.at(0).unwrap().set_generation(GENERATIONS - 1);
    let last = table.insert(Number(1)).unwrap();
    assert_eq!(last, handle | u64::from(GENERATIONS - 1) << 32);
    table.release(last, "x").unwrap();
    assert!(message(table.get(last, "x")).contains("which was released"));
    assert_eq!(table.insert(Number(2)).unwrap() as u32, 1);
}

/// Two halves that every change keeps equal, and a count of the objects that live.
#[derive(Debug)]
struct Halves {
    low: u64,
    high: u64,
    /// Freed memory that a late reader would see.
    heap: Box<u64>,
}
object!(Halves, Variable);

static LIVE: AtomicUsize = AtomicUsize::new(0);

impl Halves {
    fn new(value: u64) -> Halves {
        LIVE.fetch_add(1, Ordering::Relaxed);
        Halves { low: value, high: value, heap: Box::new(value) }
    }

    fn checked(&self) -> u64 {
        assert!(self.low == self.high && self.low == *self.heap);
        self.low
    }
}

impl Clone for Halves {
    fn clone(&self) -> Halves {
        Halves::new(self.checked())
    }
}

impl Drop for Halves {
    fn drop(&mut self) {
        self.checked();
        (self.low, self.high) = (1, 2);
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Numbers that a seed determines (splitmix64).
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }
}

#[test]
fn threads_use_change_retain_and_release_the_same_handles() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = if cfg!(miri) { 200 } else { 30_000 };
    let table = Halves::table();
    // Each slot holds a handle whose reference belongs to whoever swaps it out. Other threads use copies of the number,
    // which may be stale at any time.
    let slots: [AtomicU64; 3] =
        std::array::from_fn(|_| AtomicU64::new(table.insert(Halves::new(0)).unwrap()));
    let never_changed = table.insert(Halves::new(7)).unwrap();
    let counted = table.insert(Halves::new(0)).unwrap();
    let barrier = Barrier::new(THREADS as usize);
    let work = |thread: u64| {
        let mut draws = Draws(thread);
        let mut own = vec![];
        let mut changes = 0;
        barrier.wait();
        for round in 0..ROUNDS {
            let slot = &slots[draws.below(slots.len() as u64) as usize];
            let handle = slot.load(Ordering::Relaxed);
            match draws.below(8) {
                0 => {
                    let new = table.insert(Halves::new(thread << 32 | round)).unwrap();
                    table.release(slot.swap(new, Ordering::AcqRel), "x").unwrap();
                }
                1 => {
                    if table.retain(handle, "x").is_ok() {
                        own.push((handle, table.with(handle, "x", Halves::checked).unwrap() >> 32));
                    }
                }
                2 => {
                    if !own.is_empty() {
                        let (handle, maker) = own.swap_remove(draws.below(own.len() as u64) as usize);
                        // A change keeps the maker.
                        assert_eq!(table.with(handle, "x", Halves::checked).unwrap() >> 32, maker);
                        table.release(handle, "x").unwrap();
                    }
                }
                3 | 4 => {
                    let change = |halves: &mut Halves| {
                        let next = halves.checked() ^ 1;
                        halves.low = next;
                        *halves.heap = next;
                        halves.high = next;
                        Ok(())
                    };
                    let _ = table.with_mut(handle, "x", change);
                    let count = |halves: &mut Halves| {
                        let value = halves.checked() + 1;
                        *halves = Halves::new(value);
                        Ok(())
                    };
                    table.with_mut(counted, "x", count).unwrap();
                    changes += 1;
                }
                5 => {
                    // All of the objects or none; the second call pins one of them twice.
                    for handles in [[handle, counted, never_changed], [never_changed, handle, handle]] {
                        table.with_pins(&handles, |pinned| {
                            assert!(pinned.iter().all(Option::is_some));
                            assert!(pinned.iter().flatten().all(|halves| halves.checked() == *halves.heap));
                        });
                    }
                    let value = table.with_pins(&[never_changed], |pinned| pinned[0].map(Halves::checked));
                    assert_eq!(value, Some(Some(7)));
                }
                _ => {
                    let _ = table.get(handle, "x").map(|halves| halves.checked());
                }
            }
        }
        own.into_iter().for_each(|(handle, _)| table.release(handle, "x").unwrap());
        changes
    };
    let work = &work;
    let changes: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(table.get(counted, "x").unwrap().checked(), changes);
    let handles = slots.into_iter().map(AtomicU64::into_inner).chain([counted, never_changed]);
    for handle in handles {
        table.release(handle, "x").unwrap();
        assert!(table.get(handle, "x").is_err());
    }
    assert_eq!(LIVE.load(Ordering::Relaxed), 0);
    // Slots of threads that ended were used again, beside those of which threads had more.
    assert!(table.used.load(Ordering::Relaxed) < 4096, "{}", table.used.load(Ordering::Relaxed));
}

#[test]
fn an_object_that_is_in_use_ends_with_its_last_use() {
    let table: Table<Number> = Table::new();
    let handle = table.insert(Number(1)).unwrap();
    let pin = table.try_pin(handle).unwrap();
    table.release(handle, "x").unwrap();
    assert!(table.try_pin(handle).is_none() && table.get(handle, "x").is_err());
    assert_eq!(*pin, Number(1));
    let other = table.insert(Number(2)).unwrap();
    assert_ne!(other as u32, handle as u32);
    drop(pin);
    assert_eq!(table.insert(Number(3)).unwrap() as u32, handle as u32);

    let change = |number: &mut Number| {
        table.release(other, "x").unwrap();
        *number = Number(4);
        Ok(number.clone())
    };
    assert_eq!(table.with_mut(other, "x", change).unwrap(), Number(4));
    assert!(table.get(other, "x").is_err());
    assert_eq!(table.insert(Number(5)).unwrap() as u32, other as u32);
}

#[test]
fn pins_of_several_objects_begin_and_end_together() {
    let table: Table<Number> = Table::new();
    let [x, y] = [1, 2].map(|number| table.insert(Number(number)).unwrap());
    let sum = |pinned: &[Option<&Number>; 3]| pinned.iter().flatten().map(|number| number.0).sum::<u32>();
    assert_eq!(table.with_pins(&[x, y, y], sum), Some(5));
    assert_eq!(table.with_pins(&[x, y, 0], sum), None);
    // No pin of the failed call is left, or the changes would not end.
    for handle in [x, y] {
        table
            .with_mut(handle, "x", |number| {
                number.0 += 10;
                Ok(())
            })
            .unwrap();
    }
    // An object that is released meanwhile ends with its last pin.
    let release = |pinned: &[Option<&Number>; 2]| {
        table.release(x, "x").unwrap();
        pinned.map(|number| number.cloned())
    };
    assert_eq!(table.with_pins(&[x, x], release), Some([Some(Number(11)), Some(Number(11))]));
    assert_eq!(table.with_pins(&[x], |_| ()), None);
    assert_eq!(table.insert(Number(3)).unwrap() as u32, x as u32);
}

#[test]
fn a_change_waits_for_uses_and_uses_wait_for_a_change() {
    let table: Table<Number> = Table::new();
    let handle = table.insert(Number(1)).unwrap();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let pin = table.try_pin(handle).unwrap();
        let (table, change_sender) = (&table, sender.clone());
        scope.spawn(move || {
            table
                .with_mut(handle, "x", |number| {
                    number.0 = 2;
                    Ok(())
                })
                .unwrap();
            change_sender.send(()).unwrap();
        });
        while table.try_pin(handle).is_some() {
            std::thread::yield_now();
        }
        scope.spawn(move || assert_eq!(table.get(handle, "x").unwrap(), Number(2)));
        assert!(receiver.try_recv().is_err());
        assert_eq!(*pin, Number(1));
        drop(pin);
        receiver.recv().unwrap();
    });
}

#[test]
fn a_panic_ends_its_use() {
    let table: Table<Number> = Table::new();
    let handle = table.insert(Number(1)).unwrap();
    let panics = |work: &dyn Fn()| catch_unwind(AssertUnwindSafe(work)).is_err();
    let outcome = guard::call("sv_test", || {
        assert!(panics(&|| table.with(handle, "x", |_| panic!("on purpose")).unwrap()));
        assert!(panics(&|| table.with_mut(handle, "x", |_| -> Result<()> { panic!("on purpose") }).unwrap()));
        Ok(())
    });
    assert_eq!(outcome, status::SV_OK);
    table
        .with_mut(handle, "x", |number| {
            number.0 = 2;
            Ok(())
        })
        .unwrap();
    assert_eq!(table.get(handle, "x").unwrap(), Number(2));
}

#[test]
fn a_callback_does_not_wait_for_the_call_that_it_is_in() {
    let table: Table<Number> = Table::new();
    let [x, y] = [1, 2].map(|number| table.insert(Number(number)).unwrap());
    let change = |handle| {
        table.with_mut(handle, "tensor", |number| {
            number.0 += 10;
            Ok(())
        })
    };
    let callback = |pinned: bool| {
        let outcome = guard::call("sv_callback", || {
            assert_eq!(table.get(x, "tensor").is_ok(), pinned);
            assert!(change(x).unwrap_err().message.starts_with("tensor: found an object that is in use"));
            // Nobody has the other one.
            change(y)
        });
        assert_eq!(outcome, status::SV_OK);
    };
    let outcome = guard::call("sv_test", || {
        guard::in_use(|| {
            table.with_pins(&[x], |_| callback(true));
        });
        table.with_mut(x, "tensor", |_| {
            callback(false);
            // In the call itself, a second object is taken.
            change(y)
        })?;
        change(x)
    });
    assert_eq!(outcome, status::SV_OK);
    assert_eq!([x, y].map(|handle| table.get(handle, "x").unwrap()), [Number(11), Number(32)]);
}
