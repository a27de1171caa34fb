//! Cubins: 64-bit little-endian ELF files of machine `EM_CUDA`, for one architecture.
//!
//! NVIDIA does not document the format. This reader was checked against cubins of ptxas 12.0, 12.8, 12.9, 13.0 and 13.4
//! (tests/data/images). The ELF's OS ABI distinguishes two layouts. The first, of CUDA 12 for up to sm_90, has the
//! architecture in the lowest byte of `e_flags` and the `a` at bit 11. The second, of CUDA 12.8 and up for sm_100 and
//! later and of CUDA 13 for all, has it in the second byte, and the `a` at bit 3 (CUDA 12) or in the section
//! `.nv.compat` (CUDA 13).
//!
//! Kernels are the function symbols with the entry mark. The section `.nv.info.NAME` contains a kernel's parameters and
//! limits as attributes; parameters have sizes and offsets but no types.

use std::collections::HashMap;

use super::{
    ArchitectureSuffix, ImageEntry, ImageInfo, ImageKind, KernelInfo, Parameter, ParameterKind, Result,
    TargetArchitecture, damaged,
};

const KIND: &str = "cubin";

pub(super) const ELF_MAGIC: &[u8] = b"\x7fELF";
pub(super) const EM_CUDA: u16 = 190;
const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const OS_ABI_SECOND_LAYOUT: u8 = 0x41;
const TYPE_RELOCATABLE: u16 = 1;

/// The header value of a number that does not fit.
const NAMES_ELSEWHERE: usize = 0xffff;

const SECTION_SYMBOLS: u32 = 2;
const SECTION_NO_BITS: u32 = 8;

const SYMBOL_OBJECT: u8 = 1;
const SYMBOL_FUNCTION: u8 = 2;
/// The bit of `st_other` that marks a kernel.
const SYMBOL_ENTRY: u8 = 0x10;

// Attributes of `.nv.info.NAME`.
const MAX_THREADS: u8 = 0x05;
const REQUIRED_BLOCK: u8 = 0x10;
const PARAMETER: u8 = 0x17;
const PARAMETER_BYTES: u8 = 0x19;
const TOOLKIT: u8 = 0x37;
const REQUIRED_CLUSTER: u8 = 0x3d;
/// The form for sizes that do not fit [`PARAMETER`].
const PARAMETER_WIDE: u8 = 0x45;
/// An attribute of `.nv.compat`: 1 if the code is for this architecture alone.
const COMPAT_ARCHITECTURE_ONLY: u8 = 0x09;

/// Returns whether this is an ELF file for CUDA that this crate reads.
pub(super) fn is_cubin(bytes: &[u8]) -> bool {
    bytes.starts_with(ELF_MAGIC)
        && bytes.get(4) == Some(&CLASS_64)
        && bytes.get(5) == Some(&LITTLE_ENDIAN)
        && read_u16(bytes, 18) == Some(EM_CUDA)
}

pub(super) fn parse(bytes: &[u8]) -> Result<ImageInfo> {
    let Some(header) = Header::read(bytes) else {
        return damaged(KIND, format!("a header that cannot be read, in a file of {} bytes", bytes.len()));
    };
    header.check_segments(bytes)?;
    let sections = read_sections(bytes, &header)?;
    let mut info = ImageInfo::single(ImageEntry {
        kind: ImageKind::Cubin,
        target: read_target(&header, &sections)?,
        isa: None,
        toolkit: None,
    });
    info.relocatable = header.kind == TYPE_RELOCATABLE;
    read_symbols(bytes, &sections, &mut info)?;
    info.keep_first_names();

    let attributes: HashMap<&[u8], &[u8]> = sections
        .iter()
        .filter_map(|section| Some((section.name.strip_prefix(b".nv.info.")?, section.data)))
        .collect();
    let mut toolkit = None;
    for kernel in &mut info.kernels {
        if let Some(data) = attributes.get(kernel.name.as_bytes()) {
            toolkit = read_attributes(data, kernel)?.or(toolkit);
        }
    }
    for entry in &mut info.entries {
        entry.toolkit = toolkit;
    }
    Ok(info)
}

struct Header {
    second_layout: bool,
    kind: u16,
    flags: u32,
    segments: Table,
    sections: Table,
    /// The section with the sections' names.
    names: usize,
}

/// A table of the header.
struct Table {
    offset: u64,
    size: u16,
    count: u64,
}

