//! Without NVRTC, every entry returns an error that lists the names tried. These tests run everywhere.

use std::ffi::OsStr;

use libtest_mimic::Trial;

use crate::{children, test};

pub fn tests() -> Vec<Trial> {
    vec![test("absent::every_entry_says_what_was_tried", || {
        let folder = tempfile::tempdir()?;
        let none = OsStr::new("none");
        let variables = [
            ("SELVEDGE_LIBNVRTC", none),
            ("FOLDER", folder.path().as_os_str()),
            ("SELVEDGE_CACHE", folder.path().as_os_str()),
        ];
        let text = children::run("absent", &variables);
        assert_eq!(text.lines().count(), 7, "{text}");
        for line in text.lines() {
            assert!(line.contains("NVRTC could not be loaded; tried:"), "{line}");
            assert!(line.contains("SELVEDGE_LIBNVRTC"), "{line}");
        }
        Ok(())
    })]
}
