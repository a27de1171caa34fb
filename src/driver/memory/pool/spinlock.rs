//! A spinlock for critical sections of a few instructions.
//!
//! The standard mutex uses an atomic read-modify-write to lock and again to unlock, in case a thread sleeps. Here none
//! sleeps: critical sections take some nanoseconds, so a waiting thread spins, and yields after a while. Unlocking is
//! an ordinary store, which saves a fifth of the cost of allocating and freeing a buffer.
//!
//! Invariants: a critical section never waits, calls the driver, or drops objects that other code may have created.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Default)]
pub(crate) struct SpinLock<T> {
    closed: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only a guard gives access to the value, and there is one guard at a time.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    #[inline]
    pub(crate) fn lock(&self) -> SpinLockGuard<'_, T> {
        if self.closed.swap(true, Ordering::Acquire) {
            self.wait();
        }
        SpinLockGuard(self, PhantomData)
    }

    #[cold]
    fn wait(&self) {
        let mut looked = 0;
        loop {
            while self.closed.load(Ordering::Relaxed) {
                looked += 1;
                if looked < 64 {
                    std::hint::spin_loop();
                } else {
                    // The owner may have been preempted.
                    std::thread::yield_now();
                }
            }
            if !self.closed.swap(true, Ordering::Acquire) {
                return;
            }
        }
    }
}

/// Exclusive access to the value of a spinlock, which is unlocked when this is dropped.
///
/// Like a `&mut T`, it may move to or be shared with another thread only if `T` may.
pub(crate) struct SpinLockGuard<'a, T>(&'a SpinLock<T>, PhantomData<&'a mut T>);

impl<T> Deref for SpinLockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only one.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for SpinLockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the only one, and borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for SpinLockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.closed.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::SpinLock;

    #[test]
    fn one_at_a_time() {
        let lock = SpinLock::<u64>::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..20_000).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(*lock.lock(), 80_000);
    }
}
