//! Devices are found by ordinal and by UUID, say what they are, and an absent one is an error that names what there is.

use selvedge::Error;
use selvedge::driver::{Attribute, Device, driver_isa, driver_version};

use crate::support::{Outcome, assert_error, device_tests};

device_tests! {
    every_device_is_listed, a_device_says_what_it_is, attributes_by_name, memory_is_counted,
    an_absent_ordinal_names_what_there_is, an_absent_uuid_names_what_there_is, versions_are_sane,
}

fn every_device_is_listed() -> Outcome {
    let (count, list) = (Device::count()?, Device::list()?);
    assert!(count >= 1);
    assert_eq!(list.len(), count);
    for (ordinal, device) in list.iter().enumerate() {
        assert_eq!(device.ordinal(), ordinal);
        assert_eq!(*device, Device::new(ordinal)?, "one device, one state");
        assert_eq!(*device, Device::from_uuid(device.uuid())?);
        let bare = device.uuid().trim_start_matches("GPU-").to_uppercase();
        assert_eq!(*device, Device::from_uuid(&bare)?, "without GPU- and in capitals");
    }
    Ok(())
}

fn a_device_says_what_it_is() -> Outcome {
    for device in Device::list()? {
        assert!(!device.name().is_empty());
        assert!(device.to_string().contains(device.name()) && format!("{device:?}").contains(device.name()));
        let uuid = device.uuid();
        let parts: Vec<usize> = uuid.trim_start_matches("GPU-").split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{uuid}");
        let pci = device.pci_bus_id();
        assert!(pci.len() >= 12 && pci.contains(':') && pci.contains('.'), "{pci}");
        let bus = u32::from_str_radix(&pci[pci.len() - 7..pci.len() - 5], 16)?;
        assert_eq!(device.attribute(Attribute::PCI_BUS_ID)? as u32, bus, "{pci}");
        let (major, minor) = device.compute_capability();
        assert_eq!(device.attribute(Attribute::COMPUTE_CAPABILITY_MAJOR)?, major);
        assert_eq!(device.attribute(Attribute::COMPUTE_CAPABILITY_MINOR)?, minor);
        assert!(!device.is_lost());
    }
    Ok(())
}

fn attributes_by_name() -> Outcome {
    let device = Device::new(0)?;
    let warp = Attribute::from_name("warp_size").ok_or("warp_size has no entry")?;
    assert_eq!(device.attribute(warp)?, 32);
    let mut known = 0;
    for attribute in Attribute::all() {
        // The list may be newer than the driver: a value or a typed error, nothing else.
        match device.attribute(attribute) {
            Ok(_) => known += 1,
            Err(Error::Driver { call: "cuDeviceGetAttribute", detail, .. }) => {
                assert!(detail.contains(&attribute.to_string()), "{detail}");
            }
            Err(other) => return Err(format!("{attribute}: {other:?}").into()),
        }
    }
    assert!(known >= 100, "only {known} attributes are known");
    assert_error!(device.attribute(Attribute(1_000_000)), Error::Driver { .. });
    Ok(())
}

fn memory_is_counted() -> Outcome {
    let device = Device::new(0)?;
    let memory = device.memory_info()?;
    assert!(memory.free <= memory.total && memory.free > 0, "{memory:?}");
    assert!(
        memory.total <= device.total_memory() && memory.total * 10 >= device.total_memory() * 9,
        "{memory:?}"
    );
    Ok(())
}

fn an_absent_ordinal_names_what_there_is() -> Outcome {
    let count = Device::count()?;
    for ordinal in [count, usize::MAX] {
        match Device::new(ordinal) {
            Err(Error::NoDevice { wanted, found }) => {
                assert_eq!(wanted, ordinal.to_string());
                assert!(found.contains("device 0") || found.contains("from 0 to"), "{found}");
            }
            other => return Err(format!("{other:?}").into()),
        }
    }
    Ok(())
}

fn an_absent_uuid_names_what_there_is() -> Outcome {
    for wanted in ["GPU-00000000-0000-0000-0000-000000000000", "", "nonsense"] {
        assert_error!(Device::from_uuid(wanted), Error::NoDevice { wanted: named, .. } if named == wanted);
    }
    Ok(())
}

fn versions_are_sane() -> Outcome {
    let (version, isa) = (driver_version()?, driver_isa()?);
    assert!(version >= (11, 4), "{version:?}");
    assert!(isa >= (7, 4), "{isa:?}");
    Ok(())
}