impl Table {
    /// Returns the records, each of at least `least` bytes.
    fn records<'a>(&self, bytes: &'a [u8], least: u16, what: &str) -> Result<std::slice::Chunks<'a, u8>> {
        if self.count > 0 && self.size < least {
            return damaged(KIND, format!("{what} of {} bytes each, not {least}", self.size));
        }
        let all = u64::from(self.size).saturating_mul(self.count);
        match extent(bytes, self.offset, all) {
            Some(data) => Ok(data.chunks(usize::from(self.size).max(1))),
            None => damaged(
                KIND,
                format!(
                    "{what} at byte {} with {all} bytes, in a file of {} bytes",
                    self.offset,
                    bytes.len()
                ),
            ),
        }
    }
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Header> {
        let mut header = Header {
            second_layout: *bytes.get(7)? == OS_ABI_SECOND_LAYOUT,
            kind: read_u16(bytes, 16)?,
            flags: read_u32(bytes, 48)?,
            segments: Table {
                offset: read_u64(bytes, 32)?,
                size: read_u16(bytes, 54)?,
                count: read_u16(bytes, 56)?.into(),
            },
            sections: Table {
                offset: read_u64(bytes, 40)?,
                size: read_u16(bytes, 58)?,
                count: read_u16(bytes, 60)?.into(),
            },
            names: read_u16(bytes, 62)?.into(),
        };
        // Counts that do not fit here are in the first section header.
        if header.sections.offset != 0 && header.sections.count == 0 {
            let first = extent(bytes, header.sections.offset, 64)?;
            header.sections.count = read_u64(first, 32)?;
        }
        if header.names == NAMES_ELSEWHERE {
            let first = extent(bytes, header.sections.offset, 64)?;
            header.names = usize::try_from(read_u32(first, 40)?).ok()?;
        }
        Some(header)
    }

    /// The driver loads segments, and would read a segment past the file's end from foreign memory.
    fn check_segments(&self, bytes: &[u8]) -> Result<()> {
        for segment in self.segments.records(bytes, 56, "program headers")? {
            let (Some(offset), Some(size)) = (read_u64(segment, 8), read_u64(segment, 32)) else {
                return damaged(KIND, "a program header that cannot be read");
            };
            if extent(bytes, offset, size).is_none() {
                let found = format!(
                    "a segment at byte {offset} with {size} bytes, in a file of {} bytes",
                    bytes.len()
                );
                return damaged(KIND, found);
            }
        }
        Ok(())
    }
}

struct Section<'a> {
    name: &'a [u8],
    kind: u32,
    /// Empty if the section has no bytes in the file.
    data: &'a [u8],
    /// The number of the section that this one refers to: a symbol table's names.
    link: usize,
}

fn read_sections<'a>(bytes: &'a [u8], header: &Header) -> Result<Vec<Section<'a>>> {
    let mut sections = Vec::new();
    let mut names = Vec::new();
    for record in header.sections.records(bytes, 64, "section headers")? {
        let fields = (|| {
            let name = read_u32(record, 0)?;
            let kind = read_u32(record, 4)?;
            Some((name, kind, read_u64(record, 24)?, read_u64(record, 32)?, read_u32(record, 40)?))
        })();
        let Some((name, kind, offset, size, link)) = fields else {
            return damaged(KIND, "a section header that cannot be read");
        };
        let size_in_file = if kind == SECTION_NO_BITS { 0 } else { size };
        // Sections without bytes may have an offset past the end.
        let data = if size_in_file == 0 { Some(&[][..]) } else { extent(bytes, offset, size_in_file) };
        let Some(data) = data else {
            let found =
                format!("a section at byte {offset} with {size} bytes, in a file of {} bytes", bytes.len());
            return damaged(KIND, found);
        };
        names.push(name);
        sections.push(Section { name: b"", kind, data, link: usize::try_from(link).unwrap_or(usize::MAX) });
    }
    // The driver would read the names of an empty table from wherever it is said to be.
    let strings = sections.get(header.names).map(|section| section.data).filter(|data| !data.is_empty());
    let Some(strings) = strings else {
        return damaged(KIND, "no section names");
    };
    let mut budget = Budget::new(bytes);
    for (section, name) in sections.iter_mut().zip(names) {
        section.name = budget.string(strings, name)?;
    }
    Ok(sections)
}

