//! The memory of calls in flight, and who may use it, as types.
//!
//! A context stays where it is from the start of its worker to the end, and one thread after the
//! other uses it: the worker that draws its call, those that plan, lock or run it, and the first
//! one again. What moves between them is one of these, each a pointer:
//!
//! | type | who has it | what that may do |
//! |---|---|---|
//! | [`Own`] | the worker, while no other thread uses the context | everything |
//! | [`Lent`] | the worker, while others use it | know it again, and get it back |
//! | [`Loan`] | the others: in a batch, in a queue, in a message | hand it from one to the next |
//!
//! [`Own::lend`] makes a `Lent` and a `Loan` of an `Own`, [`Lent::returned`] the reverse. That the
//! loan is over is known to the scheduler alone, so that one step is unsafe. A worker cannot look
//! at what it has lent, nor lend it twice.
//!
//! What a worker has when its thread panics is not freed: others go on with what it has lent, and
//! with what that refers to (see [`breakdown`](crate::breakdown)).

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use kiln_platform::thread;

/// Memory that its worker has to itself.
pub(crate) struct Own<V>(NonNull<V>);

/// Memory that its worker has lent. Never freed as such: others may use it.
pub(crate) struct Lent<V>(NonNull<V>);

/// The right to use lent memory, for one thread at a time.
pub(crate) struct Loan<V>(NonNull<V>);

impl<V> Own<V> {
    /// Memory with this content.
    pub fn new(value: V) -> Own<V> {
        Own::of(Box::new(value))
    }

    /// The memory of a box.
    pub fn of(content: Box<V>) -> Own<V> {
        Own(NonNull::from(Box::leak(content)))
    }

    /// Lends it: the worker keeps the first half, and others get the second one.
    #[inline]
    pub fn lend(self) -> (Lent<V>, Loan<V>) {
        let memory = self.0;
        std::mem::forget(self);
        (Lent(memory), Loan(memory))
    }

    /// Where it is.
    #[inline]
    pub fn as_ptr(&self) -> *mut V {
        self.0.as_ptr()
    }
}

impl<V> Lent<V> {
    /// Where it is.
    #[inline]
    pub fn as_ptr(&self) -> *mut V {
        self.0.as_ptr()
    }

    /// Takes it back.
    ///
    /// # Safety
    /// The loan is over: no other thread uses the memory from now on, and what those did that used
    /// it is visible to this one.
    #[inline]
    pub unsafe fn returned(self) -> Own<V> {
        Own(self.0)
    }
}

impl<V> Loan<V> {
    /// Where it is, for the thread whose core slot it is.
    #[inline]
    pub fn as_ptr(&self) -> *mut V {
        self.0.as_ptr()
    }
}

impl<V> Deref for Own<V> {
    type Target = V;

    #[inline(always)]
    fn deref(&self) -> &V {
        // SAFETY: allocated in `of`, freed in `drop` alone, and used by no other thread: what is
        // lent is no `Own`.
        unsafe { self.0.as_ref() }
    }
}

impl<V> DerefMut for Own<V> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut V {
        // SAFETY: as for `deref`.
        unsafe { self.0.as_mut() }
    }
}

impl<V> Drop for Own<V> {
    fn drop(&mut self) {
        if !thread::panicking() {
            // SAFETY: it came from a box in `of`, and no other thread has it.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

// SAFETY: it is a box.
unsafe impl<V: Send> Send for Own<V> {}
// SAFETY: it is a box, and gives out shared references only as one.
unsafe impl<V: Sync> Sync for Own<V> {}
// SAFETY: it is an address, and becomes a box again where `returned` says so.
unsafe impl<V: Send> Send for Lent<V> {}
// SAFETY: it is an address, and the memory goes from thread to thread with it.
unsafe impl<V: Send> Send for Loan<V> {}

#[cfg(test)]
mod tests {
    use kiln_platform::sync::Arc;

    use super::*;

    #[test]
    fn what_is_lent_comes_back_with_what_others_have_done() {
        let own = Own::new(vec![1]);
        let (lent, loan) = own.lend();
        thread::scope(|scope| {
            // SAFETY: only this thread uses it meanwhile.
            scope.spawn(move || unsafe { (*loan.as_ptr()).push(2) });
        });
        // SAFETY: the thread has ended.
        let mut own = unsafe { lent.returned() };
        own.push(3);
        assert_eq!(*own, [1, 2, 3]);
    }

    #[test]
    fn what_is_owned_is_freed_and_what_is_lent_is_not() {
        let counted = Arc::new(());
        drop(Own::new(counted.clone()));
        assert_eq!(Arc::strong_count(&counted), 1);
        let address = {
            let (lent, _loan) = Own::new(counted.clone()).lend();
            lent.as_ptr()
        };
        assert_eq!(Arc::strong_count(&counted), 2);
        // SAFETY: it came from a box in `Own::of`, and both halves are gone.
        drop(unsafe { Box::from_raw(address) });
    }
}
