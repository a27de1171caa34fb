//! The loader, against libraries made for the purpose.
//!
//! The loader reads the environment and remembers a success for the life of the process, so each case runs in a child:
//! this same executable runs [`child`] alone, which prints the library that it found. Nothing depends on the machine's
//! installed libraries: the children get their own driver, and variables that lead elsewhere are removed.

use std::path::Path;
use std::process::Command;

use selvedge::{Error, sys};

use crate::made::{self, Driver, Folder, Lookup};

/// Runs a case in a child and gives what it printed.
fn run(case: &str, variables: &[(&str, &Path)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "loader::child", "--ignored", "--nocapture", "--test-threads=1"]);
    for variable in std::env::vars_os().map(|(name, _)| name) {
        let name = variable.to_string_lossy();
        if name.starts_with("SELVEDGE_") || name.starts_with("CUDA_") {
            command.env_remove(&variable);
        }
    }
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH"] {
        command.env_remove(name);
    }
    command.env("CASE", case).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Not a test by itself: what the children do.
#[test]
#[ignore = "run by the other tests in a process of its own"]
fn child() {
    println!(); // The harness has begun a line.
    match std::env::var("CASE").unwrap_or_default().as_str() {
        "report" => println!("{}", sys::report()),
        "driver" => match sys::driver() {
            Ok(api) => println!("ok {} {}", api.version(), api.loaded.path),
            Err(error) => {
                let kind = match &error {
                    Error::LibraryUnavailable { .. } => "LibraryUnavailable",
                    Error::NoDevice { .. } => "NoDevice",
                    Error::MissingSymbol { .. } => "MissingSymbol",
                    _ => "another kind",
                };
                println!("error {error}\nkind: {kind}");
            }
        },
        "symbols" => {
            let api = sys::driver().unwrap();
            // Each stands for a slot; a made function returns its ABI version, which is safe to ask of any of them.
            let addresses = [
                api.cuMemAlloc().map(|f| f as usize),
                api.cuMemAlloc().map(|f| f as usize),
                api.cuStreamQuery().map(|f| f as usize),
                api.cuLaunchKernelEx().map(|f| f as usize),
                api.cuLaunchKernelEx().map(|f| f as usize),
            ];
            assert_eq!(addresses[0].as_ref().unwrap(), addresses[1].as_ref().unwrap());
            for address in addresses {
                match address {
                    Ok(address) => {
                        // SAFETY: the made driver's functions take nothing and return an int.
                        let function =
                            unsafe { std::mem::transmute::<usize, extern "C" fn() -> i32>(address) };
                        println!("found {}", function());
                    }
                    Err(error) => println!("error {error}"),
                }
            }
            println!("name {:?}", sys::codes::describe(sys::driver::CUresult(4242)));
        }
        "again" => {
            let good = std::env::var_os("GOOD").unwrap();
            assert!(sys::driver().is_err());
            assert!(sys::loaded_driver().is_none());
            // SAFETY: this process runs one test on one thread.
            unsafe { std::env::set_var("SELVEDGE_LIBCUDA", good) };
            println!("second {}", sys::driver().is_ok());
            // SAFETY: as above. The process remembers a success whatever the environment says later.
            unsafe { std::env::set_var("SELVEDGE_LIBCUDA", "none") };
            println!("third {}", sys::driver().is_ok());
        }
        "nvrtc" => {
            let predicted = sys::nvrtc_file();
            let loaded = sys::nvrtc().ok().map(|api| Path::new(&api.loaded.path).to_owned());
            println!("prediction {}", if predicted == loaded { "right" } else { "wrong" });
            println!("{predicted:?} {loaded:?}");
            println!(
                "{}",
                sys::nvrtc().map_or_else(|error| error.to_string(), |api| api.loaded.path.clone())
            );
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            let builtins = maps.lines().filter(|line| line.contains("libnvrtc-builtins"));
            println!("builtins {}", builtins.count() > 0);
        }
        "loaded-before" => {
            let path = std::env::var_os("BEFORE").unwrap();
            // SAFETY: a library of ours without initialisers.
            let library = unsafe { libloading::Library::new(path) }.unwrap();
            println!("predicted {:?}", sys::nvrtc_file());
            println!("{}", sys::report());
            drop(library);
            println!("still {}", sys::nvrtc().is_ok_and(|api| api.loaded.path.contains("before")));
        }
        other => panic!("no case '{other}'"),
    }
}

