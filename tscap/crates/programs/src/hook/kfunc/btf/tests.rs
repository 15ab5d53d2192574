use super::*;

/// Types of these kinds with names, with what follows them; in split BTF the
/// strings go on from `before`.
pub fn btf(before: usize, of: &[(u32, &str, usize)]) -> Vec<u8> {
    let (mut types, mut strings) = (Vec::new(), Vec::new());
    if before == 0 {
        strings.push(0);
    }
    for (info, name, more) in of {
        let at = u32::try_from(before + strings.len()).unwrap();
        types.extend([at, *info, 0].map(u32::to_ne_bytes).concat());
        types.resize(types.len() + more, 0);
        strings.extend(name.bytes().chain([0]));
    }
    let mut bytes = MAGIC.to_ne_bytes().to_vec();
    bytes.extend([VERSION, 0]);
    let lengths = [types.len(), strings.len()].map(|length| u32::try_from(length).unwrap());
    let header = [24, 0, lengths[0], lengths[0], lengths[1]];
    bytes.extend(header.map(u32::to_ne_bytes).concat());
    bytes.extend(types);
    bytes.extend(strings);
    bytes
}

pub const KIND: fn(u32) -> u32 = |kind| kind << 24;

/// A kernel with this function as its 5th type.
pub fn kernel(function: &str) -> Vec<u8> {
    let structure = (KIND(4) | 3, "task_struct", 36);
    let prototype = (KIND(13) | 2, "", 16);
    let integer = (KIND(1), "u64", 4);
    // A type that is no function may have its name.
    let typedef = (KIND(8), function, 0);
    btf(
        0,
        &[
            integer,
            structure,
            prototype,
            typedef,
            (KIND(FUNC), function, 0),
        ],
    )
}

/// A kernel whose socket buffer begins with a byte, and has the bit field `ip_summed` in
/// a structure without a name in such a union; more types come after these four.
pub fn sk_buff(bit: u32, bits: u32, more: &[(u32, &str, usize)]) -> Vec<u8> {
    const TELLS_BITS: u32 = 1 << 31;
    let types = [
        (KIND(1), "ip_summed", 4),
        (KIND(STRUCT) | TELLS_BITS | 1, "", MEMBER),
        (KIND(UNION) | 1, "", MEMBER),
        (KIND(STRUCT) | 2, "sk_buff", 2 * MEMBER),
    ];
    let mut bytes = btf(0, &[&types, more].concat());
    let mut put = |at: usize, name: u32, id: u32, place: u32| {
        let member = [name, id, place].map(u32::to_ne_bytes).concat();
        bytes[HEADER + at..][..MEMBER].copy_from_slice(&member);
    };
    let [inner, union, outer] = [28, 52, 76];
    put(inner, 1, 1, bits << 24 | (bit - 8));
    put(union, 0, 2, 0);
    // One that has a name is another's.
    put(outer, 13, 2, 0);
    put(outer + MEMBER, 0, 3, 8);
    bytes
}

