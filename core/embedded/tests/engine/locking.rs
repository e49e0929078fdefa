//! Tests that a data directory has one gateway.

use windrow_embedded::{DataDirLock, LockError};

use crate::support::DataDir;

#[test]
fn a_second_gateway_is_refused_with_a_sentence() {
    let data = DataDir::new();
    let first = DataDirLock::acquire(&data.0).expect("the first");
    assert_eq!((data.mode(""), data.mode("lock")), (0o700, 0o600));
    let error = DataDirLock::acquire(&data.0).expect_err("the second");
    assert!(matches!(&error, LockError::Held { pid: Some(pid), .. } if *pid == std::process::id()), "{error:?}");
    let sentence = error.to_string();
    assert!(sentence.contains(&data.0.display().to_string()), "{sentence}");
    assert!(sentence.contains(&std::process::id().to_string()), "{sentence}");
    drop(first);
    DataDirLock::acquire(&data.0).expect("free again");
}

#[test]
fn a_lock_file_that_holds_anything_else_is_no_obstacle() {
    let data = DataDir::new();
    std::fs::create_dir_all(&data.0).expect("a folder");
    std::fs::write(data.0.join("lock"), b"\xff\xfenot a pid, and rather long for one at that").expect("a file");
    let _first = DataDirLock::acquire(&data.0).expect("nobody holds it");
    std::fs::write(data.0.join("lock"), "nonsense").expect("a file");
    let error = DataDirLock::acquire(&data.0).expect_err("held");
    assert!(matches!(error, LockError::Held { pid: None, .. }), "{error:?}");
}
