//! Tuned CUDA kernels from Rust: describe an operator, prepare it once, enqueue it as often as you like.
//!
//! ```no_run
//! # fn main() -> hone::Result<()> {
//! let runtime = hone::Runtime::new(&hone::RuntimeOptions::default())?;
//! let norm = hone::RmsNorm { hidden: 4096, ..Default::default() }.prepare(&runtime)?;
//! let (x, weight, out) = (0x1000 as _, 0x2000 as _, 0x3000 as _); // addresses on the device
//! let args = hone::NormArgs { x, weight, out, ..Default::default() };
//! unsafe { norm.run(hone::Stream::default(), &args, 16)? };
//! # Ok(())
//! # }
//! ```
//!
//! Handles may be used by many threads at once. A run takes no lock, allocates nothing and is safe under stream
//! capture. It is `unsafe`, since it reads and writes device memory at the addresses it is given.

#![allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags)]

#[rustfmt::skip]
mod operators;

pub use operators::*;

use hone_sys as sys;
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::{c_char, c_void};
use std::path::PathBuf;
use std::ptr::null_mut;

/// Why a call did nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// One of the numbers of hone.h: `hone_sys::HONE_BAD_ARGUMENT`, ...
    pub status: i32,
    /// What is wrong, what is allowed, and what to do.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

pub type Result<T> = std::result::Result<T, Error>;

/// "" where there is none.
unsafe fn text_at(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    CStr::from_ptr(text).to_string_lossy().into_owned()
}

/// The library's own words for what this thread's last call returned.
pub(crate) fn check(status: sys::hone_status) -> Result<()> {
    if status == sys::HONE_OK {
        return Ok(());
    }
    let message = unsafe { text_at(sys::hone_last_error()) };
    Err(Error { status, message })
}

/// "0.1.0", of the library.
pub fn version() -> String {
    unsafe { text_at(sys::hone_version()) }
}

/// A stream of CUDA: a `CUstream` or `cudaStream_t`. The default one is null.
#[derive(Clone, Copy, Debug)]
pub struct Stream(pub *mut c_void);

impl Default for Stream {
    fn default() -> Self {
        Stream(null_mut())
    }
}

/// How reports and explanations are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// Lines for people.
    Text = 0,
    /// One object; docs/json-output.md lists its members.
    Json = 1,
}

/// What a runtime is made with.
#[derive(Clone, Debug, Default)]
pub struct RuntimeOptions {
    /// As the CUDA driver counts, that is, after CUDA_VISIBLE_DEVICES.
    pub device: i32,
    /// Tuning results and images; None: HONE_CACHE, else the user's cache folder.
    pub cache_file: Option<PathBuf>,
    /// Counts the calls of each problem and adds the counts to this file, for `hone tune --captured FILE`; None:
    /// HONE_CAPTURE, else nothing is captured.
    pub capture_file: Option<PathBuf>,
    /// No file is read or written: only the results that Hone was shipped with are known.
    pub no_cache: bool,
    /// As if `freeze()` had been called at once.
    pub no_compile: bool,
    /// For debugging: indices on the device are looked at before each call, which waits for the stream.
    pub check_indices: bool,
}

impl RuntimeOptions {
    fn flags(&self) -> u32 {
        let chosen = [
            (self.no_cache, sys::HONE_NO_CACHE),
            (self.no_compile, sys::HONE_NO_COMPILE),
            (self.check_indices, sys::HONE_CHECK_INDICES),
        ];
        chosen.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum()
    }
}

/// The path of an option for C.
fn file_name(option: &str, file: &Option<PathBuf>) -> Result<Option<CString>> {
    let path = match file {
        Some(path) => path,
        None => return Ok(None),
    };
    let name = path.to_str().and_then(|text| CString::new(text).ok());
    name.map(Some).ok_or_else(|| Error {
        status: sys::HONE_BAD_ARGUMENT,
        message: format!("{option} is {path:?}; allowed: UTF-8 without a zero byte"),
    })
}

/// Driver, compiler and tuning results of one GPU.
#[derive(Debug)]
pub struct Runtime(*mut sys::hone_runtime);

// "Every function may be called from any thread; a handle may be used by many at once" (hone.h).
unsafe impl Send for Runtime {}
unsafe impl Sync for Runtime {}

