//! Finds libhone: in HONE_LIB_DIR, else where pkg-config says, else where the linker looks.

use std::env;
use std::process::Command;

fn folder_of_pkg_config() -> Option<String> {
    let told = Command::new("pkg-config").args(["--variable=libdir", "hone"]).output().ok()?;
    let folder = String::from_utf8(told.stdout).ok()?.trim().to_string();
    (told.status.success() && !folder.is_empty()).then(|| folder)
}

fn main() {
    println!("cargo:rerun-if-env-changed=HONE_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    if let Some(folder) = env::var("HONE_LIB_DIR").ok().or_else(folder_of_pkg_config) {
        println!("cargo:rustc-link-search=native={folder}");
    }
    println!("cargo:rustc-link-lib=dylib=hone");
}