/// A type that is no structure.
pub enum Built {
    Typedef(&'static str),
    Function(&'static str),
    TypedefOf(&'static str, u32),
    Variable(&'static str, u32),
    /// A section of data with these variables.
    Section(&'static str, Vec<u32>),
}

impl Built {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Typedef(name)
            | Self::Function(name)
            | Self::TypedefOf(name, _)
            | Self::Variable(name, _)
            | Self::Section(name, _) => name,
        }
    }
}

/// A kernel with these structures, each with members at so many bytes, and more types.
pub fn structures(of: &[(&str, Vec<(&str, u32)>)], more: &[Built]) -> Vec<u8> {
    let mut types: Vec<_> = of
        .iter()
        .map(|(name, members)| {
            let count = u32::try_from(members.len()).unwrap();
            (KIND(STRUCT) | count, *name, MEMBER * members.len())
        })
        .collect();
    types.extend(more.iter().map(|it| match it {
        Built::Typedef(name) => (KIND(TYPEDEF), *name, 0),
        Built::Function(name) => (KIND(FUNC), *name, 0),
        Built::TypedefOf(name, _) => (KIND(TYPEDEF), *name, 0),
        Built::Variable(name, _) => (KIND(VAR), *name, 4),
        Built::Section(name, variables) => {
            let count = u32::try_from(variables.len()).unwrap();
            (KIND(DATASEC) | count, *name, IN_SECTION * variables.len())
        }
    }));
    // Names of members come after those of types.
    let mut bytes = btf(0, &types);
    let mut strings = bytes.len() - HEADER - types.iter().map(|it| TYPE + it.2).sum::<usize>();
    let mut at = HEADER;
    for (_, members) in of {
        at += TYPE;
        for (name, offset) in members {
            let name_at = u32::try_from(strings).unwrap();
            let member = [name_at, 0, offset * 8].map(u32::to_ne_bytes).concat();
            bytes[at..at + MEMBER].copy_from_slice(&member);
            bytes.extend(name.bytes().chain([0]));
            strings += name.len() + 1;
            at += MEMBER;
        }
    }
    for it in more {
        let mut put = |at: usize, id: &u32| bytes[at..at + 4].copy_from_slice(&id.to_ne_bytes());
        match it {
            Built::TypedefOf(_, of) | Built::Variable(_, of) => put(at + 8, of),
            Built::Section(_, variables) => {
                let starts = (at + TYPE..).step_by(IN_SECTION);
                starts.zip(variables).for_each(|(at, id)| put(at, id));
            }
            Built::Typedef(_) | Built::Function(_) => {}
        }
        at += TYPE;
        at += match it {
            Built::Variable(..) => 4,
            Built::Section(_, variables) => IN_SECTION * variables.len(),
            _ => 0,
        };
    }
    let length = u32::try_from(strings).unwrap();
    bytes[20..HEADER].copy_from_slice(&length.to_ne_bytes());
    bytes
}

#[test]
fn a_member_is_found_through_those_without_a_name() {
    let bytes = sk_buff(37, 2, &[]);
    let kernel = Btf::parse(&bytes).unwrap();
    let member = |of, name| kernel.member(of, name).unwrap();
    let place = Member { bit: 37, bits: 2 };
    assert_eq!(member("sk_buff", "ip_summed"), Some(place));
    assert_eq!(member("sk_buff", "summed"), None);
    assert_eq!(member("ip_summed", "ip_summed"), None, "no structure");
    // A union of itself.
    let mut endless = bytes.clone();
    endless[HEADER + 52 + 4..][..4].copy_from_slice(&3u32.to_ne_bytes());
    let endless = Btf::parse(&endless).unwrap();
    assert_eq!(endless.member("sk_buff", "ip_summed"), Ok(None));
}

#[test]
fn a_function_of_the_kernel_is_found() {
    let bytes = kernel("bpf_get_cpu_time_counter");
    let kernel = Btf::parse(&bytes).unwrap();
    let id = |name| kernel.function(name).unwrap();
    assert_eq!(id("bpf_get_cpu_time_counter"), Some(5));
    // Part of a name is none, and a structure no function.
    for other in ["bpf_get_cpu_time", "cpu_time_counter", "task_struct", ""] {
        assert_eq!(id(other), None, "{other}");
    }
}

#[test]
fn ids_and_strings_of_a_module_go_on_from_the_kernels() {
    let base = kernel("cpu_clock");
    let base = Btf::parse(&base).unwrap();
    let bytes = btf(
        base.strings.len(),
        &[(KIND(13), "", 0), (KIND(FUNC), "tscap_rdtsc", 0)],
    );
    let module = Btf::parse(&bytes).unwrap();
    let id = |name| module.function_split_from(&base, name).unwrap();
    assert_eq!(id("tscap_rdtsc"), Some(7));
    assert_eq!(id("tscap_rdtsc_ordered"), None);
    assert_eq!(id("cpu_clock"), None, "it is the kernel's");
    // Names that the kernel has already are not repeated.
    let mut shared = btf(base.strings.len(), &[(KIND(FUNC), "", 0)]);
    let name = base.strings.windows(9).position(|it| it == b"cpu_clock");
    let name = u32::try_from(name.unwrap()).unwrap();
    shared[HEADER..HEADER + 4].copy_from_slice(&name.to_ne_bytes());
    let shared = Btf::parse(&shared).unwrap();
    let id = shared.function_split_from(&base, "cpu_clock").unwrap();
    assert_eq!(id, Some(6));
}

#[test]
fn what_is_no_btf_is_refused() {
    let good = kernel("cpu_clock");
    assert_eq!(Btf::parse(b"").unwrap_err(), BtfError::NotBtf);
    let mut swapped = good.clone();
    swapped.swap(0, 1);
    assert_eq!(Btf::parse(&swapped).unwrap_err(), BtfError::NotBtf);
    let mut later = good.clone();
    later[2] = 2;
    assert_eq!(Btf::parse(&later).unwrap_err(), BtfError::NotBtf);
    // Cut anywhere: an error, and never a panic.
    for length in HEADER..good.len() {
        assert_eq!(Btf::parse(&good[..length]).unwrap_err(), BtfError::Cut);
    }
    for (info, more, error) in [
        (KIND(20), 0, BtfError::Kind(20)),
        (KIND(0), 0, BtfError::Kind(0)),
        (KIND(4) | 9, 12, BtfError::Cut),
    ] {
        let bytes = btf(0, &[(info, "odd", more), (KIND(FUNC), "cpu_clock", 0)]);
        let btf = Btf::parse(&bytes).unwrap();
        assert_eq!(btf.function("cpu_clock").unwrap_err(), error);
    }
}

#[test]
fn the_running_kernels_own_types_are_read() {
    let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else {
        tscap_base::skip::skip("this kernel shows no types");
        return;
    };
    let kernel = Btf::parse(&bytes).unwrap();
    let id = kernel.function("bpf_xdp_metadata_rx_hash").unwrap();
    let last = kernel.types().map(Result::unwrap).count();
    if let Some(id) = id {
        assert!((id as usize) <= last, "{id} of {last}");
    }
    assert!(last > 10_000, "{last}");
    assert_eq!(kernel.function("no_such_function_here").unwrap(), None);
    let member = |name| kernel.member("sk_buff", name).unwrap();
    let summed = member("ip_summed").expect("a socket buffer has it");
    assert_eq!(summed.bits, 2);
    assert_eq!(member("next"), Some(Member { bit: 0, bits: 0 }));
    assert_eq!(member("no_such_member_here"), None);
}
