//! Networks from `.npz` files, and spikes into them.

use std::sync::Arc;

use selvedge::burst::{Cpu, Network, Simulation};
use selvedge::io::npz::{NpzFile, NpzWriter};
use selvedge::types::DType;

#[test]
fn networks_come_from_npz_files_and_spikes_go_into_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("network.npz");
    let write = |arrays: &[(&str, DType, &[u8])]| {
        let mut writer = NpzWriter::create(&path).unwrap();
        for (name, dtype, bytes) in arrays {
            writer.begin(name, *dtype, &[bytes.len() / dtype.size()]).unwrap();
            writer.write(bytes).unwrap();
        }
        writer.finish().unwrap();
        Network::read_npz(&path)
    };
    let (source, target) =
        ([1i64, 0].map(i64::to_le_bytes).concat(), [0i32, 1].map(i32::to_le_bytes).concat());
    let thresholds = [1.0f64, 50.0].map(f64::to_le_bytes).concat();
    let good: [(&str, DType, &[u8]); 6] = [
        ("source", DType::I64, &source),
        ("target", DType::I32, &target),
        ("weight", DType::U8, &[3, 6]),
        ("psp", DType::U8, &[1, 10]),
        ("threshold", DType::F64, &thresholds),
        ("accumulates", DType::Bool, &[1, 0]),
    ];
    let network = write(&good).unwrap();
    assert_eq!(
        (network.neurons().threshold.as_slice(), network.neurons().accumulates[1]),
        (&[1.0, 50.0][..], false)
    );
    assert_eq!(network.synapses().targets(), [1, 0]);
    assert_eq!(network.synapses().weights(), [6 | 10 << 8, 3 | 1 << 8]);

    let negative = [-1i64, 0].map(i64::to_le_bytes).concat();
    let bad = write(&[("source", DType::I64, &negative), good[1], good[2], good[3], good[4]])
        .unwrap_err()
        .to_string();
    assert!(bad.contains("-1 at 0 of array 'source'"), "{bad}");
    let most = u32::MAX.to_le_bytes();
    let bad =
        write(&[good[0], good[1], good[2], good[3], ("neurons", DType::U32, &most)]).unwrap_err().to_string();
    assert!(bad.contains("4294967295 neurons; wanted at most 2^31"), "{bad}");
    let bad = write(&good[..4]).unwrap_err().to_string();
    assert!(bad.contains("no array of a neuron field"), "{bad}");
    assert!(write(&good[1..]).unwrap_err().to_string().contains("source"));

    let mut simulation = Simulation::new(Arc::new(network), Box::new(Cpu::new()), 0).unwrap();
    simulation.record_spikes(true);
    simulation.inject(&[(0, 1.0)]).unwrap();
    simulation.run(3).unwrap();
    let path = folder.path().join("spikes.npz");
    simulation.write_spikes_npz(&path).unwrap();
    let mut file = NpzFile::open(&path).unwrap();
    assert_eq!(file.array("burst").unwrap().read().unwrap().as_slice::<u64>().unwrap(), [1, 2, 3]);
    assert_eq!(file.array("id").unwrap().read().unwrap().as_slice::<u32>().unwrap(), [0, 1, 0]);
}

/// The bytes of u32 numbers.
fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Writes arrays of u32 and reads the network: three neurons without synapses, and these arrays.
fn read(arrays: &[(&str, &[u32], &[usize])]) -> selvedge::Result<Network> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("network.npz");
    let mut writer = NpzWriter::create(&path).unwrap();
    for name in ["source", "target", "weight", "psp"] {
        writer.begin(name, DType::U8, &[0]).unwrap();
    }
    for (name, numbers, shape) in [("neurons", &[3][..], &[1][..])].iter().chain(arrays) {
        writer.begin(name, DType::U32, shape).unwrap();
        writer.write(&words(numbers)).unwrap();
    }
    writer.finish().unwrap();
    Network::read_npz(&path)
}

#[test]
fn npz_files_name_areas_and_populations() {
    let network = read(&[
        ("area", &[1, 0, 1], &[3]),
        ("area:motor", &[1, 3], &[2]),
        ("population:last", &[1, 3], &[2]),
        ("area:sight", &[0, 2], &[2]),
        ("population:first", &[0, 1], &[2]),
        ("position", &[1, 2, 3, 4, 5, 6, 7, 8, 9], &[3, 3]),
    ])
    .unwrap();
    let areas: Vec<_> = network.areas().iter().map(|area| (area.name.as_str(), area.shares)).collect();
    assert_eq!(areas, [("sight", false), ("motor", true)]);
    assert!(network.areas().iter().all(|area| area.potential_driven));
    assert_eq!((network.area("motor"), network.area("smell")), (Some(1), None));
    assert_eq!(network.neurons().area, [1, 0, 1]);
    assert_eq!(network.neurons().position, [[1, 2, 3], [4, 5, 6], [7, 8, 9]]);
    let populations = network.populations();
    assert_eq!((populations.len(), populations[0].name.as_str()), (2, "last"));
    assert_eq!((network.population("last"), network.population("first")), (Some(1..3), Some(0..1)));
    assert_eq!(read(&[]).unwrap().areas()[0].name, "all");
}

#[test]
fn arrays_of_npz_files_that_no_network_has_are_refused_by_name() {
    for (arrays, wanted) in [
        (
            &[("treshold", &[1, 1, 1][..], &[3][..])][..],
            "array 'treshold'; wanted arrays of the names source, ",
        ),
        (&[("area", &[0, 1, 0], &[3])], "area 1"),
        (
            &[("area", &[0, 1, 0], &[3]), ("area:a", &[1, 0], &[2])],
            "index 1 of array 'area:a'; wanted each of 0 to 0",
        ),
        (
            &[("area:a", &[0, 0], &[2]), ("area:b", &[0, 0], &[2])],
            "index 0 of array 'area:b'; wanted each of 0 to 1",
        ),
        (&[("area:a", &[0, 4], &[2])], "flags 4 of array 'area:a'"),
        (&[("area:a", &[0], &[1])], "1 elements of array 'area:a'; wanted two"),
        (&[("area", &[0, 0], &[2])], "needs 3 elements, but was given 2"),
        (&[("population:p", &[2, 4], &[2])], "ids 2..4 for population 'p'"),
        (&[("position", &[0; 6], &[2, 3])], "needs 3 elements, but was given 2"),
        (&[("position", &[0; 6], &[3, 2])], "array 'position' of shape [3, 2]; wanted three columns"),
    ] {
        let error = read(arrays).unwrap_err().to_string();
        assert!(error.contains(wanted), "'{wanted}' is not in: {error}");
    }
    let error = read(&[("x", &[1], &[1])]).unwrap_err().to_string();
    for name in ["snooze", "position", "area:NAME", "population:NAME"] {
        assert!(error.contains(name), "{error}");
    }
}