impl Runtime {
    /// Loads the driver, retains the device's primary context, and reads the tuning results once.
    pub fn new(options: &RuntimeOptions) -> Result<Runtime> {
        let cache_file = file_name("cache_file", &options.cache_file)?;
        let capture_file = file_name("capture_file", &options.capture_file)?;
        let given = sys::hone_runtime_options {
            flags: options.flags(),
            device: options.device,
            cache_file: cache_file.as_ref().map_or(std::ptr::null(), |name| name.as_ptr()),
            capture_file: capture_file.as_ref().map_or(std::ptr::null(), |name| name.as_ptr()),
            ..Default::default()
        };
        let mut made = null_mut();
        check(unsafe { sys::hone_runtime_create(&given, &mut made) })?;
        Ok(Runtime(made))
    }

    /// From now on a prepare that would have to compile is an error.
    pub fn freeze(&self) -> Result<()> {
        check(unsafe { sys::hone_runtime_freeze(self.0) })
    }

    /// "NVIDIA H100 80GB HBM3"; "" in a child of fork(), which must make its own runtime.
    pub fn device_name(&self) -> String {
        unsafe { text_at(sys::hone_runtime_device_name(self.0)) }
    }

    /// What happened since the runtime was made.
    pub fn counters(&self) -> Result<sys::hone_counters> {
        let mut counters = sys::hone_counters::default();
        check(unsafe { sys::hone_runtime_counters(self.0, &mut counters) })?;
        Ok(counters)
    }

    /// Bytes of device memory that [`Runtime::quantize_weights`] needs as its workspace for `out` rows.
    pub fn quantize_weights_workspace(&self, weights: &QuantizeWeights, out: i64) -> Result<usize> {
        let mut bytes = 0;
        check(unsafe {
            sys::hone_quantize_weights_workspace(self.0, &weights.to_c(), out, &mut bytes)
        })?;
        Ok(bytes)
    }

    /// Quantizes `out` rows on the device and, unlike runs, waits until that is done.
    ///
    /// # Safety
    /// As for the `run()` of operators.
    pub unsafe fn quantize_weights(
        &self,
        weights: &QuantizeWeights,
        stream: Stream,
        args: &QuantizeWeightsArgs,
        out: i64,
    ) -> Result<()> {
        check(sys::hone_quantize_weights_on_device(self.0, &weights.to_c(), args, out, stream.0))
    }

    pub(crate) fn prepare(
        &self,
        call: impl FnOnce(*mut sys::hone_runtime, *mut *mut sys::hone_operator) -> sys::hone_status,
    ) -> Result<Prepared> {
        let mut op = null_mut();
        check(call(self.0, &mut op))?;
        Ok(Prepared(op))
    }

    pub(crate) fn explain(
        &self,
        call: impl Fn(*const sys::hone_runtime, *mut c_char, usize, *mut usize) -> sys::hone_status,
    ) -> Result<String> {
        whole_text(|text, capacity, length| call(self.0, text, capacity, length))
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        unsafe { sys::hone_runtime_destroy(self.0) }
    }
}

/// Asks for the length of a text first.
fn whole_text(call: impl Fn(*mut c_char, usize, *mut usize) -> sys::hone_status) -> Result<String> {
    let mut length = 0;
    check(call(null_mut(), 0, &mut length))?;
    let mut text = vec![0u8; length + 1];
    check(call(text.as_mut_ptr() as *mut c_char, text.len(), &mut length))?;
    text.truncate(length.min(text.len() - 1));
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// What all prepared operators are. No run of one may be under way when it is dropped; what runs have enqueued
/// may.
#[derive(Debug)]
pub(crate) struct Prepared(*mut sys::hone_operator);

unsafe impl Send for Prepared {}
unsafe impl Sync for Prepared {}

impl Prepared {
    pub(crate) fn op(&self) -> *const sys::hone_operator {
        self.0
    }

    pub(crate) fn report(&self, format: TextFormat) -> Result<String> {
        whole_text(|text, capacity, length| unsafe {
            sys::hone_operator_report(self.0, format as i32, text, capacity, length)
        })
    }

    pub(crate) fn workspace(
        &self,
        call: impl FnOnce(*const sys::hone_operator, *mut usize) -> sys::hone_status,
    ) -> Result<usize> {
        let mut bytes = 0;
        check(call(self.0, &mut bytes))?;
        Ok(bytes)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        unsafe { sys::hone_operator_destroy(self.0) }
    }
}
