//! A program in the kernel that another one is to be attached to.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use aya_obj::generated::bpf_func_info;

use super::{BPF_OBJ_GET_INFO_BY_FD, GetId, GetInfo, bpf, owned};

/// `enum bpf_cmd` in include/uapi/linux/bpf.h.
const BPF_PROG_GET_FD_BY_ID: c_int = 13;
/// `struct bpf_func_info`, bytes.
const FUNC_INFO: u32 = 8;

/// The first members of `struct bpf_prog_info`.
#[repr(C)]
#[derive(Default)]
struct Info {
    kind_and_id: [u32; 2],
    tag: u64,
    code: [u64; 3],
    load_time: u64,
    uid_and_maps: [u32; 2],
    map_ids: u64,
    name: [u8; 16],
    ifindex: u32,
    gpl_compatible: u32,
    netns: [u64; 2],
    jited: [u32; 2],
    jited_places: [u64; 2],
    btf_id: u32,
    func_info_rec_size: u32,
    func_info: u64,
    nr_func_info: u32,
    nr_line_info: u32,
}

const _: () = assert!(std::mem::offset_of!(Info, name) == 64);
const _: () = assert!(std::mem::offset_of!(Info, func_info) == 136);
const _: () = assert!(size_of::<bpf_func_info>() == FUNC_INFO as usize);

/// A program that another process may have loaded.
#[derive(Debug)]
pub struct Target {
    fd: OwnedFd,
    /// Its name in the kernel, at most 15 bytes.
    pub name: String,
    /// The id of its first function in its own BTF; `None` if it has none.
    pub function: Option<u32>,
}

impl Target {
    /// The program with this id; `None` if it is gone.
    ///
    /// # Errors
    /// EPERM without CAP_SYS_ADMIN.
    pub fn by_id(id: u32) -> io::Result<Option<Self>> {
        let mut attr = GetId {
            id,
            next_id: 0,
            open_flags: 0,
        };
        let fd = match bpf(BPF_PROG_GET_FD_BY_ID, &mut attr) {
            Ok(fd) => owned(fd)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut functions = [bpf_func_info {
            insn_off: 0,
            type_id: 0,
        }];
        // The kernel writes as many as there is room for, and says how many there are.
        let mut info = Info {
            func_info_rec_size: FUNC_INFO,
            nr_func_info: 1,
            func_info: functions.as_mut_ptr().expose_provenance() as u64,
            ..Info::default()
        };
        let mut attr = GetInfo {
            bpf_fd: fd.as_raw_fd().cast_unsigned(),
            info_len: size_of::<Info>() as u32,
            info: (&raw mut info).expose_provenance() as u64,
        };
        bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attr)?;
        let length = info.name.iter().position(|byte| *byte == 0);
        let name = &info.name[..length.unwrap_or(info.name.len())];
        let has_types = info.btf_id != 0 && info.nr_func_info != 0;
        Ok(Some(Self {
            fd,
            name: String::from_utf8_lossy(name).into_owned(),
            function: has_types.then_some(functions[0].type_id),
        }))
    }
}

impl AsFd for Target {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
