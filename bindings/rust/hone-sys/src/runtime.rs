//! What does not belong to one operator.

use crate::{hone_quantize_weights, hone_quantize_weights_args, initialized};
use std::os::raw::{c_char, c_void};

/// One of the HONE_ constants: HONE_OK, HONE_BAD_ARGUMENT, ...
pub type hone_status = i32;
pub type hone_text_format = i32;

pub const HONE_TEXT: hone_text_format = 0;
pub const HONE_JSON: hone_text_format = 1;
pub const HONE_NO_CACHE: u32 = 1;
pub const HONE_NO_COMPILE: u32 = 2;
pub const HONE_CHECK_INDICES: u32 = 4;

/// Driver, compiler and tuning results of one GPU.
#[repr(C)]
pub struct hone_runtime {
    _private: [u8; 0],
}

/// A prepared operator; outlives its runtime.
#[repr(C)]
pub struct hone_operator {
    _private: [u8; 0],
}

/// `hone_runtime_options` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_runtime_options {
    pub struct_size: u32,
    pub flags: u32,
    pub device: i32,
    pub reserved: u32,
    pub cache_file: *const c_char,
    pub on_warning: Option<unsafe extern "C" fn(user: *mut c_void, text: *const c_char)>,
    pub user: *mut c_void,
    pub capture_file: *const c_char,
}

impl Default for hone_runtime_options {
    fn default() -> Self {
        initialized(hone_runtime_options_init)
    }
}

/// `hone_counters` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_counters {
    pub struct_size: u32,
    pub reserved: u32,
    pub runs_exact: u64,
    pub runs_neighbour: u64,
    pub runs_foreign: u64,
    pub runs_fallback: u64,
    pub failed_launches: u64,
    pub prepares: u64,
    pub compiles: u64,
    pub image_cache_hits: u64,
}

impl Default for hone_counters {
    fn default() -> Self {
        initialized(hone_counters_init)
    }
}

extern "C" {
    pub fn hone_version() -> *const c_char;
    pub fn hone_status_string(status: hone_status) -> *const c_char;
    pub fn hone_last_error() -> *const c_char;
    pub fn hone_schema(name: *const c_char) -> *const c_char;

    pub fn hone_runtime_options_init(
        options: *mut hone_runtime_options,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_counters_init(counters: *mut hone_counters, struct_size: usize) -> hone_status;
    pub fn hone_runtime_create(
        options: *const hone_runtime_options,
        runtime: *mut *mut hone_runtime,
    ) -> hone_status;
    pub fn hone_runtime_destroy(runtime: *mut hone_runtime);
    pub fn hone_runtime_freeze(runtime: *mut hone_runtime) -> hone_status;
    pub fn hone_runtime_device_name(runtime: *const hone_runtime) -> *const c_char;
    pub fn hone_runtime_counters(
        runtime: *const hone_runtime,
        counters: *mut hone_counters,
    ) -> hone_status;

    pub fn hone_operator_destroy(op: *mut hone_operator);
    pub fn hone_operator_report(
        op: *const hone_operator,
        format: hone_text_format,
        text: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> hone_status;
    pub fn hone_operator_workspace(
        op: *const hone_operator,
        rows: i64,
        bytes: *mut usize,
    ) -> hone_status;

    pub fn hone_quantize_weights_on_device(
        runtime: *mut hone_runtime,
        description: *const hone_quantize_weights,
        args: *const hone_quantize_weights_args,
        out: i64,
        stream: *mut c_void,
    ) -> hone_status;
    pub fn hone_quantize_weights_workspace(
        runtime: *mut hone_runtime,
        description: *const hone_quantize_weights,
        out: i64,
        bytes: *mut usize,
    ) -> hone_status;
    pub fn hone_quantize_weights_on_host(
        description: *const hone_quantize_weights,
        args: *const hone_quantize_weights_args,
        out: i64,
        threads: i32,
    ) -> hone_status;
}