fn section<'a>(report: &'a str, library: &str) -> Vec<&'a str> {
    let lines = report.lines().skip_while(|line| !line.starts_with(&format!("{library}:")));
    let mut lines = lines.peekable();
    let head = lines.next().unwrap_or_else(|| panic!("no {library} in\n{report}"));
    let rest = lines.take_while(|line| line.starts_with("  "));
    std::iter::once(head).chain(rest).collect()
}

/// The line of a report's section that holds both words.
fn has(lines: &[&str], one: &str, two: &str) -> bool {
    lines.iter().any(|line| line.contains(one) && line.contains(two))
}

#[test]
fn none_acts_as_if_nothing_were_installed() {
    let none = Path::new("none");
    let variables = [
        "SELVEDGE_LIBCUDA",
        "SELVEDGE_LIBNVRTC",
        "SELVEDGE_LIBCUBLAS",
        "SELVEDGE_LIBNCCL",
        "SELVEDGE_LIBCUPTI",
    ];
    let report = run("report", &variables.map(|name| (name, none)));
    for library in ["the NVIDIA driver", "NVRTC", "cuBLAS", "cuBLASLt", "NCCL", "CUPTI"] {
        let lines = section(&report, library);
        assert!(lines[0].ends_with("not loaded"), "{report}");
        assert_eq!(lines.len(), 2, "{report}");
        assert!(lines[1].contains("none (SELVEDGE_LIB"), "{report}");
    }
    let text = run("driver", &[("SELVEDGE_LIBCUDA", none)]);
    assert!(text.contains("the NVIDIA driver could not be loaded"), "{text}");
    assert!(text.contains("kind: LibraryUnavailable"), "{text}");
}

#[test]
fn a_missing_driver_is_an_error_that_says_what_to_do() {
    let missing = |library| selvedge::Error::LibraryUnavailable { library, tried: "  somewhere".to_owned() };
    let text = missing("the NVIDIA driver").to_string();
    let advice = missing("the NVIDIA driver").advice().unwrap();
    assert!(text.starts_with("the NVIDIA driver could not be loaded; tried:\n  somewhere\n"), "{text}");
    assert!(text.ends_with(advice), "{text}");
    if cfg!(not(windows)) {
        for part in ["container", "--gpus all", "libcuda.so.1", "package", "SELVEDGE_LIBCUDA"] {
            assert!(advice.contains(part), "{part}: {advice}");
        }
        // Of the loader itself.
        let text = run("driver", &[("SELVEDGE_LIBCUDA", Path::new("none"))]);
        assert!(text.contains("--gpus all") && text.contains("package"), "{text}");
    }
    assert_eq!(missing("NVRTC").advice(), None);
    assert!(missing("NVRTC").to_string().ends_with("somewhere"));
}

#[test]
fn relative_overrides_are_refused() {
    let report = run(
        "report",
        &[
            ("SELVEDGE_LIBCUDA", Path::new("./libcuda.so.1")),
            ("SELVEDGE_LIBNVRTC", Path::new("libnvrtc.so.12")),
        ],
    );
    assert!(
        has(&section(&report, "the NVIDIA driver"), "./libcuda.so.1", "the path is relative"),
        "{report}"
    );
    assert!(has(&section(&report, "NVRTC"), "libnvrtc.so.12", "the path is relative"), "{report}");
    assert_eq!(section(&report, "NVRTC").len(), 2, "{report}");
}

