//! The eBPF objects with rings that are part of the binary.

use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

/// The committed object, or the one that `TSCAP_EBPF_OBJECT` named at build time.
pub static PROGRAMS: &[u8] = aya::include_bytes_aligned!(env!("TSCAP_EBPF_OBJECT_PATH"));

/// The same for the one whose programs record keys in the place of frames
/// (`TSCAP_DELAY_OBJECT`).
pub static KEY_PROGRAMS: &[u8] = aya::include_bytes_aligned!(env!("TSCAP_DELAY_OBJECT_PATH"));

/// The same for the one whose programs record keys at each layer of the network stack
/// (`TSCAP_LAYERS_OBJECT`).
pub static LAYER_PROGRAMS: &[u8] = aya::include_bytes_aligned!(env!("TSCAP_LAYERS_OBJECT_PATH"));

/// What measures the cost of a stamp (`TSCAP_COMPARE_OBJECT`).
pub static COMPARE_PROGRAMS: &[u8] = aya::include_bytes_aligned!(env!("TSCAP_COMPARE_OBJECT_PATH"));

/// Offset of `value_size` in a legacy map definition (`struct bpf_map_def`:
/// type, key size, value size, …).
const VALUE_SIZE_OFFSET: u64 = 8;

/// Where in the object the value size of the map `name` stands.
fn value_size_at(object: &[u8], name: &str) -> Option<usize> {
    let file = ElfFile64::<object::Endianness>::parse(object).ok()?;
    let symbol = file
        .symbols()
        .find(|symbol| symbol.name() == Ok(name) && symbol.section_index().is_some())?;
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    if section.name() != Ok("maps") {
        return None;
    }
    let (start, _) = section.file_range()?;
    let offset = start + symbol.address() - section.address() + VALUE_SIZE_OFFSET;
    usize::try_from(offset).ok()
}

/// The object with another value size for the map `name`: aya can override the
/// number of entries only. `None` if the object has no such map.
pub(super) fn with_value_size(object: &[u8], name: &str, value_size: u32) -> Option<Vec<u8>> {
    let at = value_size_at(object, name)?;
    let mut patched = object.to_vec();
    patched
        .get_mut(at..at + 4)?
        .copy_from_slice(&value_size.to_ne_bytes());
    Some(patched)
}

#[cfg(test)]
mod tests {
    use aya_obj::Object;
    use tscap_common::config::RINGS;
    use tscap_common::hook::{ClockDomain, Hook};
    use tscap_common::ring::{MIN_RING_BYTES, value_size};

    use super::*;
    use tscap_clock::StampPath;

    #[test]
    fn each_path_has_a_program_of_its_clock() {
        let object = Object::parse(PROGRAMS).unwrap();
        for path in StampPath::ALL {
            let program = Hook::Xdp.program(path.domain());
            assert!(object.programs.contains_key(program), "{program}");
        }
        let unit = |domain| Hook::Xdp.program(domain);
        assert_ne!(unit(ClockDomain::Tsc), unit(ClockDomain::CpuTsc));
    }

    #[test]
    fn each_hook_of_keys_has_a_program_for_each_path() {
        let object = Object::parse(KEY_PROGRAMS).unwrap();
        for hook in [Hook::Xdp, Hook::TcIngress, Hook::TcEgress, Hook::Tap] {
            for path in StampPath::ALL {
                let program = hook.program(path.domain());
                assert!(object.programs.contains_key(program), "{program}");
            }
        }
        assert!(object.programs.contains_key(super::super::MIRROR_PROGRAM));
    }

    #[test]
    fn each_layer_has_a_program_by_ktime() {
        let object = Object::parse(LAYER_PROGRAMS).unwrap();
        let behind = [Hook::Netfilter, Hook::Cgroup, Hook::Application];
        for hook in [Hook::Xdp, Hook::TcIngress].into_iter().chain(behind) {
            let program = hook.program(ClockDomain::Monotonic);
            assert!(object.programs.contains_key(program), "{program}");
        }
    }

    #[test]
    fn the_rings_of_the_committed_object_can_be_resized() {
        let at = value_size_at(PROGRAMS, RINGS).unwrap();
        let size = u32::from_ne_bytes(PROGRAMS[at..at + 4].try_into().unwrap());
        assert_eq!(size as usize, value_size(MIN_RING_BYTES));

        let patched = with_value_size(PROGRAMS, RINGS, 4711).unwrap();
        assert_eq!(patched[at..at + 4], 4711u32.to_ne_bytes());
        assert_eq!(patched.len(), PROGRAMS.len());
        assert!(with_value_size(PROGRAMS, "NO_SUCH_MAP", 1).is_none());
        assert!(with_value_size(b"no object", RINGS, 1).is_none());
    }
}
