//! The ids of functions in BTF as the kernel shows it, and where the members of its
//! structures are: just what the calls of kfuncs need. A module's BTF is split: its ids and its strings go on from those of
//! vmlinux, which aya-obj can't read.
//!
//! Format: Documentation/bpf/btf.rst and include/uapi/linux/btf.h.

const MAGIC: u16 = 0xeb9f;
const VERSION: u8 = 1;
/// `struct btf_header`.
const HEADER: usize = 24;
/// `struct btf_type`, without what follows it.
const TYPE: usize = 12;
/// `struct btf_member`.
const MEMBER: usize = 12;
/// `BTF_KIND_STRUCT`, `BTF_KIND_UNION`, `BTF_KIND_TYPEDEF` and `BTF_KIND_FUNC`.
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const TYPEDEF: u32 = 8;
const FUNC: u32 = 12;
/// Structures without a name that are looked into, one inside the other.
const MOST_NESTED: u32 = 16;

/// Why BTF can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BtfError {
    /// Not of this format, or of another byte order.
    #[error("it doesn't begin as BTF does")]
    NotBtf,
    /// A part of it is not there.
    #[error("it is cut off")]
    Cut,
    /// Of a later format.
    #[error("it has a type of kind {0}, which is not known here")]
    Kind(u32),
}

/// Types and strings.
#[derive(Clone, Copy, Debug)]
pub struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
}

/// Where a member is in its structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its first bit.
    pub bit: u32,
    /// Its width if it is a bit field, else 0.
    pub bits: u32,
}

impl<'a> Btf<'a> {
    /// Reads the header.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BtfError> {
        let header = bytes.first_chunk::<HEADER>().ok_or(BtfError::NotBtf)?;
        if header[..2] != MAGIC.to_ne_bytes() || header[2] != VERSION {
            return Err(BtfError::NotBtf);
        }
        let length = word(header, 4).ok_or(BtfError::Cut)?;
        let body = bytes.get(length..).ok_or(BtfError::Cut)?;
        let part = |at| {
            let (start, length) = (word(header, at)?, word(header, at + 4)?);
            body.get(start..start.checked_add(length)?)
        };
        Ok(Self {
            types: part(8).ok_or(BtfError::Cut)?,
            strings: part(16).ok_or(BtfError::Cut)?,
        })
    }

    /// The id of the function `name` in the BTF of vmlinux.
    pub fn function(&self, name: &str) -> Result<Option<u32>, BtfError> {
        // Hardly any kernel has it, and it has 150,000 types.
        if !self.has_string(name) {
            return Ok(None);
        }
        self.find(FUNC, name, |at| string(self.strings, at))
    }

    /// The id by which programs are attached to the tracepoint `name` in the BTF of vmlinux.
    pub fn tracepoint(&self, name: &str) -> Result<Option<u32>, BtfError> {
        let name = format!("btf_trace_{name}");
        self.find(TYPEDEF, &name, |at| string(self.strings, at))
    }

    /// The id of the function `name` in that of a module, split from `base`.
    pub fn function_split_from(&self, base: &Btf<'_>, name: &str) -> Result<Option<u32>, BtfError> {
        let before = base.strings.len();
        let of_both = |at: usize| match at.checked_sub(before) {
            Some(at) => string(self.strings, at),
            None => string(base.strings, at),
        };
        let Some(id) = self.find(FUNC, name, of_both)? else {
            return Ok(None);
        };
        let mut types = 0;
        for each in base.types() {
            each?;
            types += 1;
        }
        Ok(Some(types + id))
    }

    /// Where the structure of this name in the BTF of vmlinux has the member `name`, also
    /// in structures and unions without a name inside it.
    pub fn member(&self, structure: &str, name: &str) -> Result<Option<Member>, BtfError> {
        Ok(self.members(&[(structure, name)])?.pop().flatten())
    }

    /// The same for several structures and members.
    pub fn members(&self, wanted: &[(&str, &str)]) -> Result<Vec<Option<Member>>, BtfError> {
        let types: Vec<_> = self.types().collect::<Result<_, _>>()?;
        let members = wanted.iter().map(|(structure, name)| {
            let mut structures = types.iter().filter(|it| it.kind == STRUCT);
            let of = structures.find(|it| self.is_named(it.name, structure))?;
            self.member_in(&types, of, name, MOST_NESTED)
        });
        Ok(members.collect())
    }

    fn member_in(
        &self,
        types: &[Type<'_>],
        of: &Type<'_>,
        name: &str,
        nested: u32,
    ) -> Option<Member> {
        of.members().find_map(|(at, id, place)| {
            if self.is_named(at, name) {
                return Some(place);
            }
            let inner = types.get(id.checked_sub(1)?)?;
            let is_open = [STRUCT, UNION].contains(&inner.kind) && self.is_named(at, "");
            let nested = nested.checked_sub(1).filter(|_| is_open)?;
            let found = self.member_in(types, inner, name, nested)?;
            Some(Member {
                bit: place.bit.checked_add(found.bit)?,
                ..found
            })
        })
    }

    fn is_named(&self, at: usize, name: &str) -> bool {
        string(self.strings, at) == Some(name.as_bytes())
    }

    fn has_string(&self, name: &str) -> bool {
        let mut strings = self.strings.split(|byte| *byte == 0);
        strings.any(|string| string == name.as_bytes())
    }

    /// Ids begin at 1: 0 is `void`.
    fn find<'s>(
        &self,
        kind: u32,
        name: &str,
        string: impl Fn(usize) -> Option<&'s [u8]>,
    ) -> Result<Option<u32>, BtfError> {
        for (id, each) in (1..).zip(self.types()) {
            let each = each?;
            if each.kind == kind && string(each.name) == Some(name.as_bytes()) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    fn types(&self) -> impl Iterator<Item = Result<Type<'a>, BtfError>> + use<'a> {
        let mut rest = self.types;
        std::iter::from_fn(move || {
            (!rest.is_empty()).then(|| {
                let (each, after) = Type::first_of(rest)?;
                rest = after;
                Ok(each)
            })
        })
        // After an error nobody knows where the next one begins.
        .scan(false, |has_failed, each| {
            let goes_on = !*has_failed;
            *has_failed = each.is_err();
            goes_on.then_some(each)
        })
    }
}

struct Type<'a> {
    /// Where its name lies among the strings.
    name: usize,
    kind: u32,
    /// Of a structure: whether its members tell their widths.
    tells_bits: bool,
    /// What follows it.
    more: &'a [u8],
}

