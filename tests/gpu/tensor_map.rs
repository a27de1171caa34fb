//! Tensor maps describe what the bulk copies of compute capability 9.0 move, and their memory is ordered like any other.

use selvedge::Error;
use selvedge::driver::{Device, LaunchConfig, TensorElement, TensorMap, TensorMapLayout};

use crate::attributes::hopper;
use crate::support::{Lab, Need, Outcome, SLOW, assert_error, assert_open, device_tests};

device_tests! {
    a_box_is_loaded => needs(Need::Capability(9, 0)),
    a_box_is_stored => needs(Need::Capability(9, 0)),
    a_load_waits_for_the_writer => needs(Need::Capability(9, 0)),
    a_map_keeps_its_memory => needs(Need::Capability(9, 0)),
    layouts_that_cannot_be_are_errors => needs(Need::Capability(9, 0)),
}

const COLUMNS: u64 = 96;
const ROWS: u64 = 40;
const BOX: [u32; 2] = [32, 8];
const ELEMENTS: u32 = BOX[0] * BOX[1];

fn layout() -> TensorMapLayout {
    TensorMapLayout::contiguous(TensorElement::F32, &[COLUMNS, ROWS], &BOX)
}

fn config() -> LaunchConfig {
    LaunchConfig::new(1, 128).shared(4 * ELEMENTS + 128)
}

fn element(column: i64, row: i64) -> f32 {
    let inside = (0..COLUMNS as i64).contains(&column) && (0..ROWS as i64).contains(&row);
    if inside { (row * COLUMNS as i64 + column) as f32 + 0.5 } else { 0.0 }
}

fn tensor() -> Vec<f32> {
    (0..(COLUMNS * ROWS) as usize).map(|index| index as f32 + 0.5).collect()
}

fn boxed(column: i64, row: i64) -> Vec<f32> {
    let places = (0..i64::from(BOX[1])).flat_map(|y| (0..i64::from(BOX[0])).map(move |x| (x, y)));
    places.map(|(x, y)| element(column + x, row + y)).collect()
}

fn a_box_is_loaded() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let load = hopper(device)?.function("load_box")?;
    let memory = stream.upload(&tensor())?;
    let map = TensorMap::tiled(&memory, &layout())?;
    // Inside, at the last box, over two edges, before the first element and behind the last: what is outside is zero. The
    // first coordinate must be a multiple of 16 bytes.
    for (x, y) in [(0i32, 0i32), (64, 32), (36, 7), (80, 36), (-4, -3), (96, 40)] {
        let mut out = stream.upload(&[-1.0f32; ELEMENTS as usize])?;
        // SAFETY: load_box(Map, float*, int, int, unsigned) writes one box.
        unsafe { load.launch(&stream, config(), (&map, &mut out, x, y, ELEMENTS))? };
        let out = stream.download(&out).map_err(|error| format!("the box at {x}, {y}: {error}"))?;
        assert_eq!(out, boxed(x.into(), y.into()), "the box at {x}, {y}");
    }
    Ok(())
}

fn a_box_is_stored() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let store = hopper(device)?.function("store_box")?;
    let memory = stream.upload(&tensor())?;
    let mut map = TensorMap::tiled(&memory, &layout())?;
    // SAFETY: store_box(Map, float, int, int, unsigned) writes one box of the tensor.
    unsafe { store.launch(&stream, config(), (&mut map, -1000.0f32, 80, 4, ELEMENTS))? };
    let result = stream.download(&memory)?;
    for row in 0..ROWS as i64 {
        for column in 0..COLUMNS as i64 {
            let (x, y) = (column - 80, row - 4);
            let stored = (0..i64::from(BOX[0])).contains(&x) && (0..i64::from(BOX[1])).contains(&y);
            let wanted =
                if stored { -1000.0 + (y * i64::from(BOX[0]) + x) as f32 } else { element(column, row) };
            assert_eq!(result[(row * COLUMNS as i64 + column) as usize], wanted, "{column}, {row}");
        }
    }
    Ok(())
}

fn a_load_waits_for_the_writer() -> Outcome {
    let lab = Lab::new()?;
    let other = lab.device.stream()?;
    let module = hopper(lab.device)?;
    let load = module.function("load_box")?;
    let mut memory = lab.stream.zeros::<u32>((COLUMNS * ROWS) as usize)?;
    let map = TensorMap::tiled(&memory, &layout())?;
    let mut out = other.zeros::<f32>(ELEMENTS as usize)?;
    // SAFETY: as above.
    unsafe { load.launch(&other, config(), (&map, &mut out, 0, 0, ELEMENTS))? };
    other.synchronize()?;
    lab.set(&lab.stream, memory.slice_mut(..)?, 2.5f32.to_bits(), SLOW)?;
    // SAFETY: as above.
    unsafe { load.launch(&other, config(), (&map, &mut out, 0, 0, ELEMENTS))? };
    // And the next writer waits for the load.
    lab.set(&lab.stream, memory.slice_mut(..)?, 0, 0)?;
    assert_open(!lab.stream.is_idle()?, "the load's issue");
    assert_eq!(other.download(&out)?, [2.5f32; ELEMENTS as usize]);
    Ok(())
}

fn a_map_keeps_its_memory() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let load = hopper(device)?.function("load_box")?;
    let memory = stream.upload(&tensor())?;
    let map = TensorMap::tiled(&memory, &layout())?;
    drop(memory);
    let other = stream.upload(&vec![9.0f32; (COLUMNS * ROWS) as usize])?;
    let mut out = stream.zeros::<f32>(ELEMENTS as usize)?;
    // SAFETY: as above.
    unsafe { load.launch(&stream, config(), (&map, &mut out, 0, 0, ELEMENTS))? };
    assert_eq!(stream.download(&out)?, boxed(0, 0));
    drop(other);
    Ok(())
}

fn layouts_that_cannot_be_are_errors() -> Outcome {
    let stream = Device::new(0)?.stream()?;
    let memory = stream.upload(&tensor())?;
    let fits = layout();
    let wrong = [
        TensorMapLayout { shape: vec![COLUMNS, ROWS + 1], ..fits.clone() },
        TensorMapLayout { shape: vec![], ..fits.clone() },
        TensorMapLayout { strides: vec![], ..fits.clone() },
        TensorMapLayout { block: vec![32], ..fits.clone() },
        TensorMapLayout { element_strides: vec![1], ..fits.clone() },
    ];
    for layout in wrong {
        assert_error!(TensorMap::tiled(&memory, &layout), Error::InvalidArgument { .. });
    }
    // The hardware refuses rows that are not 16 bytes apart and a box that is too large.
    let hardware = [
        TensorMapLayout { strides: vec![4 * COLUMNS - 4], ..fits.clone() },
        TensorMapLayout { block: vec![512, 8], ..fits.clone() },
    ];
    for layout in hardware {
        assert!(TensorMap::tiled(&memory, &layout).is_err(), "{layout:?}");
    }
    assert!(TensorMap::tiled(&memory, &fits).is_ok());
    Ok(())
}