#[test]
fn an_override_is_taken_or_nothing_is() {
    let folder = Folder::new();
    let good = Driver { version: 12040, ..Driver::default() }.make(&folder.join("good"));
    let text = run("driver", &[("SELVEDGE_LIBCUDA", &good)]);
    assert!(text.contains(&format!("ok 12040 {}", good.display())), "{text}");

    let absent = folder.join("absent/libcuda.so.1");
    let text = run("driver", &[("SELVEDGE_LIBCUDA", &absent)]);
    assert!(text.contains(&format!("{} (SELVEDGE_LIBCUDA): no such file", absent.display())), "{text}");
    assert!(!text.contains("the linker"), "{text}");

    let junk = folder.join("junk.so");
    std::fs::write(&junk, "/* a linker script */ INPUT ( libcuda.so.1 )\n".repeat(4)).unwrap();
    let text = run("driver", &[("SELVEDGE_LIBCUDA", &junk)]);
    assert!(text.contains("junk.so (SELVEDGE_LIBCUDA): ") && text.contains("invalid ELF header"), "{text}");

    let other = folder.join("other.so");
    made::library(&other, "int answer(void) { return 42; }");
    let text = run("driver", &[("SELVEDGE_LIBCUDA", &other)]);
    assert!(text.contains("is no driver: it has no cuInit"), "{text}");
}

#[test]
fn a_stub_is_named_and_the_search_goes_on() {
    let folder = Folder::new();
    let stub = Driver { init: 34, ..Driver::default() }.make(folder.path());
    let text = run("driver", &[("SELVEDGE_LIBCUDA", &stub)]);
    assert!(text.contains("error the NVIDIA driver could not be loaded"), "{text}");
    assert!(text.contains("stub"), "{text}");

    // Found by the linker, as with a toolkit's stubs folder on its path; a machine with a driver may then have the real one.
    let report =
        run("report", &[("LD_LIBRARY_PATH", folder.path()), ("SELVEDGE_LIBNVRTC", Path::new("none"))]);
    let lines = section(&report, "the NVIDIA driver");
    assert!(has(&lines, "libcuda.so.1 (the linker)", "stub"), "{report}");
    assert!(
        has(&lines, "/usr/lib64/libcuda.so.1", "(system)") || lines.iter().any(|line| line.contains("  + ")),
        "{report}"
    );
}

#[test]
fn no_device_and_failed_starts_are_told_apart() {
    let folder = Folder::new();
    let empty = Driver { init: 100, version: 12040, ..Driver::default() }.make(&folder.join("empty"));
    let variables: &[(&str, &Path)] =
        &[("SELVEDGE_LIBCUDA", &empty), ("CUDA_VISIBLE_DEVICES", Path::new("-1"))];
    let text = run("driver", variables);
    assert!(text.contains("kind: NoDevice") && text.contains("CUDA_ERROR_NO_DEVICE"), "{text}");
    assert!(text.contains("CUDA_VISIBLE_DEVICES is '-1'"), "{text}");
    let report = run("report", &[("SELVEDGE_LIBCUDA", &empty)]);
    let head = section(&report, "the NVIDIA driver")[0];
    assert!(head.contains("CUDA 12.4") && head.contains("cannot be used"), "{report}");

    let broken = Driver { init: 803, ..Driver::default() }.make(&folder.join("broken"));
    let text = run("driver", &[("SELVEDGE_LIBCUDA", &broken)]);
    assert!(text.contains("cuInit failed with CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)"), "{text}");

    let unknown = Driver { init: 4243, ..Driver::default() }.make(&folder.join("unknown"));
    let text = run("driver", &[("SELVEDGE_LIBCUDA", &unknown)]);
    assert!(text.contains("4243"), "{text}");
}

