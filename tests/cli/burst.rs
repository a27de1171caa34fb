//! `selvedge burst`: networks made, run and verified; files, pictures and errors.

use selvedge::io::npy;
use selvedge::io::npz::{NpzFile, NpzWriter};
use selvedge::types::DType;

use super::{FAILED_FOR_DEVICE, FAILED_FOR_INPUT, Folder, fails, json, succeeds, xml};

/// The golden network G(1000, 20) with its input, as files.
fn golden(folder: &Folder) -> (String, String) {
    let (network, input) = (folder.file("g.burst"), folder.file("g.npy"));
    let text = succeeds(&[
        "burst", "make", "G", "--seed", "7", "-o", &network, "--input", &input, "--bursts", "200",
    ]);
    assert!(text.contains("1,000 neurons, 20,000 synapses"), "{text}");
    assert!(text.contains("4,076 injections for 200 bursts"), "{text}");
    (network, input)
}

#[test]
fn a_network_runs_with_pictures_and_the_golden_state() {
    let folder = Folder::new("burst-run");
    let (network, input) = golden(&folder);
    let (raster, rates, spikes) =
        (folder.file("raster.svg"), folder.file("rates.svg"), folder.file("spikes.npz"));
    let text = succeeds(&[
        "burst", "run", &network, "--bursts", "200", "--inject", &input, "--raster", &raster, "--rates",
        &rates, "--spikes", &spikes,
    ]);
    for part in [
        "No GPU is used",
        "68,669, 343.3 a burst: 34.33 % of the neurons",
        "1,366,600",
        "79,995 refractory",
        "4,076 of 4,076 rows",
        "52847a73f59273c2",
    ] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    for (path, title) in [(&raster, "Spikes of g.burst"), (&rates, "Firing rates of g.burst")] {
        let picture = std::fs::read_to_string(path).unwrap();
        let texts = xml::texts(&picture).unwrap();
        assert!(texts.iter().any(|text| text == title), "{texts:?}");
        assert!(texts.iter().any(|text| text == "68,669 spikes of 1,000 neurons in bursts 1 to 200"));
        assert!(picture.len() < 1 << 20, "{} bytes", picture.len());
    }
    let mut file = NpzFile::open(&spikes).unwrap();
    let bursts = file.array("burst").unwrap().read().unwrap();
    let ids = file.array("id").unwrap().read().unwrap();
    assert_eq!((bursts.len(), ids.len()), (68_669, 68_669));
    assert_eq!(bursts.as_slice::<u64>().unwrap()[..13], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2]);
}

#[test]
fn a_saved_run_continues_to_the_same_state() {
    let folder = Folder::new("burst-save");
    let (network, input) = golden(&folder);
    let middle = folder.file("middle.burst");
    let value = json(&succeeds(&[
        "burst", "run", &network, "--bursts", "90", "--inject", &input, "--save", &middle, "--device", "cpu",
        "--json",
    ]));
    assert_eq!((&value["last_burst"], &value["saved"]), (&90.into(), &middle.as_str().into()));
    assert!(value["input_rows_used"].as_u64().unwrap() < 4076 && value["reason"].is_null(), "{value}");
    let value = json(&succeeds(&["burst", "run", &middle, "--bursts", "110", "--inject", &input, "--json"]));
    assert_eq!((&value["first_burst"], &value["last_burst"]), (&91.into(), &200.into()));
    assert_eq!(value["state_hash"], "52847a73f59273c2");
}

