//! Atomic integers and pointers whose accesses are scheduling points.

use std::fmt;
use std::sync::atomic as real;

pub use std::sync::atomic::Ordering;

use kiln_machine::AccessKind;

use super::runtime;

/// A memory fence. One that orders stores before later loads is a scheduling point and takes time.
#[inline(always)]
pub fn fence(order: Ordering) {
    runtime::fence(matches!(order, Ordering::SeqCst));
    real::fence(order);
}

/// Asks for the cache line at `address`.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    runtime::access(address as usize, AccessKind::Prefetch);
}

/// Asks for memory that is no atomics, at most so many bytes of it; see [`plain`](crate::plain).
#[inline(always)]
pub fn prefetch_plain<T>(memory: *const [T], bytes_max: usize) {
    super::plain::prefetch(memory, bytes_max);
}

/// What all atomics have: the first argument is the name, the second the value's type.
macro_rules! atomic {
    ($(#[$doc:meta])* $name:ident $(<$parameter:ident>)?, $value:ty) => {
        $(#[$doc])*
        #[repr(transparent)]
        pub struct $name $(<$parameter>)? (real::$name $(<$parameter>)?);

        impl $(<$parameter>)? $name $(<$parameter>)? {
            /// An atomic that holds `value`.
            #[inline(always)]
            pub const fn new(value: $value) -> Self {
                Self(real::$name::new(value))
            }

            #[inline(always)]
            fn touch(&self, kind: AccessKind) {
                runtime::access(std::ptr::from_ref(self).addr(), kind);
            }

            /// The atomic without scheduling points.
            #[inline(always)]
            #[allow(
                dead_code,
                reason = "`words` asks for that of AtomicU64; the other types have it from the macro"
            )]
            pub(super) fn raw(&self) -> &real::$name $(<$parameter>)? {
                &self.0
            }

            /// Reads the value.
            #[inline(always)]
            pub fn load(&self, order: Ordering) -> $value {
                self.touch(AccessKind::Load);
                self.0.load(order)
            }

            /// Writes the value.
            #[inline(always)]
            pub fn store(&self, value: $value, order: Ordering) {
                self.touch(AccessKind::Store);
                self.0.store(value, order);
            }

            /// Writes the value and returns what was there.
            #[inline(always)]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.touch(AccessKind::ReadModifyWrite);
                self.0.swap(value, order)
            }

            /// Writes `new` if `current` is there.
            ///
            /// # Errors
            /// What is there instead.
            #[inline(always)]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.touch(AccessKind::ReadModifyWrite);
                self.0.compare_exchange(current, new, success, failure)
            }

            /// Writes `new` if `current` is there; may fail although it is.
            ///
            /// # Errors
            /// What is there instead.
            #[inline(always)]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            /// Replaces the value by what `change` makes of it, unless that is nothing.
            ///
            /// # Errors
            /// The value that `change` made nothing of.
            #[inline]
            pub fn fetch_update(
                &self,
                set: Ordering,
                fetch: Ordering,
                mut change: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut seen = self.load(fetch);
                while let Some(next) = change(seen) {
                    match self.compare_exchange(seen, next, set, fetch) {
                        Ok(before) => return Ok(before),
                        Err(now) => seen = now,
                    }
                }
                Err(seen)
            }

            /// The value, which no other thread can reach.
            #[inline(always)]
            pub fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }

            /// The value.
            #[inline(always)]
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }
        }

        impl $(<$parameter>)? fmt::Debug for $name $(<$parameter>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl $(<$parameter>)? From<$value> for $name $(<$parameter>)? {
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }
    };
}

/// Read-modify-writes: the name of the atomic, its value's type, the operations.
macro_rules! fetch {
    ($name:ident, $value:ty: $($(#[$doc:meta])* $operation:ident),*) => {
        impl $name {
            $(
                $(#[$doc])*
                #[inline(always)]
                pub fn $operation(&self, value: $value, order: Ordering) -> $value {
                    self.touch(AccessKind::ReadModifyWrite);
                    self.0.$operation(value, order)
                }
            )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new(<$value>::default())
            }
        }
    };
}

/// An atomic integer with everything that integers have.
macro_rules! integer {
    ($(#[$doc:meta])* $name:ident, $value:ty) => {
        atomic!($(#[$doc])* $name, $value);
        fetch!($name, $value:
            /// Adds, wrapping around; returns what was there.
            fetch_add,
            /// Subtracts, wrapping around; returns what was there.
            fetch_sub,
            /// Bitwise and; returns what was there.
            fetch_and,
            /// Bitwise or; returns what was there.
            fetch_or,
            /// Bitwise exclusive or; returns what was there.
            fetch_xor,
            /// The larger of the two; returns what was there.
            fetch_max,
            /// The smaller of the two; returns what was there.
            fetch_min
        );
    };
}

integer!(
    /// An atomic `i64`.
    AtomicI64, i64
);
integer!(
    /// An atomic `u8`.
    AtomicU8, u8
);
integer!(
    /// An atomic `u32`.
    AtomicU32, u32
);
integer!(
    /// An atomic `u64`.
    AtomicU64, u64
);
integer!(
    /// An atomic `usize`.
    AtomicUsize, usize
);
atomic!(
    /// An atomic `bool`.
    AtomicBool, bool
);
fetch!(AtomicBool, bool:
    /// Logical and; returns what was there.
    fetch_and,
    /// Logical or; returns what was there.
    fetch_or,
    /// Logical exclusive or; returns what was there.
    fetch_xor
);
atomic!(
    /// An atomic pointer.
    AtomicPtr<T>, *mut T
);

impl<T> Default for AtomicPtr<T> {
    fn default() -> Self {
        Self::new(std::ptr::null_mut())
    }
}
