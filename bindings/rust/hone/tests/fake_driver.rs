//! The safe layer on the fake driver: HONE_CUDA_LIBRARY, HONE_NVRTC_LIBRARY and HONE_NVML_LIBRARY name it.

use hone::{
    Attention, AttentionArgs, Dtype, Linear, NormArgs, RmsNorm, Runtime, RuntimeOptions, Stream,
    TextFormat,
};
use std::os::raw::c_void;
use std::sync::Arc;

fn address(mebibyte: usize) -> *mut c_void {
    (mebibyte << 20) as *mut c_void
}

fn runtime() -> Runtime {
    Runtime::new(&RuntimeOptions { no_cache: true, ..Default::default() }).unwrap()
}

fn norm_args() -> NormArgs {
    NormArgs { x: address(1), weight: address(2), out: address(3), ..Default::default() }
}

#[test]
fn a_norm_is_prepared_explained_and_run() {
    let runtime = runtime();
    let norm = RmsNorm { hidden: 4096, max_rows: 64, ..Default::default() };
    assert_eq!(norm.dtype, Dtype::Bf16);
    let prepared = norm.prepare(&runtime).unwrap();
    unsafe { prepared.run(Stream::default(), &norm_args(), 16).unwrap() };
    let counters = runtime.counters().unwrap();
    assert_eq!(counters.prepares, 1);
    let runs = counters.runs_exact + counters.runs_neighbour + counters.runs_foreign;
    assert_eq!(runs + counters.runs_fallback, 1);
    assert_eq!(prepared.workspace_bytes(16).unwrap(), 0);
    assert!(norm.explain(&runtime, 16, TextFormat::Text).unwrap().contains("rmsnorm"));
    assert!(prepared.report(TextFormat::Json).unwrap().starts_with('{'));
    assert!(!runtime.device_name().is_empty());
}

#[test]
fn sizes_of_several_dimensions() {
    let runtime = runtime();
    let attention = Attention {
        heads: 8,
        kv_heads: 2,
        head_dim: 64,
        max_batch: 2,
        max_q_len: 1,
        max_kv_len: 128,
        ..Default::default()
    };
    let prepared = attention.prepare(&runtime).unwrap();
    assert!(prepared.workspace_bytes(2, 1, 128).is_ok());
    let args = AttentionArgs {
        q: address(1),
        k: address(2),
        v: address(3),
        out: address(4),
        workspace: address(5),
        ..Default::default()
    };
    unsafe { prepared.run(Stream::default(), &args, 2, 1, 128).unwrap() };
}

#[test]
fn errors_have_the_librarys_words() {
    let runtime = runtime();
    let error = Linear { in_features: -1, ..Default::default() }.prepare(&runtime).unwrap_err();
    assert_eq!(error.status, hone_sys::HONE_BAD_ARGUMENT);
    assert!(error.to_string().contains("in"), "{error}");
    let prepared = RmsNorm { hidden: 64, ..Default::default() }.prepare(&runtime).unwrap();
    let args = NormArgs { x: std::ptr::null(), ..norm_args() };
    let error = unsafe { prepared.run(Stream::default(), &args, 1) }.unwrap_err();
    assert_eq!(error.status, hone_sys::HONE_NULL_POINTER);
    let error = Runtime::new(&RuntimeOptions { device: 99, ..Default::default() }).unwrap_err();
    assert_eq!(error.status, hone_sys::HONE_NO_GPU);
    let name = Some("zero\0byte".into());
    let error = Runtime::new(&RuntimeOptions { cache_file: name, ..Default::default() });
    assert!(error.unwrap_err().message.contains("cache_file"));
}

#[test]
fn a_frozen_runtime_compiles_nothing() {
    let runtime = runtime();
    runtime.freeze().unwrap();
    let error = RmsNorm { hidden: 512, ..Default::default() }.prepare(&runtime).unwrap_err();
    assert_eq!(error.status, hone_sys::HONE_FROZEN);
}

#[test]
fn handles_are_used_by_many_threads_and_outlive_the_runtime() {
    let runtime = runtime();
    let norm = RmsNorm { hidden: 1024, max_rows: 64, ..Default::default() };
    let prepared = Arc::new(norm.prepare(&runtime).unwrap());
    drop(runtime);
    let threads: Vec<_> = (1..5)
        .map(|rows| {
            let prepared = prepared.clone();
            std::thread::spawn(move || unsafe {
                (0..100).all(|_| prepared.run(Stream::default(), &norm_args(), rows).is_ok())
            })
        })
        .collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
}

extern "C" {
    fn fork() -> i32;
    fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(code: i32) -> !;
}

#[test]
fn an_inherited_runtime_answers_in_a_child_of_fork() {
    let runtime = runtime();
    let child = unsafe { fork() };
    if child == 0 {
        let is_refused = runtime.freeze().map_err(|e| e.status) == Err(hone_sys::HONE_FORKED);
        let is_right = is_refused && runtime.device_name().is_empty();
        unsafe { _exit(if is_right { 0 } else { 1 }) }
    }
    let mut status = 0;
    assert_eq!(unsafe { waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
}

#[test]
fn the_version_is_the_crates() {
    assert_eq!(hone::version(), env!("CARGO_PKG_VERSION"));
}