impl<'a> Type<'a> {
    /// The first one, and what follows it.
    fn first_of(types: &'a [u8]) -> Result<(Self, &'a [u8]), BtfError> {
        let name = word(types, 0).ok_or(BtfError::Cut)?;
        let info = word(types, 4).ok_or(BtfError::Cut)?;
        let (kind, count) = ((info >> 24 & 0x1f) as u32, info & 0xffff);
        let more = match kind {
            // Pointers, forward declarations, typedefs, qualifiers, functions,
            // floats, type tags.
            2 | 7..=12 | 16 | 18 => 0,
            // Integers, variables, declaration tags.
            1 | 14 | 17 => 4,
            // Arrays.
            3 => 12,
            // Structures, unions, sections of data, 64-bit enumerations.
            STRUCT | UNION | 15 | 19 => MEMBER * count,
            // Enumerations, prototypes.
            6 | 13 => 8 * count,
            kind => return Err(BtfError::Kind(kind)),
        };
        let (more, after) = types[TYPE..].split_at_checked(more).ok_or(BtfError::Cut)?;
        let of = Self {
            name,
            kind,
            tells_bits: info >> 31 != 0,
            more,
        };
        Ok((of, after))
    }

    /// Of a structure or a union: where the name of each member lies, the id of its type,
    /// and its place.
    fn members(&self) -> impl Iterator<Item = (usize, usize, Member)> {
        self.more.chunks_exact(MEMBER).filter_map(|member| {
            let place = u32::try_from(word(member, 8)?).ok()?;
            let (bit, bits) = match self.tells_bits {
                true => (place & 0xff_ffff, place >> 24),
                false => (place, 0),
            };
            Some((word(member, 0)?, word(member, 4)?, Member { bit, bits }))
        })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..)?.first_chunk()?;
    usize::try_from(u32::from_ne_bytes(*word)).ok()
}

/// The string at an offset, without the zero at its end.
fn string(strings: &[u8], at: usize) -> Option<&[u8]> {
    strings.get(at..)?.split(|byte| *byte == 0).next()
}

#[cfg(test)]
pub(super) mod tests {
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

    /// A type with a name and nothing else.
    pub enum Built {
        Typedef(&'static str),
        Function(&'static str),
    }

    impl Built {
        pub fn name(&self) -> &'static str {
            match self {
                Self::Typedef(name) | Self::Function(name) => name,
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
            tscap_testkit::root::skip("this kernel shows no types");
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
}
