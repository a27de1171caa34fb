//! Fatbins: a header of 16 bytes, then entries of a header and a payload each.
//!
//! NVIDIA does not document the format. This reader was checked against files of the CUDA 13.0 tools
//! (tests/data/images). It parses an uncompressed entry as PTX or a cubin. For a compressed one (LZ4 up to CUDA 12,
//! Zstandard since) it reads only the header: the target, and for PTX the ISA.

use super::cubin::{self, read_u16, read_u32, read_u64};
use super::{
    ArchitectureSuffix, Error, ImageEntry, ImageInfo, ImageKind, Result, TargetArchitecture, damaged, ptx,
};

const KIND: &str = "fatbin";

const MAGIC: u32 = 0xba55_ed50;
const ENTRY_PTX: u16 = 1;
const ENTRY_CUBIN: u16 = 2;

// Flags of an entry.
const COMPRESSED: u64 = 0x2000 | 0x8000;
const ARCHITECTURE_ONLY: u64 = 0x10_0000;
const FAMILY: u64 = 0x20_0000;

/// The smallest entry header.
const ENTRY_HEADER: usize = 64;

pub(super) fn is_fatbin(bytes: &[u8]) -> bool {
    read_u32(bytes, 0) == Some(MAGIC)
}

pub(super) fn parse(bytes: &[u8]) -> Result<ImageInfo> {
    let fields = (|| Some((read_u16(bytes, 6)?, read_u64(bytes, 8)?)))();
    let Some((header, size)) = fields else {
        return damaged(KIND, format!("it ends inside its header, after {} bytes", bytes.len()));
    };
    let header = usize::from(header);
    let body = usize::try_from(size)
        .ok()
        .and_then(|size| bytes.get(header..header.checked_add(size)?))
        .filter(|_| header >= 16);
    let Some(mut rest) = body else {
        let found = format!("a header of {header} bytes before {size}, in a file of {} bytes", bytes.len());
        return damaged(KIND, found);
    };

    let mut info = ImageInfo {
        kind: ImageKind::Fatbin,
        isa: None,
        targets: Vec::new(),
        entries: Vec::new(),
        kernels: Vec::new(),
        globals: Vec::new(),
        complete: true,
        relocatable: false,
    };
    let mut index = 0_usize;
    // The tools pad the body to 8 bytes.
    while rest.len() >= ENTRY_HEADER || rest.iter().any(|byte| *byte != 0) {
        let Some((record, payload, behind)) = split(rest) else {
            return damaged(KIND, format!("entry {index} that leaves the file"));
        };
        add(&mut info, record, payload, index)?;
        rest = behind;
        index += 1;
    }
    info.isa = info.entries.iter().filter_map(|entry| entry.isa).max();
    for entry in &info.entries {
        if !info.targets.contains(&entry.target) {
            info.targets.push(entry.target);
        }
    }
    info.keep_first_names();
    Ok(info)
}

/// Returns the header and payload of the first entry, and the rest.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let header = usize::try_from(read_u32(bytes, 4)?).ok().filter(|header| *header >= ENTRY_HEADER)?;
    let end = header.checked_add(usize::try_from(read_u64(bytes, 8)?).ok()?)?;
    Some((bytes.get(..header)?, bytes.get(header..end)?, bytes.get(end..)?))
}

fn add(info: &mut ImageInfo, record: &[u8], payload: &[u8], index: usize) -> Result<()> {
    let fields = (|| {
        let isa = (i32::from(read_u16(record, 26)?), i32::from(read_u16(record, 24)?));
        Some((read_u16(record, 0)?, isa, read_u32(record, 28)?, read_u64(record, 40)?))
    })();
    let Some((kind, isa, architecture, flags)) = fields else {
        return damaged(KIND, format!("entry {index} with a header that cannot be read"));
    };
    let kind = match kind {
        ENTRY_PTX => ImageKind::Ptx,
        ENTRY_CUBIN => ImageKind::Cubin,
        // Intermediate code for the linker, or unknown kinds: nothing that a device runs.
        _ => return Ok(()),
    };
    let suffix = match flags {
        flags if flags & ARCHITECTURE_ONLY != 0 => ArchitectureSuffix::Architecture,
        flags if flags & FAMILY != 0 => ArchitectureSuffix::Family,
        _ => ArchitectureSuffix::None,
    };
    let Some(target) = TargetArchitecture::from_number(architecture, suffix) else {
        return damaged(KIND, format!("entry {index} for architecture {architecture}"));
    };
    let mut entry = ImageEntry { kind, target, isa: (kind == ImageKind::Ptx).then_some(isa), toolkit: None };
    if flags & COMPRESSED != 0 {
        info.complete = false;
    } else {
        let inner = match kind {
            ImageKind::Ptx if ptx::is_ptx(payload) => ptx::parse(payload),
            ImageKind::Cubin if cubin::is_cubin(payload) => cubin::parse(payload),
            _ => damaged(KIND, format!("no {kind}")),
        };
        let inner = match inner {
            Ok(inner) => inner,
            Err(Error::DamagedImage { found, .. }) => {
                return damaged(KIND, format!("entry {index}, {kind} for {target}: {found}"));
            }
            Err(error) => return Err(error),
        };
        info.kernels.extend(inner.kernels);
        info.globals.extend(inner.globals);
        info.relocatable |= inner.relocatable;
        for found in inner.entries {
            // The header knows more about targets (a cubin does not name its family), the payload about the rest.
            entry.isa = found.isa;
            entry.toolkit = found.toolkit;
            if suffix == ArchitectureSuffix::None {
                entry.target.suffix = found.target.suffix;
            }
        }
    }
    info.entries.push(entry);
    Ok(())
}