#[test]
fn a_network_of_arrays_runs_with_input_of_integers() {
    let folder = Folder::new("burst-npz");
    let (arrays, network, input) = (folder.file("a.npz"), folder.file("a.burst"), folder.file("a.npy"));
    let mut writer = NpzWriter::create(&arrays).unwrap();
    for (name, numbers) in [
        ("neurons", &[3u32][..]),
        ("source", &[0, 1]),
        ("target", &[1, 2]),
        ("weight", &[6, 6]),
        ("psp", &[10, 10]),
    ] {
        writer.begin(name, DType::U32, &[numbers.len()]).unwrap();
        writer.write(&numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    }
    writer.finish().unwrap();
    succeeds(&["burst", "make", &arrays, "-o", &network]);
    npy::write_slice(&input, &[2i32, 0, 1, 9, 0, 1], &[2, 3]).unwrap();
    let raster = folder.file("raster.svg");
    let value = json(&succeeds(&[
        "burst", "run", &network, "--bursts", "5", "--inject", &input, "--raster", &raster, "--json",
    ]));
    assert_eq!(
        (&value["spikes"], &value["input_rows_used"], &value["input_rows"]),
        (&3.into(), &1.into(), &2.into())
    );
    let picture = std::fs::read_to_string(&raster).unwrap();
    xml::texts(&picture).unwrap();
    // Three spikes, each with a mark of its own: burst 2 to 4 of neurons 0 to 2.
    let marks = picture.lines().find(|line| line.starts_with("<path")).unwrap().matches('M').count();
    assert_eq!(marks, 3, "{picture}");
}

#[test]
fn input_may_have_any_real_type() {
    let folder = Folder::new("burst-types");
    let (network, input) = (folder.file("s.burst"), folder.file("s.npy"));
    succeeds(&["burst", "make", "S", "--neurons", "50", "--degree", "2", "-o", &network]);
    let rows = [1.0f32, 7.0, 2000.0, 2.0, 9.0, 1000.0, 2.0, 9.0, 24.0];
    let run = || {
        let value = json(&succeeds(&[
            "burst", "run", &network, "--bursts", "3", "--inject", &input, "--device", "cpu", "--json",
        ]));
        assert_eq!((&value["spikes"], &value["input_rows_used"]), (&2.into(), &3.into()), "{value}");
        value["state_hash"].clone()
    };
    npy::write_slice(&input, &rows, &[3, 3]).unwrap();
    let wanted = run();
    npy::write_slice(&input, &rows.map(half::f16::from_f32), &[3, 3]).unwrap();
    assert_eq!(run(), wanted);
    npy::write_slice(&input, &rows.map(half::bf16::from_f32), &[3, 3]).unwrap();
    assert_eq!(run(), wanted);
    npy::write_slice(&input, &rows.map(|number| number as i16), &[3, 3]).unwrap();
    assert_eq!(run(), wanted);
    npy::write_slice(&input, &[num_complex::Complex32::new(1.0, 0.0); 9], &[3, 3]).unwrap();
    let parts = ["an array of c64; wanted an integer or floating-point type"];
    fails(FAILED_FOR_INPUT, &["burst", "run", &network, "--inject", &input], &parts);
}

#[test]
fn every_backend_of_this_machine_is_verified() {
    let text = succeeds(&["burst", "verify"]);
    assert!(
        text.contains("All 24 results are equal bit for bit") && text.contains("No GPU is used"),
        "{text}"
    );
    let value = json(&succeeds(&["burst", "verify", "--json"]));
    assert_eq!((&value["equal"], value["devices"].as_array().unwrap().len()), (&true.into(), 6));
    assert_eq!(value["devices"][5]["checks"]["G(5000, 50)"]["equal"], true);
}

#[test]
fn bad_input_is_refused_before_anything_is_written() {
    let folder = Folder::new("burst-bad");
    let (network, input) = golden(&folder);
    let spikes = folder.file("spikes.npz");
    let run = |rest: &[&str]| -> Vec<String> {
        ["burst", "run", &network, "--spikes", &spikes]
            .iter()
            .chain(rest)
            .map(|text| (*text).to_owned())
            .collect()
    };
    let refuse = |rest: &[&str], parts: &[&str]| {
        let arguments = run(rest);
        fails(FAILED_FOR_INPUT, &arguments.iter().map(String::as_str).collect::<Vec<_>>(), parts);
        assert!(!std::path::Path::new(&spikes).exists());
    };
    let file = |name: &str, rows: &[f64], shape: &[usize]| {
        let path = folder.file(name);
        npy::write_slice(&path, rows, shape).unwrap();
        path
    };
    for (rows, wanted) in [
        ([1.0, 1000.0, 1.0], "id 1000 in row 0; wanted a whole number below 1000"),
        ([1.0, 0.5, 1.0], "id 0.5 in row 0"),
        ([0.0, 1.0, 1.0], "burst 0 in row 0"),
        ([1.0, 1.0, f64::NAN], "potential NaN in row 0"),
        ([1.0, 1.0, 2e9], "2000000000 for neuron 1"),
    ] {
        refuse(&["--inject", &file("bad.npy", &rows, &[1, 3])], &[wanted]);
    }
    refuse(&["--inject", &file("bad.npy", &[1.0, 1.0], &[1, 2])], &["[1, 2]", "burst, id, potential"]);
    refuse(&["--device", "gpu"], &["'gpu'", "auto, cpu or the number"]);
    refuse(&["--bursts", "0"], &["0 is not in"]);
    refuse(&["--raster", "/no-such-folder/r.svg"], &["folder does not exist"]);
    fails(FAILED_FOR_DEVICE, &["burst", "run", &network, "--device", "0"], &["driver"]);
    fails(FAILED_FOR_INPUT, &["burst", "run", &input], &["another kind of file", ".burst"]);
    let other = folder.file("other.burst");
    for (arguments, part) in [
        (&["G", "--every", "3"][..], "--every for network G"),
        (&["x.npz", "--degree", "3"], "--degree for an .npz file"),
        (&["x.npz"], "x.npz"),
        (&["x.csv"], "G, S or the name of an .npz file"),
    ] {
        fails(FAILED_FOR_INPUT, &[&["burst", "make", "-o", &other][..], arguments].concat(), &[part]);
    }
    assert!(!std::path::Path::new(&other).exists());
    // A file that is cut off.
    let bytes = std::fs::read(&network).unwrap();
    std::fs::write(&other, &bytes[..bytes.len() / 2]).unwrap();
    fails(FAILED_FOR_INPUT, &["burst", "run", &other], &["bytes left"]);
}

#[cfg(target_os = "linux")]
mod on_the_fake_driver {
    use std::path::Path;
    use std::process::Command;

    use selvedge::io::npz::NpzFile;
    use serde_json::Value;

    use super::super::on_the_fake_driver::{fails, on_fake};
    use super::golden;
    use crate::build::Family;
    use crate::{FAILED, FAILED_FOR_DEVICE, Folder, json, succeeds};

    #[test]
    fn results_that_differ_end_with_code_1() {
        // The fake driver's kernels compute nothing.
        fails(FAILED, &["burst", "verify"], &[]);
    }

    /// The program on the fake driver, whose kernels of spiking networks compute.
    fn on_computing_fake(arguments: &[&str]) -> Command {
        const BURST: Family = Family {
            source: "burst.cu",
            defines: &[],
            cluster: 1,
            resident: 1,
            any_order: false,
            fault: None,
        };
        let mut command = on_fake(arguments);
        command.env("FAKE_RUNNER", crate::build::build(&BURST).unwrap());
        command
    }

    /// A run of G(1000, 20) on the fake driver, whose context is lost in a burst.
    fn run(arguments: &[&str], burst: &str) -> (Option<i32>, String, String) {
        let output = on_computing_fake(arguments)
            .env("FAKE_FAULT", "burst_dynamics")
            .env("FAKE_FAULT_AFTER", burst)
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// The same executable and command line compute on the device where there is a driver, and on the CPU where there is none, to
    /// the same state. A device that was named is an error there that says what is missing.
    #[test]
    fn one_binary_runs_with_and_without_cuda() {
        let folder = Folder::new("one-binary");
        let (network, input) = golden(&folder);
        // So few bursts that `auto` still runs both backends, and compares their results bit for bit.
        let run_on = |device| {
            ["burst", "run", &network, "--bursts", "8", "--inject", &input, "--device", device, "--json"]
        };
        let with_cuda = |arguments: &[&str]| {
            let output = on_computing_fake(arguments).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
            json(std::str::from_utf8(&output.stdout).unwrap())
        };
        // `succeeds` and `fails` of the crate run it with `SELVEDGE_LIBCUDA=none`.
        let without_cuda = |arguments: &[&str]| json(&succeeds(arguments));

        let (both, cpu) = (with_cuda(&run_on("auto")), without_cuda(&run_on("auto")));
        let device = both["device"].as_str().unwrap();
        assert!(device.starts_with("CUDA, Fake GPU 0 or CPU, "), "{both}");
        assert!(both["reason"].is_null() && both["lost_after_burst"].is_null(), "{both}");
        let device = cpu["device"].as_str().unwrap();
        assert!(device.starts_with("CPU, ") && !device.contains("CUDA"), "{cpu}");
        assert!(cpu["reason"].as_str().unwrap().contains("the NVIDIA driver could not be loaded"), "{cpu}");

        let cuda = with_cuda(&run_on("0"));
        assert_eq!(cuda["device"], "CUDA, Fake GPU 0");
        assert_eq!(cpu["spikes"], 1937);
        for result in ["spikes", "events", "state_hash"] {
            assert_eq!((&cuda[result], &both[result]), (&cpu[result], &cpu[result]), "{result}");
        }
        let named = &run_on("0")[..9];
        let missing = ["the NVIDIA driver could not be loaded", "SELVEDGE_LIBCUDA"];
        crate::fails(FAILED_FOR_DEVICE, named, &missing);

        let devices = |info: Value| info["devices"].as_array().unwrap().len();
        let info = ["info", "--json"];
        assert_eq!((devices(with_cuda(&info)) > 0, devices(without_cuda(&info))), (true, 0));
    }

    #[test]
    fn a_run_goes_on_on_the_cpu_after_its_device_was_lost() {
        let folder = Folder::new("burst-lost");
        let (network, input) = golden(&folder);
        let arguments =
            ["burst", "run", &network, "--bursts", "200", "--inject", &input, "--device", "auto", "--json"];
        let (code, text, errors) = run(&arguments, "5");
        assert_eq!(code, Some(0), "{errors}");
        assert!(errors.contains("warning: the device failed after burst 4: "), "{errors}");
        let value = json(&text);
        assert_eq!((&value["spikes"], &value["lost_after_burst"]), (&68_669.into(), &4.into()));
        assert!(errors.contains(value["reason"].as_str().unwrap()), "{value}");
        assert_eq!(value["state_hash"], "52847a73f59273c2");
    }

    #[test]
    fn a_run_on_a_device_that_was_named_ends_with_the_files_of_its_finished_bursts() {
        let folder = Folder::new("burst-lost-named");
        let (network, input) = golden(&folder);
        let names = ["saved.burst", "spikes.npz", "raster.svg", "rates.svg"];
        let [saved, spikes, raster, rates] = names.map(|name| folder.file(name));
        let arguments = [
            "burst", "run", &network, "--bursts", "200", "--inject", &input, "--device", "0", "--save",
            &saved, "--spikes", &spikes, "--raster", &raster, "--rates", &rates,
        ];
        let (code, _, errors) = run(&arguments, "1");
        assert_eq!(code, Some(FAILED), "{errors}");
        assert!(errors.contains("no burst is finished, so no file is written"), "{errors}");
        assert!(names.iter().all(|name| !Path::new(&folder.file(name)).exists()));

        let (code, _, errors) = run(&arguments, "12");
        assert_eq!(code, Some(FAILED), "{errors}");
        assert!(errors.contains("the run ended after bursts 1 to 11, and "), "{errors}");
        assert!(errors.contains("rates.svg, ") && errors.contains(" hold them; --device auto"), "{errors}");
        let bursts = NpzFile::open(&spikes).unwrap().array("burst").unwrap().read().unwrap();
        let mut counts = [0; 11];
        bursts.as_slice::<u64>().unwrap().iter().for_each(|burst| counts[*burst as usize - 1] += 1);
        assert_eq!(counts, [12, 36, 113, 280, 416, 389, 332, 359, 377, 359, 336]);
        for picture in [&raster, &rates] {
            let text = std::fs::read_to_string(picture).unwrap();
            assert!(text.contains("bursts 1 to 11"), "{text}");
        }
        let rest = ["burst", "run", &saved, "--bursts", "189", "--inject", &input, "--json"];
        let value = json(&succeeds(&rest));
        assert_eq!((&value["last_burst"], &value["state_hash"]), (&200.into(), &"52847a73f59273c2".into()));
    }
}
