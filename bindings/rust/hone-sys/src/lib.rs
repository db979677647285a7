//! The C interface of Hone as hone.h has it, member by member; what each thing means stands there.
//! The crate `hone` is the safe layer above it.
//!
//! Structs start from their `Default`, which asks the library: a program that was compiled with an earlier
//! version of this crate runs with every later library.

#![allow(non_camel_case_types)]

#[rustfmt::skip]
mod operators;
mod runtime;

pub use operators::*;
pub use runtime::*;

/// What an initializer of the library writes.
pub(crate) fn initialized<T>(initialize: unsafe extern "C" fn(*mut T, usize) -> hone_status) -> T {
    let mut made = std::mem::MaybeUninit::<T>::zeroed();
    let status = unsafe { initialize(made.as_mut_ptr(), std::mem::size_of::<T>()) };
    // A library that is older than this crate, and has a shorter struct, takes ours, too.
    assert_eq!(status, HONE_OK, "libhone does not know {}", std::any::type_name::<T>());
    unsafe { made.assume_init() }
}