#[test]
fn a_missing_required_function_is_named_at_load() {
    let folder = Folder::new();
    let old = Driver { without: vec!["cuMemHostRegister"], version: 11020, ..Driver::default() }
        .make(folder.path());
    let text = run("driver", &[("SELVEDGE_LIBCUDA", &old)]);
    assert!(
        text.contains("the NVIDIA driver CUDA 11.2 has no cuMemHostRegister: it needs CUDA 6.5"),
        "{text}"
    );
    assert!(text.contains("kind: MissingSymbol"), "{text}");
}

#[test]
fn functions_are_found_by_version_then_by_name_and_a_missing_one_is_an_error_at_its_call() {
    let cases = [(Lookup::WithStatus, 12000), (Lookup::Plain, 11080), (Lookup::Exports, 12000)];
    for (lookup, version) in cases {
        let folder = Folder::new();
        let mut driver = Driver { lookup, version, ..Driver::default() };
        let path = driver.make(&folder.join("whole"));
        let text = run("symbols", &[("SELVEDGE_LIBCUDA", &path)]);
        let found: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("found ")).collect();
        assert_eq!(found, ["3020", "3020", "2000", "11060", "11060"], "{text}");
        assert!(text.contains("name (\"CUDA_ERROR_OF_TOMORROW\""), "{text}");

        driver.without = vec!["cuLaunchKernelEx"];
        let path = driver.make(&folder.join("part"));
        let text = run("symbols", &[("SELVEDGE_LIBCUDA", &path)]);
        let error =
            format!("CUDA {} has no cuLaunchKernelEx: it needs CUDA 11.6", sys::cuda_version(version));
        assert_eq!(text.matches(&error).count(), 2, "{text}");
        let report = run("report", &[("SELVEDGE_LIBCUDA", &path)]);
        assert!(
            has(&section(&report, "the NVIDIA driver"), "has no cuLaunchKernelEx", "(CUDA 11.6)"),
            "{report}"
        );
    }
}

#[test]
fn a_failed_load_is_tried_again_and_a_success_is_kept() {
    let folder = Folder::new();
    let good = Driver::default().make(folder.path());
    let text = run("again", &[("SELVEDGE_LIBCUDA", Path::new("none")), ("GOOD", &good)]);
    assert!(text.contains("second true") && text.contains("third true"), "{text}");
}

/// A Python environment with NVRTC and cuBLAS of CUDA 12 and 13 and an NCCL.
fn environment(folder: &Folder) -> std::path::PathBuf {
    let prefix = folder.join("venv");
    let nvidia = prefix.join("lib/python3.11/site-packages/nvidia");
    made::nvrtc(&nvidia.join("cuda_nvrtc/lib"), 12, 4);
    made::nvrtc(&nvidia.join("cu13/lib"), 13, 1);
    made::cublas(&nvidia.join("cublas/lib"), [12, 9, 1], [12, 9, 1]);
    made::cublas(&nvidia.join("cu13/lib"), [13, 0, 2], [13, 0, 2]);
    made::nccl(&nvidia.join("nccl/lib"), 22707);
    prefix
}

#[test]
fn wheels_are_found_newest_first_within_what_the_driver_can_run() {
    let folder = Folder::new();
    let prefix = environment(&folder);
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        for (version, major, refusal) in
            [(13000, 13, None), (12040, 12, Some("580")), (11040, 0, Some("525"))]
        {
            let driver = Driver { version, ..Driver::default() }.make(&folder.join(&version.to_string()));
            let report = run("report", &[("SELVEDGE_LIBCUDA", &driver), (variable, &prefix)]);
            for library in ["NVRTC", "cuBLAS", "cuBLASLt"] {
                let lines = section(&report, library);
                match major {
                    13 => {
                        assert!(has(&lines[1..], "nvidia/cu13/lib/lib", "taken, 13."), "{library}: {report}")
                    }
                    12 => assert!(has(&lines[1..], "/lib/lib", "taken, 12."), "{library}: {report}"),
                    _ => assert!(!has(&lines[1..], "nvidia/", "taken"), "{library}: {report}"),
                }
                if let Some(number) = refusal {
                    assert!(
                        has(&lines, "nvidia/", &format!("needs driver {number} or newer")),
                        "{library}: {report}"
                    );
                }
            }
            let head = section(&report, "NCCL")[0];
            assert!(head.contains("2.27.7") && head.contains("nvidia/nccl/lib/libnccl.so.2"), "{report}");
        }
    }
}

