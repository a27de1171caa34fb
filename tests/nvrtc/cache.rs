//! The cache: what is found in it and what is not, and that nothing which happens to its folder reaches a compilation.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use selvedge::Error;
use selvedge::nvrtc::{Cache, Compiled, Program, Target};

use crate::compile::sm_80;
use crate::{children, logged, test};

pub fn tests() -> Vec<Trial> {
    vec![
        test("cache::the_second_time_it_is_there", || Ok(second_time()?)),
        test("cache::what_is_compiled_anew_takes_its_place", || Ok(anew()?)),
        test("cache::everything_that_decides_counts", || Ok(everything_counts()?)),
        test("cache::files_that_are_included_count", || Ok(included_files_count()?)),
        test("cache::the_compiler_counts", || Ok(compiler_counts()?)),
        test("cache::a_hit_does_not_load_nvrtc", || Ok(hit_does_not_load()?)),
        test("cache::failures_are_not_cached", || Ok(failures_are_not_cached()?)),
        test("cache::damaged_entries_are_made_again", || Ok(damaged_entries()?)),
        test("cache::what_was_used_longest_ago_goes", || Ok(longest_ago_goes()?)),
        test("cache::clear_leaves_what_is_not_ours", || Ok(clear()?)),
        test("cache::the_environment_places_it", || Ok(environment()?)),
        test("cache::a_folder_that_cannot_be", || Ok(impossible_folder()?)),
    ]
}

/// A program that is unlike those of other numbers.
pub fn numbered(number: u32) -> Program {
    let source = format!("extern \"C\" __global__ void kernel_{number}(int *x) {{ *x = {number}; }}");
    Program::new("numbered.cu", source)
}

/// The files of a cache.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Returns whether the cache holds the program.
fn is_cached(program: &Program, target: Target, cache: &Cache) -> selvedge::Result<bool> {
    Ok(program.compile(target, cache)?.is_from_cache())
}

fn second_time() -> selvedge::Result<()> {
    let folder = folder();
    let cache = Cache::at(folder.path().join("made/when/needed"));
    let source = "template <typename T> __global__ void f(T *x) { int unused; *x = 1; }";
    let program = Program::new("f.cu", source).expression("f<int>").expression("f<float>");
    let first = program.compile(sm_80(), &cache)?;
    assert!(!first.is_from_cache());
    // Another cache of the same folder, as another process has it.
    for cache in [cache.clone(), Cache::at(folder.path().join("made/when/needed"))] {
        let again = program.compile(sm_80(), &cache)?;
        assert!(again.is_from_cache());
        assert_eq!(again.image(), first.image());
        assert_eq!(again.lowered_names(), first.lowered_names());
        assert_eq!((again.log(), again.target()), (first.log(), first.target()));
        assert!(again.log().contains("unused"));
    }
    let held = cache.statistics()?;
    assert_eq!((held.entries, held.limit), (1, Cache::LIMIT));
    assert!(held.bytes > first.image().len() as u64);
    assert!(!program.compile(sm_80(), &Cache::none())?.is_from_cache());
    Ok(())
}

fn anew() -> selvedge::Result<()> {
    let folder = folder();
    let cache = Cache::at(folder.path());
    let written = || files(folder.path())[0].metadata().and_then(|file| file.created()).expect("a time");
    assert!(!numbered(1).compile(sm_80(), &cache)?.is_from_cache());
    let first = written();
    assert!(!numbered(1).compile_anew(sm_80(), &cache)?.is_from_cache());
    assert!(written() > first, "the entry is the old one");
    assert!(is_cached(&numbered(1), sm_80(), &cache)?);
    assert_eq!(files(folder.path()).len(), 1);
    Ok(())
}

