//! RMSNorm of rows that are on the device already: `rms_norm X WEIGHT OUT ROWS`, addresses in hexadecimal.

use hone::{NormArgs, Result, RmsNorm, Runtime, RuntimeOptions, Stream};
use std::os::raw::c_void;

fn enqueue(x: *const c_void, weight: *const c_void, out: *mut c_void, rows: i64) -> Result<()> {
    let runtime = Runtime::new(&RuntimeOptions::default())?;
    let norm = RmsNorm { hidden: 4096, max_rows: 512, ..Default::default() }.prepare(&runtime)?;
    let args = NormArgs { x, weight, out, ..Default::default() };
    unsafe { norm.run(Stream::default(), &args, rows) }
}

fn main() {
    let given: Vec<usize> =
        std::env::args().skip(1).filter_map(|word| usize::from_str_radix(&word, 16).ok()).collect();
    match given[..] {
        [x, weight, out, rows] => {
            if let Err(error) = enqueue(x as _, weight as _, out as _, rows as i64) {
                eprintln!("rms_norm: {error}");
                std::process::exit(1);
            }
        }
        _ => {
            eprintln!("usage: rms_norm X WEIGHT OUT ROWS, in hexadecimal");
            std::process::exit(2);
        }
    }
}