#[test]
fn without_a_driver_the_newest_compiler_is_taken_with_its_builtins() {
    let folder = Folder::new();
    let prefix = environment(&folder);
    let text = run("nvrtc", &[("SELVEDGE_LIBCUDA", Path::new("none")), ("VIRTUAL_ENV", &prefix)]);
    assert!(text.contains("nvidia/cu13/lib/libnvrtc.so.13"), "{text}");
    assert!(text.contains("builtins true"), "{text}");
}

#[test]
fn the_compiler_is_known_before_it_is_loaded() {
    let folder = Folder::new();
    let prefix = environment(&folder);
    let toolkit = folder.join("toolkit");
    made::nvrtc(&toolkit.join("lib64"), 12, 9);
    let linked = folder.join("linked");
    let named = made::nvrtc(&linked, 12, 1);
    let driver = made::Driver { version: 12040, ..made::Driver::default() }.make(&folder.join("driver"));
    let none = Path::new("none");
    let cases: [(&[(&str, &Path)], &str); 7] = [
        (&[("SELVEDGE_LIBCUDA", none), ("VIRTUAL_ENV", &prefix)], "cu13/lib/libnvrtc.so.13"),
        // A driver for which the newest one is too new.
        (&[("SELVEDGE_LIBCUDA", &driver), ("VIRTUAL_ENV", &prefix)], "cuda_nvrtc/lib/libnvrtc.so.12"),
        // So is that of the machine's own toolkit, where it has one.
        (&[("SELVEDGE_LIBCUDA", &driver), ("CUDA_PATH", &toolkit)], "toolkit/lib64/libnvrtc.so.12"),
        (
            &[("SELVEDGE_LIBCUDA", &driver), ("CUDA_PATH", &toolkit), ("LD_LIBRARY_PATH", &linked)],
            "linked/libnvrtc.so.12",
        ),
        (&[("SELVEDGE_LIBNVRTC", &named), ("VIRTUAL_ENV", &prefix)], "linked/libnvrtc.so.12"),
        (&[("SELVEDGE_LIBNVRTC", none), ("VIRTUAL_ENV", &prefix)], "None None"),
        (&[("SELVEDGE_LIBNVRTC", Path::new("relative.so")), ("VIRTUAL_ENV", &prefix)], "None None"),
    ];
    for (variables, file) in cases {
        let text = run("nvrtc", variables);
        assert!(text.contains("prediction right") && text.contains(file), "{variables:?}: {text}");
    }
}

#[test]
fn what_is_already_loaded_comes_first_and_stays() {
    let folder = Folder::new();
    let prefix = environment(&folder);
    let before = made::nvrtc(&folder.join("before"), 12, 2);
    let variables: &[(&str, &Path)] =
        &[("SELVEDGE_LIBCUDA", Path::new("none")), ("VIRTUAL_ENV", &prefix), ("BEFORE", &before)];
    let report = run("loaded-before", variables);
    let lines = section(&report, "NVRTC");
    assert!(has(&lines[1..], "libnvrtc.so.12 (already loaded)", "taken, 12.2"), "{report}");
    assert!(lines[0].contains("before/libnvrtc.so.12"), "{report}");
    assert!(report.contains("still true"), "{report}");
    let predicted = report.lines().find(|line| line.starts_with("predicted")).unwrap();
    assert!(predicted.contains("before/libnvrtc.so.12"), "{predicted}");
}