fn everything_counts() -> selvedge::Result<()> {
    let folder = folder();
    let cache = Cache::at(folder.path());
    let base = || numbered(0).header("a.h", "int a;");
    let compute: Target = "compute_80".parse()?;
    let other: Target = "sm_90".parse()?;
    let source = "extern \"C\" __global__ void kernel_0(int *x) { *x = 0; }";
    let variants = [
        (base(), sm_80()),
        (base(), compute),
        (base(), other),
        (numbered(1).header("a.h", "int a;"), sm_80()),
        (Program::new("other.cu", source).header("a.h", "int a;"), sm_80()),
        (base().header("a.h", "int b;"), sm_80()),
        (base().header("b.h", "int a;"), sm_80()),
        (numbered(0), sm_80()),
        (numbered(0).header("stdint.h", ""), sm_80()),
        (base().option("--fmad=false"), sm_80()),
        (base().option("--fmad=true"), sm_80()),
        (base().define("A", 1), sm_80()),
        (base().define("A", 12), sm_80()),
        (base().expression("kernel_0"), sm_80()),
    ];
    for (index, (program, target)) in variants.iter().enumerate() {
        assert!(!is_cached(program, *target, &cache)?, "variant {index} was taken for another");
    }
    for (index, (program, target)) in variants.iter().enumerate() {
        assert!(is_cached(program, *target, &cache)?, "variant {index}");
    }
    assert_eq!(cache.statistics()?.entries, variants.len() as u64);
    Ok(())
}

fn included_files_count() -> selvedge::Result<()> {
    let folder = folder();
    let cache = Cache::at(folder.path().join("cache"));
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("second/outer.h", "#include \"deep/value.h\"\n");
    write("second/deep/value.h", "#define VALUE 1\n");
    let program = Program::new(
        folder.path().join("f.cu").display().to_string(),
        "#include <outer.h>\nextern \"C\" __global__ void f(int *x) { *x = VALUE; }",
    );
    let program = ["first", "second"].iter().fold(program, |program, name| {
        program.option(format!("--include-path={}", folder.path().join(name).display()))
    });
    let image = |cached: bool| {
        let compiled = program.compile("compute_80".parse()?, &cache)?;
        assert_eq!(compiled.is_from_cache(), cached);
        Ok::<_, Error>(String::from_utf8_lossy(compiled.image()).into_owned())
    };
    let one = image(false)?;
    assert_eq!(image(true)?, one);
    write("second/deep/value.h", "#define VALUE 2\n");
    assert!(image(false)?.contains(", 2;"));
    // A file that comes before it in the search.
    write("first/outer.h", "#define VALUE 3\n");
    let three = image(false)?;
    assert!(three.contains(", 3;"), "{three}");
    write("second/deep/value.h", "#define VALUE 1\n");
    fs::remove_file(folder.path().join("first/outer.h")).unwrap();
    assert_eq!(image(true)?, one);
    // If the included files are unknown, nothing is cached.
    let unknown = Program::new("f.cu", "#define WHICH <selvedge/half.cuh>\n#include WHICH\n");
    assert!(!is_cached(&unknown, sm_80(), &cache)? && !is_cached(&unknown, sm_80(), &cache)?);
    Ok(())
}