fn read_target(header: &Header, sections: &[Section<'_>]) -> Result<TargetArchitecture> {
    let (number, mut exact) = if header.second_layout {
        (header.flags >> 8 & 0xff, header.flags & 0x8 != 0)
    } else {
        (header.flags & 0xff, header.flags & 0x800 != 0)
    };
    for section in sections.iter().filter(|section| section.name == b".nv.compat") {
        exact |= attributes(section.data)
            .any(|(attribute, value, _)| attribute == COMPAT_ARCHITECTURE_ONLY && value & 0xff == 1);
    }
    let suffix = if exact { ArchitectureSuffix::Architecture } else { ArchitectureSuffix::None };
    match TargetArchitecture::from_number(number, suffix) {
        Some(target) => Ok(target),
        None => damaged(KIND, format!("no architecture in its flags {:#x}", header.flags)),
    }
}

fn read_symbols(bytes: &[u8], sections: &[Section<'_>], info: &mut ImageInfo) -> Result<()> {
    let mut budget = Budget::new(bytes);
    for table in sections.iter().filter(|section| section.kind == SECTION_SYMBOLS) {
        let Some(strings) = sections.get(table.link).map(|section| section.data) else {
            return damaged(KIND, "a symbol table without names");
        };
        for symbol in table.data.chunks_exact(24) {
            let fields =
                (|| Some((read_u32(symbol, 0)?, *symbol.get(4)?, *symbol.get(5)?, read_u16(symbol, 6)?)))();
            let Some((name, kind, other, home)) = fields else { continue };
            // Section 0 means that the symbol is only declared.
            let Some(home) = sections.get(usize::from(home)).filter(|_| home != 0) else { continue };
            match kind & 0xf {
                SYMBOL_FUNCTION if other & SYMBOL_ENTRY != 0 => {
                    let name = String::from_utf8_lossy(budget.string(strings, name)?);
                    info.kernels.push(KernelInfo::new(name.into_owned()));
                }
                // Bank 3 contains `__constant__` variables; the compiler uses the other banks.
                SYMBOL_OBJECT if home.name.starts_with(b".nv.global") || home.name == b".nv.constant3" => {
                    info.globals.push(String::from_utf8_lossy(budget.string(strings, name)?).into_owned());
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Reads a kernel's attributes into it, and returns the CUDA version of its compiler, if they contain it.
fn read_attributes(data: &[u8], kernel: &mut KernelInfo) -> Result<Option<(i32, i32)>> {
    let mut found: Vec<(u16, Parameter)> = Vec::new();
    let mut toolkit = None;
    let mut parameter_bytes = None;
    for (attribute, value, payload) in attributes(data) {
        match attribute {
            MAX_THREADS => {
                kernel.max_threads = read_extent(payload)
                    .map(|sides| sides.map(u64::from).into_iter().fold(1, u64::saturating_mul));
            }
            REQUIRED_BLOCK => kernel.required_block = read_extent(payload),
            REQUIRED_CLUSTER => kernel.required_cluster = read_extent(payload),
            PARAMETER_BYTES => parameter_bytes = Some(usize::from(value)),
            TOOLKIT => {
                let version = read_u32(payload, 0).and_then(|version| i32::try_from(version).ok());
                toolkit = version.map(|version| (version / 10, version % 10));
            }
            PARAMETER | PARAMETER_WIDE => {
                let fields =
                    (|| Some((read_u16(payload, 4)?, read_u16(payload, 6)?, read_u32(payload, 8)?)))();
                let Some((ordinal, offset, packed)) = fields else {
                    return damaged(
                        KIND,
                        format!("a parameter of kernel '{}' that cannot be read", kernel.name),
                    );
                };
                // The rest of the word describes the constant bank, or the alignment of the pointee.
                let size = if attribute == PARAMETER { packed >> 18 } else { packed & 0xffff };
                let size = usize::try_from(size).unwrap_or(usize::MAX);
                found
                    .push((ordinal, Parameter { kind: ParameterKind::Unknown, size, offset: offset.into() }));
            }
            _ => {}
        }
    }
    found.sort_by_key(|(ordinal, _)| *ordinal);
    if found.iter().enumerate().any(|(index, (ordinal, _))| index != usize::from(*ordinal)) {
        return damaged(KIND, format!("parameters of kernel '{}' with gaps", kernel.name));
    }
    // A kernel whose parameters have a size but no description, as in stripped files, has unknown ones.
    if !found.is_empty() || parameter_bytes.unwrap_or(0) == 0 {
        kernel.parameters = Some(found.into_iter().map(|(_, parameter)| parameter).collect());
    }
    Ok(toolkit)
}

/// Returns the attributes as number, short value and payload. A truncated list ends early.
fn attributes(mut data: &[u8]) -> impl Iterator<Item = (u8, u16, &[u8])> {
    const WITH_PAYLOAD: u8 = 4;
    std::iter::from_fn(move || {
        let (format, attribute) = (*data.first()?, *data.get(1)?);
        let value = read_u16(data, 2)?;
        let length = if format == WITH_PAYLOAD { usize::from(value) } else { 0 };
        let payload = data.get(4..4 + length)?;
        data = data.get(4 + length..)?;
        Some((attribute, value, payload))
    })
}

fn read_extent(payload: &[u8]) -> Option<[u32; 3]> {
    Some([read_u32(payload, 0)?, read_u32(payload, 4)?, read_u32(payload, 8)?])
}

/// A bound on the total bytes of copied names.
///
/// The names of a real file hardly overlap, so together they are shorter than the file. In a forged file thousands of
/// names could refer to one long string, and copying them would exhaust the memory.
struct Budget {
    left: usize,
}

impl Budget {
    fn new(file: &[u8]) -> Budget {
        Budget { left: file.len() }
    }

    /// Returns the string at this offset, up to its NUL.
    fn string<'a>(&mut self, strings: &'a [u8], offset: u32) -> Result<&'a [u8]> {
        let rest = usize::try_from(offset).ok().and_then(|offset| strings.get(offset..)).unwrap_or_default();
        let Some(end) = rest.iter().take(self.left.saturating_add(1)).position(|byte| *byte == 0) else {
            // A file without symbols has an empty string table and only offset 0.
            return if offset == 0 { Ok(&[]) } else { damaged(KIND, "a name outside its table") };
        };
        self.left -= end;
        Ok(rest.get(..end).unwrap_or_default())
    }
}

/// Returns `size` bytes from `offset`, if the file has them.
fn extent(bytes: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    bytes.get(start..end)
}

fn read_array<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

pub(super) fn read_u16(bytes: &[u8], offset: usize) -> Option<u16> {
    read_array(bytes, offset).map(u16::from_le_bytes)
}

pub(super) fn read_u32(bytes: &[u8], offset: usize) -> Option<u32> {
    read_array(bytes, offset).map(u32::from_le_bytes)
}

pub(super) fn read_u64(bytes: &[u8], offset: usize) -> Option<u64> {
    read_array(bytes, offset).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attributes that ptxas 12.9 wrote for a kernel of a 20000-byte struct, a pointer and an int, last parameter
    /// first.
    #[test]
    fn parameters_too_large_for_the_first_form() {
        let data = [
            [0x04, 0x45, 0x0c, 0, 0, 0, 0, 0, 0x02, 0, 0x28, 0x4e, 0x04, 0, 0, 0],
            [0x04, 0x45, 0x0c, 0, 0, 0, 0, 0, 0x01, 0, 0x20, 0x4e, 0x08, 0, 0, 0],
            [0x04, 0x45, 0x0c, 0, 0, 0, 0, 0, 0x00, 0, 0x00, 0x00, 0x20, 0x4e, 0, 0],
        ]
        .concat();
        let mut kernel = KernelInfo::new("big".to_owned());
        assert_eq!(read_attributes(&data, &mut kernel).unwrap(), None);
        let sizes: Vec<_> = kernel.parameters.unwrap().iter().map(|p| (p.offset, p.size)).collect();
        assert_eq!(sizes, [(0, 20000), (20000, 8), (20008, 4)]);
    }

    /// The attributes that ptxas 13.0 wrote for `__block_size__((64, 2, 1))`, after a mark without payload.
    #[test]
    fn required_block_and_cluster() {
        let data = [
            vec![0x01, 0x5b, 0, 0, 0x04, 0x37, 0x04, 0, 0x82, 0, 0, 0],
            vec![0x04, 0x3d, 0x0c, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0],
            vec![0x04, 0x10, 0x0c, 0, 64, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0],
        ]
        .concat();
        let mut kernel = KernelInfo::new("req".to_owned());
        assert_eq!(read_attributes(&data, &mut kernel).unwrap(), Some((13, 0)));
        assert_eq!(kernel.required_block, Some([64, 2, 1]));
        assert_eq!(kernel.required_cluster, Some([1, 1, 1]));
        assert_eq!(kernel.parameters, Some(vec![]));
    }

    #[test]
    fn undescribed_parameters_are_unknown() {
        let mut kernel = KernelInfo::new("stripped".to_owned());
        read_attributes(&[0x03, PARAMETER_BYTES, 0x18, 0], &mut kernel).unwrap();
        assert_eq!(kernel.parameters, None);
    }
}