#[test]
fn toolkits_come_after_environments() {
    let folder = Folder::new();
    // For it the libraries of a toolkit of this machine are too new.
    let driver = made::Driver { version: 12040, ..made::Driver::default() }.make(&folder.join("driver"));
    let toolkit = folder.join("toolkit");
    made::nvrtc(&toolkit.join("lib64"), 12, 9);
    let variables: &[(&str, &Path)] = &[("SELVEDGE_LIBCUDA", &driver), ("CUDA_HOME", &toolkit)];
    let report = run("report", variables);
    assert!(section(&report, "NVRTC")[0].contains("toolkit/lib64/libnvrtc.so.12"), "{report}");

    let prefix = environment(&folder);
    let variables: &[(&str, &Path)] =
        &[("SELVEDGE_LIBCUDA", &driver), ("CUDA_PATH", &toolkit), ("VIRTUAL_ENV", &prefix)];
    let report = run("report", variables);
    assert!(section(&report, "NVRTC")[0].contains("venv/lib/python3.11"), "{report}");

    let variables: &[(&str, &Path)] = &[("SELVEDGE_LIBCUDA", &driver), ("CUDA_PATH", Path::new("toolkit"))];
    let report = run("report", variables);
    assert!(has(&section(&report, "NVRTC"), "toolkit ($CUDA_PATH)", "the path is relative"), "{report}");
}

#[test]
fn both_cublas_libraries_come_from_one_folder_and_one_release() {
    let folder = Folder::new();
    let none = Path::new("none");
    let good = made::cublas(&folder.join("good"), [12, 9, 1], [12, 9, 1]);
    let report = run("report", &[("SELVEDGE_LIBCUDA", none), ("SELVEDGE_LIBCUBLAS", &good)]);
    assert!(section(&report, "cuBLAS")[0].contains("12.9.1, "), "{report}");
    assert!(section(&report, "cuBLASLt")[0].contains("good/libcublasLt.so.12"), "{report}");

    let mixed = made::cublas(&folder.join("mixed"), [12, 9, 1], [12, 1, 3]);
    let report = run("report", &[("SELVEDGE_LIBCUDA", none), ("SELVEDGE_LIBCUBLAS", &mixed)]);
    assert!(
        has(&section(&report, "cuBLAS"), "cuBLAS is 12.9.1", "cuBLASLt that it was given is 12.1.3"),
        "{report}"
    );

    std::fs::remove_file(folder.join("mixed/libcublasLt.so.12")).unwrap();
    let report = run("report", &[("SELVEDGE_LIBCUDA", none), ("SELVEDGE_LIBCUBLAS", &mixed)]);
    assert!(has(&section(&report, "cuBLAS"), "its ", "mixed/libcublasLt.so.12: no such file"), "{report}");

    // By the linker's path too, where the folder is the linker's choice; a toolkit of this machine is too new for the driver.
    let driver = made::Driver { version: 12040, ..made::Driver::default() }.make(&folder.join("driver"));
    let report = run("report", &[("SELVEDGE_LIBCUDA", &driver), ("LD_LIBRARY_PATH", &folder.join("good"))]);
    assert!(section(&report, "cuBLAS")[0].contains("good/libcublas.so.12"), "{report}");
    assert!(section(&report, "cuBLASLt")[0].contains("good/libcublasLt.so.12"), "{report}");
}

#[test]
fn a_library_without_its_functions_is_passed_over() {
    let folder = Folder::new();
    let bare = folder.join("libnccl.so.2");
    made::library(&bare, "int nothing;");
    let report = run("report", &[("SELVEDGE_LIBCUDA", Path::new("none")), ("SELVEDGE_LIBNCCL", &bare)]);
    assert!(
        has(&section(&report, "NCCL"), "libnccl.so.2 (SELVEDGE_LIBNCCL)", "has no ncclGetVersion"),
        "{report}"
    );
}
