//! Every function of hone.h is declared.

use std::path::Path;

#[test]
fn every_function_is_declared() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| std::fs::read_to_string(here.join(file)).unwrap();
    let header = read("../../../runtime/hone.h");
    let declared = read("src/runtime.rs") + &read("src/operators.rs");
    let mut count = 0;
    for part in header.split("HONE_API ").skip(1) {
        let before = part.split('(').next().unwrap();
        let name = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
        if name.starts_with("hone_") {
            count += 1;
            assert!(declared.contains(&format!("pub fn {name}(")), "{name}");
        }
    }
    assert!(count > 50, "{count}");
}
