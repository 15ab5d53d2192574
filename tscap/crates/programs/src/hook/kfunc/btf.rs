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
/// `struct btf_var_secinfo`.
const IN_SECTION: usize = 12;
/// `BTF_KIND_STRUCT`, `BTF_KIND_UNION`, `BTF_KIND_TYPEDEF`, `BTF_KIND_FUNC`, `BTF_KIND_VAR` and
/// `BTF_KIND_DATASEC`.
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const TYPEDEF: u32 = 8;
const FUNC: u32 = 12;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
/// The section of the variables of which each CPU has its own.
const PER_CPU: &str = ".data..percpu";
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

#[derive(Clone, Copy, Debug)]
pub struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
}

/// Where a member is in its structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    pub bit: u32,
    /// Its width if it is a bit field, else 0.
    pub bits: u32,
}

/// A variable of the kernel of which each CPU has its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerCpu {
    /// Its id in the BTF of vmlinux.
    pub id: u32,
    /// Where it has each of the members asked for, if it is a structure and has it.
    pub members: Vec<Option<Member>>,
}

impl<'a> Btf<'a> {
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

    /// The per-CPU variable `name` in the BTF of vmlinux, and where it has these members.
    pub fn per_cpu(&self, name: &str, members: &[&str]) -> Result<Option<PerCpu>, BtfError> {
        let types: Vec<_> = self.types().collect::<Result<_, _>>()?;
        let behind = |id: usize| types.get(id.checked_sub(1)?);
        let is_section = |it: &&Type<'_>| it.kind == DATASEC && self.is_named(it.name, PER_CPU);
        let section = types.iter().find(is_section);
        let variable = section.into_iter().flat_map(Type::in_section).find(|id| {
            behind(*id).is_some_and(|it| it.kind == VAR && self.is_named(it.name, name))
        });
        let Some(id) = variable else { return Ok(None) };
        let mut of = behind(id).and_then(|it| behind(it.of));
        if let Some(typedef) = of.filter(|it| it.kind == TYPEDEF) {
            of = behind(typedef.of);
        }
        let structure = of.filter(|it| it.kind == STRUCT);
        let member = |name: &&str| self.member_in(&types, structure?, name, MOST_NESTED);
        Ok(u32::try_from(id).ok().map(|id| PerCpu {
            id,
            members: members.iter().map(member).collect(),
        }))
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
    /// Of a variable or another name: the id of its type.
    of: usize,
    /// Of a structure: whether its members tell their widths.
    tells_bits: bool,
    more: &'a [u8],
}

impl<'a> Type<'a> {
    /// The first one, and what follows it.
    fn first_of(types: &'a [u8]) -> Result<(Self, &'a [u8]), BtfError> {
        let name = word(types, 0).ok_or(BtfError::Cut)?;
        let info = word(types, 4).ok_or(BtfError::Cut)?;
        let of = word(types, 8).ok_or(BtfError::Cut)?;
        let (kind, count) = ((info >> 24 & 0x1f) as u32, info & 0xffff);
        let more = match kind {
            // Pointers, forward declarations, typedefs, qualifiers, functions,
            // floats, type tags.
            2 | 7..=12 | 16 | 18 => 0,
            // Integers, variables, declaration tags.
            1 | VAR | 17 => 4,
            // Arrays.
            3 => 12,
            // Structures, unions, sections of data, 64-bit enumerations.
            STRUCT | UNION | DATASEC | 19 => MEMBER * count,
            // Enumerations, prototypes.
            6 | 13 => 8 * count,
            kind => return Err(BtfError::Kind(kind)),
        };
        let (more, after) = types[TYPE..].split_at_checked(more).ok_or(BtfError::Cut)?;
        let of = Self {
            name,
            kind,
            of,
            tells_bits: info >> 31 != 0,
            more,
        };
        Ok((of, after))
    }

    /// Of a section of data: the id of each variable in it.
    fn in_section(&self) -> impl Iterator<Item = usize> {
        let each = self.more.chunks_exact(IN_SECTION);
        each.filter_map(|variable| word(variable, 0))
    }

    /// Of a structure or a union: where the name of each member lies, the id of its type,
    /// and its place.
    fn members(&self) -> impl Iterator<Item = (usize, usize, Member)> {
        self.more.chunks_exact(MEMBER).filter_map(|member| {
            let place = u32::try_from(word(member, 8)?).ok()?;
            let (bit, bits) = if self.tells_bits {
                (place & 0xff_ffff, place >> 24)
            } else {
                (place, 0)
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
pub(super) mod tests;