fn compiler_counts() -> selvedge::Result<()> {
    let folder = folder();
    let file = selvedge::sys::nvrtc()?.loaded.path.clone();
    let (library, name) = (Path::new(&file), Path::new(&file).file_name().expect("a name"));
    let beside = library.parent().expect("a folder");
    // Another place with the same library is another compiler, a link to it is the same.
    let (copy, link) = (folder.path().join("copy"), folder.path().join("link"));
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(beside).expect("NVRTC's folder").flatten() {
        let (from, to) = (entry.path(), copy.join(entry.file_name()));
        if entry.file_name().to_string_lossy().starts_with("libnvrtc") && fs::hard_link(&from, &to).is_err() {
            fs::copy(from, to).expect("a copy");
        }
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(beside, &link).unwrap();
    let cache = folder.path().join("cache");
    let cached = |library: &Path| {
        let variables = [("SELVEDGE_LIBNVRTC", library.as_os_str()), ("FOLDER", cache.as_os_str())];
        children::run("compile", &variables).lines().filter(|line| *line == "cached: true").count()
    };
    assert_eq!(cached(library), 0);
    assert_eq!(cached(library), 1);
    assert_eq!(cached(&link.join(name)), 1);
    assert_eq!(cached(&copy.join(name)), 0);
    assert_eq!(cached(&copy.join(name)), 1);
    Ok(())
}

fn hit_does_not_load() -> selvedge::Result<()> {
    let folder = folder();
    let variables = [("FOLDER", folder.path().as_os_str())];
    let first = children::run("compile", &variables);
    assert!(first.contains("NVRTC is loaded: true") && first.contains("cached: false"), "{first}");
    let second = children::run("compile", &variables);
    assert!(second.contains("NVRTC is loaded: false") && second.contains("cached: true"), "{second}");
    // The same, found otherwise: by the linker.
    let file = selvedge::sys::nvrtc()?.loaded.path.clone();
    let beside = Path::new(&file).parent().expect("a folder");
    let empty = std::ffi::OsStr::new("");
    let variables = [
        ("FOLDER", folder.path().as_os_str()),
        ("SELVEDGE_LIBNVRTC", empty),
        ("VIRTUAL_ENV", empty),
        ("CONDA_PREFIX", empty),
        ("LD_LIBRARY_PATH", beside.as_os_str()),
    ];
    let third = children::run("compile", &variables);
    assert!(third.contains("NVRTC is loaded: false") && third.contains("cached: true"), "{third}");
    Ok(())
}

fn failures_are_not_cached() -> selvedge::Result<()> {
    let folder = folder();
    let cache = Cache::at(folder.path());
    for _ in 0..2 {
        assert!(matches!(
            Program::new("f.cu", "wrong").compile(sm_80(), &cache),
            Err(Error::Compilation { .. })
        ));
    }
    assert_eq!(cache.statistics()?.entries, 0);
    Ok(())
}

fn damaged_entries() -> selvedge::Result<()> {
    let folder = folder();
    let cache = Cache::at(folder.path());
    assert!(!is_cached(&numbered(0), sm_80(), &cache)?);
    // 12.0 does not write the same bytes twice: names that it makes up are in them.
    let is_right = |compiled: &Compiled| {
        let image = compiled.image();
        image.starts_with(b"\x7fELF") && image.windows(8).any(|window| window == b"kernel_0")
    };
    let path = files(folder.path()).remove(0);
    let bytes = fs::read(&path).unwrap();
    numbered(1).compile(sm_80(), &cache)?;
    let other = files(folder.path()).into_iter().find(|file| *file != path).unwrap();
    let other = fs::read(other).unwrap();
    let mut flipped = bytes.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x10;
    for (what, damaged, said) in [
        ("empty", Vec::new(), "it is empty"),
        ("cut in its head", bytes[..40].to_vec(), "it ends early"),
        ("cut", bytes[..bytes.len() - 1].to_vec(), "its checksum"),
        ("a bit", flipped, "its checksum"),
        ("another's", other, "it is of another key"),
        ("of another program", b"#!/bin/sh\n".repeat(20), "it begins with something else"),
        ("longer", [bytes.as_slice(), b"more"].concat(), "its checksum"),
    ] {
        fs::write(&path, damaged).unwrap();
        let again = numbered(0).compile(sm_80(), &cache)?;
        assert!(!again.is_from_cache(), "{what}");
        assert!(is_right(&again), "{what}");
        let log = logged(&folder.path().display().to_string());
        assert!(
            log.last().is_some_and(|line| line.contains("is made again") && line.contains(said)),
            "{what}: {log:?}"
        );
        let cached = numbered(0).compile(sm_80(), &cache)?;
        assert!(cached.is_from_cache() && cached.image() == again.image(), "{what}");
    }
    // A folder in the place of an entry stays there and is reported.
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(!is_cached(&numbered(0), sm_80(), &cache)?);
    let log = logged(&folder.path().display().to_string());
    assert!(log.iter().rev().take(2).any(|line| line.contains("cannot be read")), "{log:?}");
    assert!(log.last().is_some_and(|line| line.contains("is not cached")), "{log:?}");
    Ok(())
}

fn longest_ago_goes() -> selvedge::Result<()> {
    let folder = folder();
    numbered(0).compile(sm_80(), &Cache::at(folder.path()))?;
    let bytes = Cache::at(folder.path()).statistics()?.bytes;
    // The limit holds three entries and a half. Eviction leaves nine tenths of it.
    let cache = Cache::at(folder.path()).with_limit(bytes * 7 / 2);
    for number in [1, 2] {
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!is_cached(&numbered(number), sm_80(), &cache)?);
    }
    assert_eq!(cache.statistics()?.entries, 3);
    assert!(is_cached(&numbered(0), sm_80(), &cache)?, "and is used last now");
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert!(!is_cached(&numbered(3), sm_80(), &cache)?);
    assert_eq!(cache.statistics()?.entries, 3);
    for (number, cached) in [(0, true), (2, true), (3, true), (1, false)] {
        assert_eq!(is_cached(&numbered(number), sm_80(), &cache)?, cached, "{number}");
    }
    assert!(cache.statistics()?.bytes <= cache.statistics()?.limit);
    // An entry that is larger than the limit.
    let small = Cache::at(folder.path().join("small")).with_limit(100);
    assert!(!is_cached(&numbered(0), sm_80(), &small)? && !is_cached(&numbered(0), sm_80(), &small)?);
    assert_eq!(small.statistics()?.entries, 0);
    Ok(())
}

