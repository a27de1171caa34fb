//! Damage to a cache from outside: other processes, killed processes, a full disk, missing permissions.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use libtest_mimic::Trial;
use selvedge::nvrtc::Cache;

use crate::cache::{files, numbered};
use crate::compile::sm_80;
use crate::{children, test};

pub fn tests() -> Vec<Trial> {
    vec![
        test("mishaps::eight_processes_share_a_folder", || Ok(eight_processes()?)),
        test("mishaps::ended_in_the_middle_of_writing", || Ok(ended_while_writing()?)),
        test("mishaps::killed_while_writing", || Ok(killed()?)),
        test("mishaps::files_may_not_grow", || Ok(files_may_not_grow()?)),
        test("mishaps::the_disk_is_full", || Ok(full_disk()?)),
        test("mishaps::the_folder_is_read_only", || Ok(read_only()?)),
    ]
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Returns the output of a child, which must exit with 0.
fn output(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{text}", output.status);
    text
}

fn eight_processes() -> selvedge::Result<()> {
    let folder = folder();
    // Each compiles the same programs in another order, and the last clears the folder again and again.
    let start = |number: u32, case: &str| {
        let mut command = children::child(case);
        command.env("FOLDER", folder.path()).env("FIRST", number.to_string());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let mut all: Vec<_> = (0..8).map(|number| start(number, "share")).collect();
    all.push(start(0, "clear"));
    for child in all {
        let output = child.wait_with_output().expect("it ends");
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && text.contains("all are right"), "{}\n{text}", output.status);
        assert!(!text.contains("warned"), "{text}");
    }
    let cache = Cache::at(folder.path());
    for number in 0..8 {
        numbered(number).compile(sm_80(), &cache)?;
    }
    assert_eq!(cache.statistics()?.entries, 8);
    assert_eq!(files(folder.path()).len(), 8, "no unfinished file is left");
    Ok(())
}

/// The files that a writer left unfinished.
fn unfinished(folder: &Path) -> Vec<PathBuf> {
    let mut files = files(folder);
    files.retain(|file| file.extension().is_some_and(|ending| ending == "new"));
    files
}

/// Checks a cache after a writer died: the name of an entry has a whole one or none, the next process compiles as ever,
/// and old temporary files are removed.
fn survives(folder: &Path) -> selvedge::Result<()> {
    let left = unfinished(folder);
    let finished = files(folder).len() - left.len();
    let text = output(children::child("large").env("FOLDER", folder));
    assert!(text.contains("right") && !text.contains("warned"), "{text}");
    assert_eq!(text.contains("cached: true"), finished == 1, "{text}");
    assert_eq!(unfinished(folder), left, "its writer might still live");
    for file in &left {
        let file = fs::File::options().write(true).open(file).expect("our own file");
        file.set_modified(SystemTime::now() - Duration::from_secs(3600)).expect("our own file");
    }
    numbered(0).compile(sm_80(), &Cache::at(folder))?;
    assert_eq!(unfinished(folder), [] as [&Path; 0]);
    Cache::at(folder).clear()?;
    Ok(())
}

/// The system itself ends the writer, in that call of `write` which passes the limit of a file's length.
fn ended_while_writing() -> selvedge::Result<()> {
    let folder = folder();
    let program = std::env::current_exe().expect("the path of a running program");
    for blocks in [1, 64, 2000] {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -c 0; ulimit -f {blocks}; exec \"$0\"")]).arg(&program);
        // A driver on the machine would reach the limit by its own cache first.
        command.env(children::CASE, "large").env("FOLDER", folder.path()).env("CUDA_CACHE_DISABLE", "1");
        let status = command.output().expect("it starts").status;
        assert_eq!(status.signal(), Some(25), "SIGXFSZ, {status}");
        let left = unfinished(folder.path());
        assert!(left.len() == 1 && left[0].metadata().unwrap().len() > 0, "{left:?}");
        survives(folder.path())?;
    }
    Ok(())
}

/// Killed at any moment from when its file is there, or just was.
fn killed() -> selvedge::Result<()> {
    let folder = folder();
    for round in 0..6 {
        let mut child = children::child("large");
        let mut child = child.env("FOLDER", folder.path()).stdout(Stdio::null()).spawn().expect("it starts");
        while files(folder.path()).is_empty() {
            assert!(child.try_wait().expect("a child").is_none_or(|status| status.success()));
        }
        std::thread::sleep(Duration::from_micros(300 * round));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        survives(folder.path())?;
    }
    Ok(())
}

fn files_may_not_grow() -> selvedge::Result<()> {
    let folder = folder();
    // The shell ignores the signal of the limit, and what it starts inherits that: writing then fails as on a full disk.
    let program = std::env::current_exe().expect("the path of a running program");
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\""]).arg(program);
    let text = output(command.env(children::CASE, "twice").env("FOLDER", folder.path()));
    assert!(text.contains("cached: false") && !text.contains("cached: true"), "{text}");
    assert!(text.contains("warned an image is not cached"), "{text}");
    assert_eq!(files(folder.path()), [] as [&Path; 0], "nothing half is left");
    Ok(())
}

fn full_disk() -> selvedge::Result<()> {
    let folder = folder();
    let program = std::env::current_exe().expect("the path of a running program");
    let mount = "mount -t tmpfs -o size=8k none \"$FOLDER\"";
    let mut command = Command::new("unshare");
    let possible = command.args(["--mount", "sh", "-c", mount]).env("FOLDER", folder.path()).output();
    if !possible.is_ok_and(|output| output.status.success()) {
        eprintln!("no file system can be mounted here; files_may_not_grow shows the same");
        return Ok(());
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &format!("{mount} && exec \"$0\"")]).arg(program);
    let text = output(command.env(children::CASE, "twice").env("FOLDER", folder.path()));
    assert!(text.contains("cached: false") && !text.contains("cached: true"), "{text}");
    assert!(text.contains("warned an image is not cached") && text.contains("No space left"), "{text}");
    assert!(text.contains("files: 0"), "{text}");
    Ok(())
}

fn read_only() -> selvedge::Result<()> {
    let folder = folder();
    numbered(0).compile(sm_80(), &Cache::at(folder.path()))?;
    let before = files(folder.path());
    let permissions = |mode| {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(folder.path(), permissions).expect("our own folder");
    };
    permissions(0o555);
    let mut command = children::child("read-only");
    command.env("FOLDER", folder.path());
    // SAFETY: one system call between fork and exec.
    unsafe { command.pre_exec(obey_permissions) };
    let text = output(&mut command);
    permissions(0o755);
    assert!(text.contains("0 cached: true") && text.contains("1 cached: false"), "{text}");
    assert!(text.contains("warned an image is not cached") && text.contains("Permission denied"), "{text}");
    assert_eq!(files(folder.path()), before);
    Ok(())
}

/// Lets the process that is started obey permissions even where it is root's: without CAP_DAC_OVERRIDE.
fn obey_permissions() -> std::io::Result<()> {
    unsafe extern "C" {
        fn prctl(operation: i32, ...) -> i32;
        fn geteuid() -> u32;
    }
    const PR_CAPBSET_DROP: i32 = 24;
    const CAP_DAC_OVERRIDE: u64 = 1;
    // SAFETY: both take numbers alone.
    let failed =
        unsafe { geteuid() == 0 && prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0_u64, 0_u64, 0_u64) != 0 };
    if failed { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}