fn clear() -> selvedge::Result<()> {
    let folder = folder();
    let cache = Cache::at(folder.path());
    assert_eq!(cache.clear()?.entries, 0);
    numbered(0).compile(sm_80(), &cache)?;
    let notes = folder.path().join("notes.txt");
    fs::write(&notes, "mine").unwrap();
    let held = cache.statistics()?;
    assert_eq!(cache.clear()?, held);
    assert_eq!(files(folder.path()), [notes]);
    assert!(!is_cached(&numbered(0), sm_80(), &cache)?);
    assert_eq!(cache.statistics()?, held);
    assert_eq!(Cache::none().statistics()?.entries, 0);
    assert_eq!(Cache::none().clear()?.entries, 0);
    Ok(())
}

fn environment() -> selvedge::Result<()> {
    let folder = folder();
    let home = folder.path().as_os_str();
    let os = std::ffi::OsStr::new;
    let run = |variables: &[(&str, &std::ffi::OsStr)]| {
        let unset =
            ["SELVEDGE_CACHE", "SELVEDGE_CACHE_LIMIT", "XDG_CACHE_HOME", "HOME"].map(|name| (name, os("")));
        children::run("standard", &[&unset[..], variables].concat())
    };
    let text = run(&[("HOME", home)]);
    assert!(text.contains(&format!("folder {}/.cache/selvedge", home.to_string_lossy())), "{text}");
    assert!(text.contains("entries: 1, ") && text.contains("limit: 1073741824"), "{text}");
    let text = run(&[("XDG_CACHE_HOME", home), ("HOME", os("/nowhere")), ("SELVEDGE_CACHE_LIMIT", os("2M"))]);
    assert!(text.contains(&format!("folder {}/selvedge", home.to_string_lossy())), "{text}");
    assert!(text.contains("limit: 2097152"), "{text}");
    let text = run(&[("SELVEDGE_CACHE", home), ("HOME", os("/nowhere"))]);
    assert!(text.contains(&format!("folder {}\n", home.to_string_lossy())), "{text}");
    let text = run(&[("SELVEDGE_CACHE", os("none")), ("HOME", home)]);
    assert!(text.contains("folder -") && text.contains("entries: 0"), "{text}");
    assert!(!text.contains("warned"), "{text}");
    for (variable, value) in [("SELVEDGE_CACHE", "relative"), ("SELVEDGE_CACHE_LIMIT", "much")] {
        let text = run(&[("HOME", home), (variable, os(value))]);
        assert!(text.contains("compiled") && text.contains("folder -"), "{text}");
        assert!(text.contains(&format!("warned nothing is cached: {variable} is '{value}'")), "{text}");
        assert!(text.contains(&format!("error {variable}: found '{value}'")), "{text}");
    }
    Ok(())
}

fn impossible_folder() -> selvedge::Result<()> {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for place in
        [file.clone(), file.join("below"), PathBuf::from("/proc/nowhere/cache"), PathBuf::from("/dev/full")]
    {
        let cache = Cache::at(&place);
        assert!(
            !is_cached(&numbered(0), sm_80(), &cache)? && !is_cached(&numbered(0), sm_80(), &cache)?,
            "{place:?}"
        );
        let log = logged(&place.display().to_string());
        assert!(log.iter().any(|line| line.contains("an image is not cached")), "{place:?}: {log:?}");
    }
    assert!(Cache::at(&file).statistics().is_err());
    assert!(Cache::at(&file).clear().unwrap_err().to_string().contains(&file.display().to_string()));
    Ok(())
}
